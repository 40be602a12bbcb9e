// The function behind gcl_stat_waits: every wait for a lock in the cluster, as its primaries tell it now.
#include "extension/pg/runtime/backend.hpp"
#include "extension/pg/runtime/rows.hpp"
#include "extension/pg/txn/deadlock_watch.hpp"

extern "C" {
PG_FUNCTION_INFO_V1(gcl_stat_waits_get);
}

using namespace gcl;  // NOLINT: the functions below are PostgreSQL's, in the global namespace
using engine::WaitKind;
using engine::WaitRecord;

namespace {

constexpr uint32_t kAnswersMs = 1000;

using WaitRow = Row<8>;

void put_process(WaitRow* row, uint8_t node, uint32_t pid) {
  row->integer(node);
  if (pid == 0)
    row->null();
  else
    row->integer(pid);
}

// The process that runs the transaction, if its primary has told; 0: it has not.
uint32_t pid_of(uint64_t txn, const WaitRecord* all, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i)
    if (all[i].waiter_txn == txn && !all[i].is_proxy()) return all[i].process;
  return 0;
}

WaitRow row_of(const WaitRecord& r, const WaitRecord* all, uint32_t count) {
  WaitRow row;
  put_process(&row, r.node, r.process);
  row.time(r.since_us).text(r.what);
  if (r.kind == WaitKind::kRemote)
    put_process(&row, engine::TxnId{r.target_txn}.node().value, pid_of(r.target_txn, all, count));
  else if (r.kind != WaitKind::kReplies)
    put_process(&row, r.target.node, r.target.pid);
  else
    row.null(2);
  if (r.is_proxy())
    put_process(&row, r.waiter.node, r.waiter.pid);
  else
    row.null(2);
  return row;
}

}  // namespace

Datum gcl_stat_waits_get(PG_FUNCTION_ARGS) {
  engine::TxnSystem& system = txns();
  uint32_t count;
  coherence::NodeSet missing;
  const WaitRecord* all = ask_everybody(system, kAnswersMs, &count, &missing);
  for (; !missing.empty(); missing = missing.without(missing.first()))
    ereport(WARNING, errmsg("primary %d has not told what it waits for", missing.first().value));
  ReturnSetInfo* const result = rows_of(fcinfo);
  for (uint32_t i = 0; i < count; ++i) {
    if (all[i].kind == WaitKind::kHolder) continue;
    row_of(all[i], all, count).put(result);
  }
  return Datum{0};
}
