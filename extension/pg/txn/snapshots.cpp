#include "extension/pg/txn/snapshots.hpp"

#include "extension/pg/backend.hpp"
#include "extension/pg/ddl/ddl.hpp"
#include "extension/pg/sequence/sequence_file.hpp"
#include "extension/pg/tableam/table_am.hpp"

extern "C" {
#include "access/parallel.h"
#include "executor/executor.h"
#include "nodes/plannodes.h"
#include "utils/inval.h"
#include "utils/resowner.h"
}

namespace gcl {

namespace {

ExecutorStart_hook_type next_start = nullptr;
TimestampTz leader_time = 0;  // S5.  Of a parallel worker, which serves one leader's query and ends; 0: not stamped

TimestampTz fresh() {
  const engine::Cts now = *until_done(nullptr, [] { return txns().take_snapshot(); });
  return TimestampTz(now.value);
}

// S5.  What the worker's own statements see: in READ COMMITTED the newest state, as they would in the leader.
TimestampTz in_worker() {
  if (leader_time == 0)
    ereport(ERROR, errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
            errmsg("cannot read gcl tables in a parallel worker of this operation"),
            errhint("Mark the function that reads them PARALLEL RESTRICTED, or set max_parallel_workers_per_gather and "
                    "max_parallel_maintenance_workers to 0."));
  return IsolationUsesXactSnapshot() ? leader_time : fresh();
}

// The transaction's own snapshot, in REPEATABLE READ, is stamped before it is copied (S4).  One that comes without is a
// later one, taken on purpose: by ADD FOREIGN KEY, to see all rows.
TimestampTz in_repeatable_read() {
  Snapshot own = GetTransactionSnapshot();
  const TimestampTz now = fresh();
  if (own->whenTaken == 0) own->whenTaken = now;
  return now;
}

bool is_unstamped(Snapshot snapshot) {
  return snapshot != nullptr && snapshot->snapshot_type == SNAPSHOT_MVCC && snapshot->whenTaken == 0;
}

void stamp(Snapshot snapshot) {
  if (!is_unstamped(snapshot)) return;
  if (IsParallelWorker())
    snapshot->whenTaken = in_worker();
  else
    snapshot->whenTaken = IsolationUsesXactSnapshot() ? in_repeatable_read() : fresh();
}

// Whose a table is, as last seen: every query asks, heap's too, and opening the relation costs ten times as much.
struct Known {
  Oid relid;
  bool ours;
} known[64];

void forget_known(Datum, Oid relid) {
  if (!OidIsValid(relid))
    memset(known, 0, sizeof known);
  else if (known[relid % lengthof(known)].relid == relid)
    known[relid % lengthof(known)] = {};
}

// REQUIRES: a lock on the table, so that what changes its access method has been heard of.
bool is_known_gcl_table(Oid relid) {
  Known& slot = known[relid % lengthof(known)];
  if (slot.relid == relid) return slot.ours;
  Relation rel = RelationIdGetRelation(relid);
  if (!RelationIsValid(rel)) return false;
  const bool ours = is_gcl_table(rel);
  RelationClose(rel);
  slot = {relid, ours};
  return ours;
}

bool reads_gcl(const PlannedStmt* plan) {
  ListCell* cell;
  foreach (cell, plan->rtable) {
    const RangeTblEntry* entry = static_cast<RangeTblEntry*>(lfirst(cell));
    if (entry->rtekind == RTE_RELATION && entry->relid >= FirstNormalObjectId && is_known_gcl_table(entry->relid))
      return true;
  }
  return false;
}

// SELECT of a sequence shows what the pool says.
void refresh_sequences(const PlannedStmt* plan) {
  ListCell* cell;
  foreach (cell, plan->rtable) {
    const RangeTblEntry* entry = static_cast<RangeTblEntry*>(lfirst(cell));
    if (entry->rtekind == RTE_RELATION && entry->relkind == RELKIND_SEQUENCE && is_gcl_sequence(entry->relid))
      refresh_sequence_row(entry->relid);
  }
}

// S3: a plan may be shared with the plan cache, so a copy of its top says it.
void forbid_workers(QueryDesc* query) {
  if (!query->plannedstmt->parallelModeNeeded) return;
  PlannedStmt* copy = static_cast<PlannedStmt*>(palloc(sizeof(PlannedStmt)));
  *copy = *query->plannedstmt;
  copy->parallelModeNeeded = false;
  query->plannedstmt = copy;
}

// S5.  Functions that are not the server's own may read gcl tables, at the query's time if they are stable.
bool may_read_gcl(const PlannedStmt* plan) {
  if (!serves()) return false;
  return plan->parallelModeNeeded || (plan->invalItems != NIL && attached_txns() != nullptr);
}

void stamp_query(QueryDesc* query) {
  if (reads_gcl(query->plannedstmt)) {
    stamp(query->crosscheck_snapshot);
    stamp(query->snapshot);
  } else if (may_read_gcl(query->plannedstmt)) {
    stamp(query->snapshot);
  }
}

void start_query(QueryDesc* query, int flags) {
  if (IsParallelWorker()) {
    if (leader_time == 0 && query->snapshot != nullptr) leader_time = query->snapshot->whenTaken;
  } else if (node_pool() != nullptr) {
    stamp_transaction();
    note_query(query->plannedstmt);
    if (!(flags & EXEC_FLAG_EXPLAIN_ONLY)) {
      stamp_query(query);
      refresh_sequences(query->plannedstmt);
    }
  }
  // Workers do not know the ids this transaction writes under; a function they call may read gcl tables even where the
  // plan does not.
  if (attached_txns() != nullptr && attached_txns()->current().wrote()) forbid_workers(query);
  if (next_start)
    next_start(query, flags);
  else
    standard_ExecutorStart(query, flags);
}

// S6.  Portals and savepoints let go of what they owned; the last one's snapshot was the transaction's last.
void release_between_statements(ResourceReleasePhase phase, bool, bool top, void*) {
  if (phase != RESOURCE_RELEASE_AFTER_LOCKS || top || IsParallelWorker() || IsolationUsesXactSnapshot()) return;
  if (counts_in() && !HaveRegisteredOrActiveSnapshot()) attached_txns()->set_oldest(std::nullopt);
}

}  // namespace

// S4.  The statement that runs has a copy of the transaction's snapshot from before.
void stamp_transaction() {
  if (XactIsoLevel != XACT_REPEATABLE_READ || MyBackendType != B_BACKEND || !ActiveSnapshotSet() || !serves()) return;
  Snapshot active = GetActiveSnapshot();
  if (active->snapshot_type != SNAPSHOT_MVCC) return;
  Snapshot own = GetTransactionSnapshot();
  if (own->whenTaken != 0) return;
  own->whenTaken = fresh();
  if (is_unstamped(active)) active->whenTaken = own->whenTaken;
}

engine::Snapshot engine_snapshot(Snapshot snapshot) {
  using Kind = engine::SnapshotKind;
  if (snapshot == nullptr) return {.kind = Kind::kAny};
  switch (snapshot->snapshot_type) {
    case SNAPSHOT_MVCC:
      stamp(snapshot);
      return {.kind = Kind::kMvcc, .ts = {uint64_t(snapshot->whenTaken)}, .command = snapshot->curcid};
    case SNAPSHOT_SELF:
      return {.kind = Kind::kSelf};
    case SNAPSHOT_ANY:
      return {.kind = Kind::kAny};
    case SNAPSHOT_TOAST:
      return {.kind = Kind::kPart};
    case SNAPSHOT_DIRTY:
      // The engine waits inside; a fetch through an index says when the caller is to look again.
      snapshot->xmin = snapshot->xmax = InvalidTransactionId;
      snapshot->speculativeToken = 0;
      return {.kind = Kind::kDirty};
    case SNAPSHOT_NON_VACUUMABLE:
      return {.kind = Kind::kNonVacuumable};
    default:
      break;
  }
  elog(ERROR, "gcl tables do not know snapshots of type %d", int(snapshot->snapshot_type));
}

void install_snapshot_hooks() {
  CacheRegisterRelcacheCallback(forget_known, Datum(0));
  next_start = ExecutorStart_hook;
  ExecutorStart_hook = start_query;
}

void watch_statement_ends() { RegisterResourceReleaseCallback(release_between_statements, nullptr); }

}  // namespace gcl
