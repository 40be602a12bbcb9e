// What this node's processes hold at the moment, and how much room there is.  A leak shows as a number that stays when
// no session works.
#include "coherence/member/held.hpp"

#include "extension/engine/txn/txn_words.hpp"
#include "extension/pg/runtime/backend.hpp"
#include "extension/pg/runtime/own_wait.hpp"
#include "extension/pg/runtime/rows.hpp"
#include "extension/pg/runtime/wait_tag.hpp"

extern "C" {
#include "storage/proc.h"
PG_FUNCTION_INFO_V1(gcl_stat_held_get);
PG_FUNCTION_INFO_V1(gcl_stat_space_get);
}

namespace gcl {

namespace {

struct Open {
  uint64_t snapshots = 0, transactions = 0, savepoints = 0, session_locks = 0, speculations = 0;
};

// Of backends and workers, but for the one that asks: its query may have a snapshot.
Open open_now() {
  Open open;
  engine::TxnShared& shared = *node_txn_shared();
  bufmgr::BufferPool& p = *node_pool();
  const engine::TxnWords words(p.region(bufmgr::Region::kTxnWords), p.region(bufmgr::Region::kStatusLog), p.nodes_max(),
                               shared.slots_max);
  // The pool's words of this node; without a session, which would count as one that is held.
  coherence::Counters unused{};
  const auto memory = p.coherence_node().open_memory(unused);
  auto word = [&](coherence::PoolAddress at) {
    const auto value = memory->load(at);
    return value ? *value : 0;  // unknown: the pool is lost to this node, and nothing is held
  };
  for (uint32_t i = 0; i < shared.sessions; ++i) {
    if (i == uint32_t(MyProc->pgprocno)) continue;
    const coherence::SessionId session{uint16_t(i)};
    open.snapshots += shared.slot(i).oldest.load(std::memory_order_relaxed) != 0;
    open.transactions += shared.slot(i).top.load(std::memory_order_relaxed) != 0;
    for (auto& level : shared.slot(i).open) open.savepoints += level.id.load(std::memory_order_relaxed) != 0;
    open.session_locks += word(words.session_lock(p.node(), session)) != 0;
    open.speculations += engine::SpeculationWord{word(words.speculation(p.node(), session))}.open();
  }
  return open;
}

struct Waits {
  uint64_t waiting = 0, ddl_transactions = 0;
};

// The lock manager's own waits are PostgreSQL's business.
Waits own_waits_now() {
  Waits waits;
  for (uint32_t i = 0; i < own_wait_slots(); ++i) {
    const OwnWait own = own_wait_of(i);
    waits.waiting += own.kind != OwnWaitKind::kNone;
    waits.ddl_transactions += own.ddl_transaction != 0;
  }
  return waits;
}

// Held in the lock manager for transactions of other primaries.
uint64_t tags_now() {
  const LockData* locks = GetLockStatusData();
  uint64_t tags = 0;
  for (int i = 0; i < locks->nelements; ++i) {
    const LockInstanceData& lock = locks->locks[i];
    const LOCKTAG tag = wait_tag(0);
    tags += lock.locktag.locktag_type == tag.locktag_type && lock.locktag.locktag_field1 == tag.locktag_field1 &&
            lock.locktag.locktag_field4 == tag.locktag_field4 && (lock.holdMask & LOCKBIT_ON(ExclusiveLock)) != 0;
  }
  return tags;
}

uint64_t waits_now() {
  uint64_t waits = 0;
  engine::WaitEntry entry;
  for (int i = 0; node_state()->waits.read(i, &entry); ++i) waits += entry.state != engine::WaitState::kFree;
  return waits;
}

uint64_t reclaimed_now() {
  const NodeState& node = *node_state();
  const uint64_t open = node.reclaim_open.load(std::memory_order_relaxed);
  return std::max(open, uint64_t{node.reclaim_wanted.load(std::memory_order_relaxed)});
}

}  // namespace
}  // namespace gcl

using namespace gcl;  // NOLINT: the functions below are PostgreSQL's, in the global namespace

Datum gcl_stat_held_get(PG_FUNCTION_ARGS) {
  require_pool();
  ReturnSetInfo* const result = rows_of(fcinfo);
  const coherence::Held held = node_pool()->coherence_node().held();
  const Open open = open_now();
  const uint64_t backends = node_state()->backends.now();
  const uint64_t asking = attached_txns() != nullptr ? 1 : 0;
  const Waits own = own_waits_now();
  const uint64_t counted = backends + node_state()->workers.now();
  const uint64_t frames = node_pool()->frames(), used = uint64_t{held.pages} + node_pool()->free_frames();
  const struct {
    const char* what;
    uint64_t held;
  } rows[] = {{"sessions of backends", backends - std::min(backends, asking)},
              {"sessions of nobody", held.sessions > counted ? held.sessions - counted : 0},
              {"frames neither free nor of a page", frames > used ? frames - used : 0},
              {"shared latches", held.shared},
              {"exclusive latches", held.exclusive},
              {"operations on lines", held.operations},
              {"parked requests", held.parked},
              {"holds", held.holds},
              {"request slots", held.request_slots},
              {"redo bytes reserved", uint64_t(node_pool()->ring().reserved_now())},
              {"snapshots", open.snapshots},
              {"transactions", open.transactions},
              {"savepoints", open.savepoints},
              {"session locks", open.session_locks},
              {"rows that may be taken back", open.speculations},
              {"transactions waited for", waits_now()},
              {"tags of transactions waited for", tags_now()},
              {"waits for other primaries", own.waiting},
              {"DDL exchanges", own.ddl_transactions},
              {"relations to be freed", reclaimed_now()}};
  for (const auto& row : rows) Row<2>().text(row.what).number(row.held).put(result);
  return Datum{0};
}

Datum gcl_stat_space_get(PG_FUNCTION_ARGS) {
  require_pool();
  TupleDesc desc;
  if (get_call_result_type(fcinfo, nullptr, &desc) != TYPEFUNC_COMPOSITE) elog(ERROR, "return type must be a row type");
  bufmgr::BufferPool& p = pool();
  const uint64_t free_pages = *until_done(nullptr, [&] { return p.free_pages(session()); });
  engine::TxnShared& shared = *node_txn_shared();
  const uint64_t given = shared.next.load(std::memory_order_relaxed), low = shared.low_water.load();
  const Datum values[] = {
      Int64GetDatum(p.frames()),       Int64GetDatum(p.free_frames()),   Int64GetDatum(p.coherence_node().held().pages),
      Int64GetDatum(int64(p.pages())), Int64GetDatum(int64(free_pages)), Int64GetDatum(int64(given - low))};
  const bool nulls[lengthof(values)] = {};
  PG_RETURN_DATUM(
      HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(desc), const_cast<Datum*>(values), const_cast<bool*>(nulls))));
}
