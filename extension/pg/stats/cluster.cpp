// All primaries, as any of them sees them: this one as it is now, the others as they said last (engine/samples).
#include "extension/pg/ddl/base/ddl_port.hpp"
#include "extension/pg/runtime/backend.hpp"
#include "extension/pg/runtime/rows.hpp"
#include "extension/pg/stats/sampler.hpp"

extern "C" {
#include "catalog/pg_authid.h"
#include "utils/acl.h"
PG_FUNCTION_INFO_V1(gcl_stat_primaries);
PG_FUNCTION_INFO_V1(gcl_stat_cluster_counters_get);
}

namespace gcl {

using bufmgr::Count;
using coherence::Counter;
using coherence::NodeInfo;
using engine::DdlStanding;
using engine::Sample;

namespace {

constexpr int kFigures = 12 + 7 + 5 + 5;
using Primary = Row<5 + 2 + kFigures>;

const char* state_name(coherence::MemberState state) {
  switch (state) {
    case coherence::MemberState::kAbsent:
      return "absent";
    case coherence::MemberState::kLive:
      return "live";
    case coherence::MemberState::kLeaving:
      return "leaving";
    case coherence::MemberState::kDead:
      return "dead";
    case coherence::MemberState::kSwept:
      return "repaired";
  }
  return "?";
}

const char* standing_name(DdlStanding standing) {
  switch (standing) {
    case DdlStanding::kStarting:
      return "starting";
    case DdlStanding::kServing:
      return "serving";
    case DdlStanding::kCatchingUp:
      return "catching up";
    case DdlStanding::kFailing:
      return "failing";
  }
  return "?";
}

// What all primaries share, read once.
struct Shared {
  bool readable = false;  // not fenced: pages and words of the pool may be touched
  uint64_t clock = 0, entries = 0;
  uint64_t bounds[coherence::kNodesMax]{};
};

Shared look_at_pool() {
  Shared shared;
  if (node_pool()->fenced()) return shared;
  bufmgr::BufferPool& p = pool();
  shared.entries = ddl_channel().log_entries();
  const engine::TxnWords words(p.region(bufmgr::Region::kTxnWords), p.region(bufmgr::Region::kStatusLog), p.nodes_max(),
                               node_txn_shared()->slots_max);
  coherence::Batch batch(words.clock().node());
  const int clock = batch.load(words.clock());
  batch.read(words.bounds(), shared.bounds, p.nodes_max() * 8);
  shared.readable = session().memory().run(batch).ok();
  shared.clock = batch.op(clock).old;
  return shared;
}

// Whether anything is known of the primary.
bool sample_of(coherence::NodeId node, const NodeInfo& info, Sample* to) {
  if (node_pool()->fenced()) return false;
  if (node == node_pool()->node()) {
    take_sample(txns(), to);
    return true;
  }
  return sample_registry(txns()).read(node, info.incarnation, to);
}

void put_counters(Primary* row, const Sample& s) {
  auto coherence_sum = [&](std::initializer_list<Counter> list) {
    uint64_t sum = 0;
    for (Counter c : list) sum += s.coherence[int(c)];
    return sum;
  };
  auto counted = [&](Count c) { return s.bufmgr[int(c)]; };
  const uint64_t accesses = counted(Count::kFixes) + counted(Count::kPeeks) - counted(Count::kFurtherGuards);
  const uint64_t misses = coherence_sum({Counter::kMissShared, Counter::kMissExclusive});
  row->number(accesses > misses ? accesses - misses : 0).number(misses);
  row->number(coherence_sum({Counter::kBatches}));
  row->number(coherence_sum({Counter::kPeerInvSent, Counter::kPeerWrSent, Counter::kPeerRdSent}));
  row->number(coherence_sum({Counter::kPeerInvReceived, Counter::kPeerWrReceived, Counter::kPeerRdReceived}));
  row->number(coherence_sum({Counter::kGrantSSent, Counter::kGrantMSent}));
  row->number(coherence_sum({Counter::kGrantSReceived, Counter::kGrantMReceived}));
  row->number(counted(Count::kEvicted)).number(counted(Count::kMiniTransactions)).number(counted(Count::kRedoBytes));
  row->number(coherence_sum({Counter::kLocalWaits})).number(coherence_sum({Counter::kPeerWaits}));
}

void put_room(Primary* row, const Sample& s) {
  row->number(s.frames).number(s.free_frames);
  row->number(s.ring_used).number(s.ring_bytes);
  row->number(s.status_used).number(s.status_words);
  row->number(s.aborted);
}

bool may_read_all() { return has_privs_of_role(GetUserId(), ROLE_PG_READ_ALL_STATS); }

void put_ddl(Primary* row, const Sample& s, uint64_t entries) {
  const bool serves = s.standing == DdlStanding::kServing;
  row->text(standing_name(s.standing));
  row->number(serves ? entries : Min(s.ddl_entry, entries)).number(entries);
  row->text(s.error_us == 0 ? nullptr : may_read_all() ? s.error : "<insufficient privilege>").time(s.error_us);
}

void put_horizon(Primary* row, const Sample& s, const Shared& shared, uint64_t bound) {
  row->number(bound).number(shared.clock > bound ? shared.clock - bound : 0);
  // A snapshot that has ended since is not what holds the horizon.
  const bool holds = s.oldest != 0 && s.oldest <= bound;
  if (holds && may_read_all())
    row->number(s.oldest).integer(s.oldest_pid).time(s.oldest_since_us);
  else
    row->null(3);
}

}  // namespace
}  // namespace gcl

