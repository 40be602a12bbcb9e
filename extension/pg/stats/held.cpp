// What this node's processes hold at the moment, and how much room there is.  A leak shows as a number that stays when
// nobody is at work.
#include "coherence/stats/held.hpp"

#include "extension/pg/backend.hpp"

extern "C" {
#include "funcapi.h"
#include "utils/builtins.h"
#include "utils/tuplestore.h"
PG_FUNCTION_INFO_V1(gcl_stat_held_get);
PG_FUNCTION_INFO_V1(gcl_stat_space_get);
}

namespace gcl {

namespace {

void require_pool() {
  if (node_pool() == nullptr)
    ereport(ERROR, errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE), errmsg("this server takes part in no gcl pool"));
}

struct Open {
  uint64_t snapshots = 0, transactions = 0;
};

// Of backends and workers, this one included.
Open open_now() {
  Open open;
  engine::TxnShared& shared = *node_txn_shared();
  for (uint32_t i = 0; i < shared.sessions; ++i) {
    open.snapshots += shared.slot(i).oldest.load(std::memory_order_relaxed) != 0;
    open.transactions += shared.slot(i).top.load(std::memory_order_relaxed) != 0;
  }
  return open;
}

uint64_t waits_now() {
  uint64_t waits = 0;
  engine::WaitEntry entry;
  for (int i = 0; node_state()->waits.read(i, &entry); ++i) waits += entry.state != engine::WaitState::kFree;
  return waits;
}

uint64_t garbage_now() {
  SpinLockAcquire(&node_state()->garbage_lock);
  const uint64_t count = node_state()->garbage_count;
  SpinLockRelease(&node_state()->garbage_lock);
  return count;
}

}  // namespace
}  // namespace gcl

using namespace gcl;  // NOLINT: the functions below are PostgreSQL's, in the global namespace

Datum gcl_stat_held_get(PG_FUNCTION_ARGS) {
  require_pool();
  InitMaterializedSRF(fcinfo, 0);
  ReturnSetInfo* result = reinterpret_cast<ReturnSetInfo*>(fcinfo->resultinfo);
  const coherence::Held held = node_pool()->coherence_node().held();
  const Open open = open_now();
  const struct {
    const char* what;
    uint64_t held;
  } rows[] = {{"sessions of backends", node_state()->backends.load(std::memory_order_relaxed)},
              {"shared latches", held.shared},
              {"exclusive latches", held.exclusive},
              {"operations on lines", held.operations},
              {"parked requests", held.parked},
              {"holds", held.holds},
              {"request slots", held.request_slots},
              {"redo bytes reserved", uint64_t(node_pool()->ring().reserved_now())},
              {"snapshots", open.snapshots},
              {"transactions", open.transactions},
              {"transactions waited for", waits_now()},
              {"relations to be freed", garbage_now()}};
  for (const auto& row : rows) {
    Datum values[] = {CStringGetTextDatum(row.what), Int64GetDatum(int64(row.held))};
    bool nulls[2] = {};
    tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
  }
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
