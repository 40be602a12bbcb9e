#include "extension/pg/stats/sampler.hpp"

#include "extension/pg/ddl/node/ddl_node_state.hpp"
#include "extension/pg/runtime/backend.hpp"

extern "C" {
#include "utils/backend_status.h"
#include "utils/timestamp.h"
}

namespace gcl {

using coherence::Counter;
using coherence::SessionId;

namespace {

constexpr TimestampTz kSampleUs = 1'000'000;  // how often

engine::SampleRegistry* published = nullptr;  // as long as the member worker's process
TimestampTz taken = 0;

void sum_counters(bufmgr::BufferPool& pool, engine::Sample* to) {
  const coherence::Node& node = pool.coherence_node();
  for (uint32_t s = 0; s < node.sessions_max(); ++s) {
    const coherence::Counters& counters = node.counters(SessionId{uint16_t(s)});
    for (int i = 0; i < coherence::kCounters; ++i) to->coherence[i] += counters.get(Counter(i));
    const bufmgr::BufferCounts& counts = pool.counts(SessionId{uint16_t(s)});
    for (int i = 0; i < bufmgr::kCounts; ++i) to->bufmgr[i] += counts.get(bufmgr::Count(i));
  }
}

// Since when the transaction runs; 0: it has just ended.
TimestampTz transaction_start(int pid) {
  TimestampTz since = 0;
  const int backends = pgstat_fetch_stat_numbackends();
  for (int i = 1; i <= backends && since == 0; ++i) {
    const LocalPgBackendStatus* status = pgstat_fetch_stat_local_beentry(i);
    if (status != nullptr && status->backendStatus.st_procpid == pid)
      since = status->backendStatus.st_xact_start_timestamp;
  }
  if (!IsTransactionState()) pgstat_clear_backend_activity_snapshot();  // a worker's: nothing else would
  return since;
}

void oldest_snapshot(engine::Sample* to) {
  engine::TxnShared& shared = *node_txn_shared();
  for (uint32_t i = 0; i < shared.sessions; ++i) {
    const uint64_t oldest = shared.slot(i).oldest.load(std::memory_order_relaxed);
    if (oldest == 0 || i == uint32_t(MyProc->pgprocno)) continue;  // not the one that looks
    if (to->oldest != 0 && oldest >= to->oldest) continue;
    to->oldest = oldest;
    to->oldest_pid = uint32_t(ProcGlobal->allProcs[i].pid);
  }
  if (to->oldest != 0) to->oldest_since_us = transaction_start(int(to->oldest_pid));
}

}  // namespace

engine::SampleRegistry sample_registry(engine::TxnSystem& txns) {
  bufmgr::BufferPool& pool = txns.pool();
  return {txns.session().unordered_memory(), pool.region(bufmgr::Region::kSamples), pool.nodes_max(), pool.node()};
}

void take_sample(engine::TxnSystem& txns, engine::Sample* to) {
  bufmgr::BufferPool& pool = txns.pool();
  *to = {};
  to->incarnation = pool.coherence_node().incarnation();
  to->taken_us = GetCurrentTimestamp();
  sum_counters(pool, to);
  to->frames = pool.frames();
  to->free_frames = pool.free_frames();
  to->ring_used = pool.ring().used();
  to->ring_bytes = pool.ring().data_bytes();
  const engine::TxnWords words(pool.region(bufmgr::Region::kTxnWords), pool.region(bufmgr::Region::kStatusLog),
                               pool.nodes_max(), node_txn_shared()->slots_max);
  const uint64_t next = node_txn_shared()->next.load(), low = node_txn_shared()->low_water.load();
  to->status_used = next > low ? next - 1 - low : 0;
  to->status_words = words.slots();
  if (const auto aborted = txns.session().memory().load(words.aborted_count(pool.node()))) to->aborted = *aborted;
  oldest_snapshot(to);
  ddl_standing(to);
  to->hot_pages = pool.coherence_node().hot_pages(to->hot, engine::kSampleHotPages);
}

void begin_sampling() {
  published = new engine::SampleRegistry(sample_registry(txns()));
  published->clear();
}

TimestampTz sample_when_due() {
  const TimestampTz now = GetCurrentTimestamp();
  if (now - taken < kSampleUs && now >= taken) return taken + kSampleUs;
  engine::Sample sample;
  take_sample(txns(), &sample);
  published->publish(sample);
  taken = now;
  return taken + kSampleUs;
}

void end_sampling() { published->clear(); }

}  // namespace gcl
