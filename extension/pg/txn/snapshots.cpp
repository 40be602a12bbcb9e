#include "extension/pg/txn/snapshots.hpp"

#include "coherence/base/verify.hpp"
#include "extension/pg/runtime/backend.hpp"
#include "extension/pg/runtime/gcl_table.hpp"
#include "extension/pg/runtime/mixed_commits.hpp"
#include "extension/pg/runtime/serializable.hpp"
#include "extension/pg/txn/query_start.hpp"
#include "extension/pg/txn/snapshot_renewal.hpp"

extern "C" {
#include "access/parallel.h"
#include "executor/executor.h"
#include "nodes/plannodes.h"
#include "utils/inval.h"
#include "utils/resowner.h"
}

namespace gcl {

namespace {

using coherence::Intent;

ExecutorStart_hook_type next_start = nullptr;
void (*at_query_start[2])(const QueryStart&);
int query_start_callbacks = 0;
// Of a parallel worker, which serves one leader's query and ends; 0: it has none (pg_txn.workers-see-query-time).
TimestampTz leader_time = 0;
bool timestamps_all = false;  // every query gets one (pg_txn.used-snapshot-stays)

constexpr TimestampTz kUsed = -1;    // used, without a time (pg_txn.used-snapshot-stays)
constexpr TimestampTz kNoTime = -2;  // imported without a time (pg_txn.import-brings-time)

// An MVCC snapshot that has no timestamp yet.
bool needs_time(Snapshot snapshot) {
  return snapshot != nullptr && snapshot->snapshot_type == SNAPSHOT_MVCC &&
         (snapshot->whenTaken == 0 || snapshot->whenTaken == kUsed);
}

TimestampTz fresh(Intent intent) {
  const engine::Cts now = *until_done(nullptr, [&] { return txns().take_snapshot(intent); });
  return TimestampTz(now.value);
}

// (pg_txn.used-snapshot-stays)
[[noreturn]] void raise_too_late() {
  timestamps_all = true;
  ereport(
      ERROR, errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
      errmsg("could not read gcl tables at the time of the statement that has begun"),
      errdetail("A transaction that changed gcl tables and others was committed after the statement had read others."),
      errhint("Run the transaction again."));
}

// (pg_txn.import-brings-time)
[[noreturn]] void raise_no_time() {
  ereport(ERROR, errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
          errmsg("cannot read gcl tables with the snapshot that this transaction has imported"),
          errdetail("It was exported where gcl tables cannot be read, by a SERIALIZABLE transaction, or for a "
                    "replication slot."),
          errhint("Export one with pg_export_snapshot() in a transaction of READ COMMITTED or REPEATABLE READ."));
}

// (pg_txn.snapshots-of-one-time)
TimestampTz time_of(Snapshot snapshot, Ended of, Intent intent = Intent::kRead) {
  const bool looked = snapshot->whenTaken == kUsed;
  // A copy does not say how many transactions had ended: if the one that it was made of does not say it, it is taken
  // again at once, and not after a first timestamp.
  if (!looked && snapshot->snapXactCompletionCount == 0 && !recognize(snapshot)) renew(snapshot);
  for (;;) {
    wait_until_published(snapshot);
    const TimestampTz now = fresh(intent);
    if (!ended_since(snapshot, looked ? Ended::kMixed : of)) return now;
    if (looked) raise_too_late();
    renew(snapshot);
    CHECK_FOR_INTERRUPTS();
  }
}

// What the worker's own statements see: in READ COMMITTED the newest state, as they would in the leader
// (pg_txn.workers-see-query-time).
TimestampTz in_worker(Snapshot snapshot, Ended of) {
  if (leader_time == 0)
    ereport(ERROR, errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
            errmsg("cannot read gcl tables in a parallel worker of this operation"),
            errhint("Mark the function that reads them PARALLEL RESTRICTED, or set max_parallel_workers_per_gather and "
                    "max_parallel_maintenance_workers to 0."));
  return IsolationUsesXactSnapshot() ? leader_time : time_of(snapshot, of);
}

// The transaction's own snapshot, in REPEATABLE READ, gets its timestamp before it is copied
// (pg_txn.repeatable-read-once).  A snapshot without a timestamp is a later one, taken on purpose (by ADD FOREIGN KEY,
// to see all rows), or the copy of one that was used (pg_txn.used-snapshot-stays).
TimestampTz in_repeatable_read(Snapshot snapshot) {
  Snapshot own = GetTransactionSnapshot();
  if (needs_time(own)) {
    own->whenTaken = time_of(own, Ended::kAny);
    if (XactIsoLevel == XACT_SERIALIZABLE) return own->whenTaken;  // no local table has been read
  }
  return snapshot->whenTaken == kUsed ? own->whenTaken : time_of(snapshot, Ended::kAny);
}

void set_time(Snapshot snapshot, Ended of = Ended::kAny, Intent intent = Intent::kRead) {
  if (!needs_time(snapshot)) return;
  if (IsParallelWorker())
    snapshot->whenTaken = in_worker(snapshot, of);
  else
    snapshot->whenTaken = IsolationUsesXactSnapshot() ? in_repeatable_read(snapshot) : time_of(snapshot, of, intent);
}

// (pg_txn.used-snapshot-stays)
void note_use(Snapshot snapshot) {
  if (needs_time(snapshot)) snapshot->whenTaken = kUsed;
}

// What a query names, and what that means for its snapshot.
struct Reads {
  bool gcl, others, unlogged, sequences;
  bool writes;  // rows of gcl tables, or locks them
};

// Whose a table is, as last seen: every query asks, heap's too, and opening the relation costs ten times as much.
struct Known {
  Oid relid;
  bool ours, unlogged;
  bool plain;  // nothing but the row itself, and its index entries, comes of an INSERT
} known[64];

void forget_known(Datum, Oid relid) {
  if (!OidIsValid(relid))
    memset(known, 0, sizeof known);
  else if (known[relid % lengthof(known)].relid == relid)
    known[relid % lengthof(known)] = {};
}

// A partitioned table may have unlogged partitions, which a query that inserts does not name; not if it is of all
// primaries.
bool may_be_unlogged(Relation rel) {
  const Form_pg_class form = rel->rd_rel;
  return form->relpersistence == RELPERSISTENCE_UNLOGGED ||
         (form->relkind == RELKIND_PARTITIONED_TABLE && !OidIsValid(form->relam));
}

// Triggers, checks and policies may read tables as of the statement's snapshot.
bool is_plain(Relation rel) {
  const TupleConstr* constraints = RelationGetDescr(rel)->constr;
  return rel->rd_rel->relkind == RELKIND_RELATION && !rel->rd_rel->relispartition && rel->trigdesc == nullptr &&
         !rel->rd_rel->relrowsecurity && (constraints == nullptr || constraints->num_check == 0);
}

// REQUIRES: a lock on the table, so that what changes its access method has been heard of.
Known known_table(Oid relid) {
  Known& slot = known[relid % lengthof(known)];
  if (slot.relid == relid) return slot;
  Relation rel = RelationIdGetRelation(relid);
  if (!RelationIsValid(rel)) return {};
  slot = {relid, is_gcl_table(rel), may_be_unlogged(rel), is_plain(rel)};
  RelationClose(rel);
  return slot;
}

// INSERT without ON CONFLICT, WITH or functions of users: its table is written, and not read
// (pg_txn.insert-reads-nothing).
bool only_inserts(const PlannedStmt* plan) {
  return plan->commandType == CMD_INSERT && !plan->hasModifyingCTE && plan->invalItems == NIL &&
         IsA(plan->planTree, ModifyTable) &&
         reinterpret_cast<const ModifyTable*>(plan->planTree)->onConflictAction == ONCONFLICT_NONE;
}

Reads reads_of(const PlannedStmt* plan) {
  Reads reads{};
  const bool inserts = only_inserts(plan);
  const bool changes = plan->resultRelations != NIL || plan->rowMarks != NIL;
  int index = 0;
  ListCell* cell;
  foreach (cell, plan->rtable) {
    const RangeTblEntry* entry = static_cast<RangeTblEntry*>(lfirst(cell));
    ++index;
    if (entry->rtekind != RTE_RELATION || entry->relkind == RELKIND_VIEW) continue;
    reads.sequences |= entry->relkind == RELKIND_SEQUENCE;
    const Known table = entry->relid >= FirstNormalObjectId ? known_table(entry->relid) : Known{};
    reads.unlogged |= table.unlogged;
    reads.writes |= changes && table.ours;
    if (inserts && table.ours && table.plain && list_member_int(plan->resultRelations, index)) continue;
    (table.ours ? reads.gcl : reads.others) = true;
  }
  return reads;
}

// A plan may be shared with the plan cache, so a copy of its top says it (pg_txn.writers-without-parallel).
void forbid_workers(QueryDesc* query) {
  if (!query->plannedstmt->parallelModeNeeded) return;
  PlannedStmt* copy = static_cast<PlannedStmt*>(palloc(sizeof(PlannedStmt)));
  *copy = *query->plannedstmt;
  copy->parallelModeNeeded = false;
  query->plannedstmt = copy;
}

// Functions that are not the server's own may read gcl tables, at the query's time if they are stable
// (pg_txn.workers-see-query-time).
bool may_read_gcl(const PlannedStmt* plan) {
  const bool may = plan->parallelModeNeeded || timestamps_all ||
                   (plan->invalItems != NIL && (attached_txns() != nullptr || mixed_commits_seen()));
  return may && serves() && (XactIsoLevel != XACT_SERIALIZABLE || serializable_uses_gcl());
}

// The transaction's snapshot, and the copy of it that the query has (pg_txn.repeatable-read-once): all of its queries
// see the same moment.
void set_serializable_time(Snapshot of_query) {
  if (!needs_time(of_query)) return;
  Snapshot own = GetTransactionSnapshot();
  if (own->whenTaken != 0) {
    if (of_query->whenTaken == 0 && own->whenTaken > 0) of_query->whenTaken = own->whenTaken;
    return;
  }
  const uint64 taken = own->snapXactCompletionCount;
  own->whenTaken = time_of(own, Ended::kAny);
  of_query->whenTaken = own->whenTaken;
  if (own->snapXactCompletionCount != taken) renew_as(of_query, own);
}

void set_query_time(QueryDesc* query, const Reads& reads) {
  const PlannedStmt* plan = query->plannedstmt;
  if (reads.gcl) {
    if (XactIsoLevel == XACT_SERIALIZABLE) set_serializable_time(query->snapshot);
    const bool alone = !reads.others && plan->invalItems == NIL;
    set_time(query->crosscheck_snapshot);
    set_time(query->snapshot, alone ? Ended::kMixed : Ended::kAny, reads.writes ? Intent::kWrite : Intent::kRead);
  } else if (may_read_gcl(plan)) {
    set_time(query->snapshot);
  }
  if (reads.others || plan->invalItems != NIL) note_use(query->snapshot);
}

void start_in_leader(QueryDesc* query, int flags) {
  QueryStart start{.plan = query->plannedstmt, .reads_sequences = false};
  set_transaction_time();
  if ((flags & EXEC_FLAG_EXPLAIN_ONLY) == 0) {
    const Reads reads = reads_of(start.plan);
    if (reads.unlogged && start.plan->resultRelations != NIL) note_unlogged_change();
    set_query_time(query, reads);
    start.reads_sequences = reads.sequences;
  }
  for (int i = 0; i < query_start_callbacks; ++i) at_query_start[i](start);
}

void start_query(QueryDesc* query, int flags) {
  if (IsParallelWorker()) {
    if (leader_time == 0 && query->snapshot != nullptr && !needs_time(query->snapshot))
      leader_time = query->snapshot->whenTaken;
  } else if (node_pool() != nullptr) {
    start_in_leader(query, flags);
  }
  // Workers do not know the ids this transaction writes under; a function they call may read gcl tables even where the
  // plan does not.
  if (attached_txns() != nullptr && (attached_txns()->current().wrote() || attached_txns()->session().holding()))
    forbid_workers(query);
  // They would read what is not held; what functions of users read is not known.
  if (XactIsoLevel == XACT_SERIALIZABLE && !XactReadOnly && query->plannedstmt->invalItems != NIL &&
      node_pool() != nullptr)
    forbid_workers(query);
  if (next_start)
    next_start(query, flags);
  else
    standard_ExecutorStart(query, flags);
}

// Portals and savepoints let go of what they owned; the last one's snapshot was the transaction's last
// (pg_txn.idle-counts-not).
void release_between_statements(ResourceReleasePhase phase, bool, bool top, void*) {
  if (phase != RESOURCE_RELEASE_AFTER_LOCKS || top || IsParallelWorker() || IsolationUsesXactSnapshot()) return;
  if (!counts_in() || HaveRegisteredOrActiveSnapshot()) return;
  attached_txns()->set_oldest(std::nullopt);
  attached_txns()->give_back_id_ahead();
  forget_renewed();
}

}  // namespace

// The statement that runs has a copy of the transaction's snapshot from before (pg_txn.repeatable-read-once).
void set_transaction_time() {
  if (XactIsoLevel != XACT_REPEATABLE_READ || !ActiveSnapshotSet()) return;
  Snapshot active = GetActiveSnapshot();
  if (active->snapshot_type != SNAPSHOT_MVCC) return;
  Snapshot own = GetTransactionSnapshot();
  if (own->whenTaken != 0) return;
  const uint64 taken = own->snapXactCompletionCount;
  own->whenTaken = MyBackendType == B_BACKEND && serves() ? time_of(own, Ended::kAny) : kUsed;
  if (active->whenTaken != 0) return;
  active->whenTaken = own->whenTaken;
  if (own->snapXactCompletionCount != taken) renew_as(active, own);
}

TimestampTz time_to_export(Snapshot snapshot) {
  if (serves() && (XactIsoLevel != XACT_SERIALIZABLE || serializable_uses_gcl())) set_time(snapshot);
  return snapshot->whenTaken > 0 ? snapshot->whenTaken : 0;
}

void set_imported_time(TimestampTz time) {
  if (IsolationUsesXactSnapshot()) GetTransactionSnapshot()->whenTaken = time != 0 ? time : kNoTime;
}

engine::Snapshot engine_snapshot(Snapshot snapshot) {
  using Kind = engine::SnapshotKind;
  if (snapshot == nullptr) return {.kind = Kind::kAny};
  switch (snapshot->snapshot_type) {
    case SNAPSHOT_MVCC:
      set_time(snapshot);
      if (snapshot->whenTaken == kNoTime) raise_no_time();
      return {.kind = Kind::kMvcc,
              .ts = {uint64_t(snapshot->whenTaken)},
              .command = snapshot->curcid,
              .strict = session().holding()};
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

void call_at_query_start(void (*callback)(const QueryStart&)) {
  VERIFY(query_start_callbacks < int(std::size(at_query_start)));
  at_query_start[query_start_callbacks++] = callback;
}

void install_snapshot_hooks() {
  CacheRegisterRelcacheCallback(forget_known, Datum(0));
  next_start = ExecutorStart_hook;
  ExecutorStart_hook = start_query;
  // (pg_txn.idle-counts-not)
  call_at_first_attach([] { RegisterResourceReleaseCallback(release_between_statements, nullptr); });
}

}  // namespace gcl