using namespace gcl;  // NOLINT: the functions below are PostgreSQL's, in the global namespace

// One row per primary of the pool; the figures are NULL of one that has not said anything (yet).
Datum gcl_stat_primaries(PG_FUNCTION_ARGS) {
  require_pool();
  ReturnSetInfo* const result = rows_of(fcinfo);
  const Shared shared = look_at_pool();
  const TimestampTz now = GetCurrentTimestamp();
  for (uint32_t i = 0; i < node_pool()->nodes_max(); ++i) {
    const coherence::NodeId node{uint8_t(i)};
    const NodeInfo info = node_pool()->coherence_node().info(node);
    if (info.state == coherence::MemberState::kAbsent) continue;
    Primary row;
    row.integer(int(i)).text(state_name(info.state)).integer(info.pid).number(info.incarnation);
    row.truth(node == node_pool()->node());
    Sample sample;
    if (!shared.readable || !sample_of(node, info, &sample)) {
      row.null(2 + kFigures).put(result);
      continue;
    }
    row.time(sample.taken_us).truth(now - sample.taken_us > kStaleUs);
    put_counters(&row, sample);
    put_room(&row, sample);
    put_ddl(&row, sample, shared.entries);
    put_horizon(&row, sample, shared, shared.bounds[i]);
    row.put(result);
  }
  return Datum{0};
}

// Every counter of every primary.
Datum gcl_stat_cluster_counters_get(PG_FUNCTION_ARGS) {
  require_pool();
  ReturnSetInfo* const result = rows_of(fcinfo);
  for (uint32_t n = 0; n < node_pool()->nodes_max(); ++n) {
    const coherence::NodeId node{uint8_t(n)};
    const NodeInfo info = node_pool()->coherence_node().info(node);
    Sample sample;
    if (info.state == coherence::MemberState::kAbsent || !sample_of(node, info, &sample)) continue;
    auto put = [&](const char* layer, const char* name, uint64_t value) {
      Row<5>().integer(int(n)).text(layer).text(name).number(value).time(sample.taken_us).put(result);
    };
    for (int i = 0; i < coherence::kCounters; ++i)
      put("coherence", coherence::counter_name(Counter(i)), sample.coherence[i]);
    for (int i = 0; i < bufmgr::kCounts; ++i) put("bufmgr", bufmgr::count_name(Count(i)), sample.bufmgr[i]);
  }
  return Datum{0};
}
