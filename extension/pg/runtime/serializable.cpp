#include "extension/pg/runtime/serializable.hpp"

#include "extension/engine/serializable/transaction_holds.hpp"
#include "extension/pg/runtime/backend.hpp"
#include "extension/pg/runtime/gcl_table.hpp"
#include "extension/pg/runtime/settings.hpp"

extern "C" {
#include "access/parallel.h"
#include "access/transam.h"
#include "catalog/catalog.h"
#include "catalog/pg_class.h"
#include "executor/executor.h"
#include "nodes/parsenodes.h"
#include "parser/parsetree.h"
#include "storage/lmgr.h"
#include "storage/lock.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
}

namespace gcl {

namespace {

// Of the running transaction.  A word, as each end of a transaction clears it.
struct {
  bool gcl, local;       // it has used such tables
  bool was_read_write;   // when a statement began that had a snapshot
  bool began_read_only;  // its first touch of a gcl table was READ ONLY
} use{};

ExecutorCheckPerms_hook_type next_check = nullptr;

// Of the query that was started last, until COPY starts, which is none.
constexpr int kNowaitMax = 8;  // a query with more waits for pages of the rest
Oid nowait_tables[kNowaitMax];
int nowait_count = 0;
int nowait_noted = 0;  // of a query whose tables are about to be checked

[[noreturn]] void refuse_mixed() {
  ereport(ERROR, errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
          errmsg("gcl tables and local tables cannot be used in one SERIALIZABLE transaction"),
          errdetail("Local tables are watched by this server alone, gcl tables by all primaries."),
          errhint("Use REPEATABLE READ, or make the local tables gcl tables, too."));
  pg_unreachable();
}

enum class Whose : uint8_t { kNobodys, kGcl, kLocal };

// As for the server's own watch, temporary tables and materialized views do not count.  Rows of a partitioned table lie
// in partitions, which a query names; but not one that inserts.
Whose whose(const RangeTblEntry* entry) {
  if (entry->rtekind != RTE_RELATION || entry->relid < FirstNormalObjectId) return Whose::kNobodys;
  const bool inserts = entry->relkind == RELKIND_PARTITIONED_TABLE && (entry->requiredPerms & ACL_INSERT) != 0;
  if (entry->relkind != RELKIND_RELATION && !inserts) return Whose::kNobodys;
  Relation rel = RelationIdGetRelation(entry->relid);
  if (!RelationIsValid(rel)) return Whose::kNobodys;
  Whose result = Whose::kLocal;
  if (is_gcl_table(rel)) result = Whose::kGcl;
  if (rel->rd_rel->relpersistence == RELPERSISTENCE_TEMP) result = Whose::kNobodys;
  if (inserts && OidIsValid(rel->rd_rel->relam)) result = Whose::kGcl;
  RelationClose(rel);
  return result;
}

// Every query passes here before it begins, and COPY.
bool check_tables(List* tables, bool raises) {
  nowait_count = nowait_noted;
  nowait_noted = 0;
  if (next_check != nullptr && !next_check(tables, raises)) return false;
  if (XactIsoLevel != XACT_SERIALIZABLE || node_pool() == nullptr || IsParallelWorker()) return true;
  note_statement();
  if (holds_given_up()) meet_given_up();
  ListCell* cell;
  foreach (cell, tables) {
    const Whose table = whose(static_cast<const RangeTblEntry*>(lfirst(cell)));
    if (table == Whose::kLocal) use.local = true;
    if (table == Whose::kGcl && !use.gcl) (void)session();  // use_in_serializable()
    if (use.local && use.gcl) refuse_mixed();
  }
  return true;
}

bool is_locked(Oid table, LOCKMODE least) {
  LOCKTAG tag;
  SET_LOCKTAG_RELATION(tag, MyDatabaseId, table);
  for (LOCKMODE mode = least; mode <= MaxLockMode; ++mode)
    if (LockHeldByMe(&tag, mode)) return true;
  return false;
}

}  // namespace

void use_in_serializable(engine::TransactionHolds& holds, engine::TxnSystem& txns, bool may_hold) {
  if (use.gcl) return;
  if (use.local) refuse_mixed();
  // A savepoint, or a function, may be READ ONLY in a transaction that is not.
  const bool reads_only = XactReadOnly && !use.was_read_write && GetCurrentTransactionNestLevel() == 1;
  if (may_hold && !IsParallelWorker() && !reads_only) {
    txns.set_host_xid(GetTopTransactionId());  // what others of this server wait for
    holds.begin(uint32_t(settings.max_page_holds), settings.hold_yield_ms);
  }
  use.began_read_only = may_hold && reads_only;
  use.gcl = true;  // not if there is no id
}

void note_serializable_statement() noexcept {
  if (FirstSnapshotSet && !XactReadOnly) use.was_read_write = true;
}

void require_holds() {
  if (!use.began_read_only) return;
  ereport(ERROR, errcode(ERRCODE_READ_ONLY_SQL_TRANSACTION),
          errmsg("cannot change gcl tables in a SERIALIZABLE transaction that was READ ONLY when it first read them"),
          errdetail("What it read then may have been changed since."),
          errhint("Let it read gcl tables before it calls a function that sets transaction_read_only."));
}

void note_row_marks(const PlannedStmt* plan) {
  nowait_noted = 0;
  ListCell* cell;
  foreach (cell, plan->rowMarks) {
    const PlanRowMark* mark = lfirst_node(PlanRowMark, cell);
    if (mark->waitPolicy != LockWaitError || mark->isParent || nowait_noted == kNowaitMax) continue;
    nowait_tables[nowait_noted++] = rt_fetch(mark->rti, plan->rtable)->relid;
  }
}

void require_may_wait(Relation rel) {
  if (rel == nullptr || nowait_count == 0) return;
  const Oid table = rel->rd_rel->relkind == RELKIND_INDEX ? rel->rd_index->indrelid : RelationGetRelid(rel);
  for (int i = 0; i < nowait_count; ++i)
    if (nowait_tables[i] == table)
      ereport(ERROR, errcode(ERRCODE_LOCK_NOT_AVAILABLE),
              errmsg("could not obtain lock on row in relation \"%s\"", get_rel_name(table)),
              errdetail("A SERIALIZABLE transaction holds its page."));
}

void refuse_given_up(uint32_t idle_ms) {
  ereport(ERROR, errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
          errmsg("could not serialize access, because the transaction was idle"),
          errdetail("Its pages were given up to others, who waited, after it had been idle for %u ms.", idle_ms),
          errhint("The transaction might succeed if retried. A superuser may raise gcl.hold_yield for it."));
  pg_unreachable();
}

void refuse_too_many_holds() {
  ereport(ERROR, errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
          errmsg("SERIALIZABLE transactions hold too many pages of gcl tables"),
          errdetail("This one has read more of them than it may hold, which is %d, or than this primary had room for. "
                    "Since then it may only read.",
                    settings.max_page_holds),
          errhint("LOCK TABLE in SHARE MODE what it reads so much of, or raise gcl.max_page_holds; or let it be "
                  "READ ONLY."));
  pg_unreachable();
}

void refuse_stale() {
  ereport(ERROR, errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
          errmsg("could not serialize access due to concurrent changes"),
          errdetail("What this transaction has read was changed since its snapshot, so it may only read."),
          errhint("The transaction might succeed if retried."));
  pg_unreachable();
}

bool serializable_uses_gcl() noexcept { return use.gcl; }
bool serializable_is_local() noexcept { return use.local; }

void forget_serializable() noexcept { use = {}; }

// A lock that was taken in a savepoint goes with it.
HoldsOf holds_of(Relation rel) {
  if (!session().holding()) return {false, false};
  const bool is_index = rel->rd_rel->relkind == RELKIND_INDEX;
  if (rel->rd_rel->relkind == RELKIND_TOASTVALUE || (is_index && IsToastNamespace(RelationGetNamespace(rel))))
    return {false, false};
  if (GetCurrentTransactionNestLevel() > 1) return {true, true};
  const Oid table = is_index ? rel->rd_index->indrelid : RelationGetRelid(rel);
  return {!is_locked(table, ShareLock), !is_locked(table, AccessExclusiveLock)};
}

void install_serializable() {
  next_check = ExecutorCheckPerms_hook;
  ExecutorCheckPerms_hook = check_tables;
}

}  // namespace gcl
