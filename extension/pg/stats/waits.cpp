// The function behind gcl_stat_waits: every wait for a lock in the cluster, as its primaries tell it now.
#include "extension/pg/backend.hpp"
#include "extension/pg/txn/deadlock_watch.hpp"

extern "C" {
#include "funcapi.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"
#include "utils/tuplestore.h"
PG_FUNCTION_INFO_V1(gcl_stat_waits_get);
}

using namespace gcl;  // NOLINT: the functions below are PostgreSQL's, in the global namespace
using engine::WaitKind;
using engine::WaitRecord;

namespace {

constexpr uint32_t kAnswersMs = 1000;

struct Row {
  Datum values[8];
  bool nulls[8];
};

void put_process(Row* row, int at, uint8_t node, uint32_t pid) {
  row->values[at] = Int32GetDatum(node);
  row->values[at + 1] = Int32GetDatum(int(pid));
  row->nulls[at] = false;
  row->nulls[at + 1] = pid == 0;
}

// The process that runs the transaction, if its primary has told; 0: it has not.
uint32_t pid_of(uint64_t txn, const WaitRecord* all, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i)
    if (all[i].waiter_txn == txn && !all[i].is_proxy()) return all[i].process;
  return 0;
}

Row row_of(const WaitRecord& r, const WaitRecord* all, uint32_t count) {
  Row row{};
  memset(row.nulls, true, sizeof row.nulls);
  put_process(&row, 0, r.node, r.process);
  row.values[2] = TimestampTzGetDatum(r.since_us);
  row.values[3] = CStringGetTextDatum(r.what);
  row.nulls[2] = row.nulls[3] = false;
  if (r.kind == WaitKind::kRemote)
    put_process(&row, 4, engine::TxnId{r.target_txn}.node().value, pid_of(r.target_txn, all, count));
  else if (r.kind != WaitKind::kReplies)
    put_process(&row, 4, r.target.node, r.target.pid);
  if (r.is_proxy()) put_process(&row, 6, r.waiter.node, r.waiter.pid);
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
  InitMaterializedSRF(fcinfo, 0);
  ReturnSetInfo* result = reinterpret_cast<ReturnSetInfo*>(fcinfo->resultinfo);
  for (uint32_t i = 0; i < count; ++i) {
    if (all[i].kind == WaitKind::kHolder) continue;
    Row row = row_of(all[i], all, count);
    tuplestore_putvalues(result->setResult, result->setDesc, row.values, row.nulls);
  }
  return Datum{0};
}
