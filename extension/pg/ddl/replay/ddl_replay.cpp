#include "extension/pg/ddl/replay/ddl_replay.hpp"

#include "extension/pg/catalog/shared_relations.hpp"
extern "C" {
#include "access/parallel.h"
#include "commands/dbcommands.h"
#include "nodes/nodes.h"
#include "parser/analyze.h"
#include "storage/lmgr.h"
#include "tcop/tcopprot.h"
#include "tcop/utility.h"
#include "utils/acl.h"
#include "utils/guc.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/snapmgr.h"
}

#include "extension/pg/ddl/classify/cluster_scope.hpp"
#include "extension/pg/ddl/classify/ddl_plan.hpp"
#include "extension/pg/ddl/classify/ddl_scope.hpp"
#include "extension/pg/ddl/classify/partitions.hpp"
#include "extension/pg/ddl/classify/sequence_scope.hpp"
#include "extension/pg/ddl/node/worker_settings.hpp"
#include "extension/pg/ddl/objects/databases.hpp"
#include "extension/pg/ddl/record/attribute_versions.hpp"
#include "extension/pg/ddl/record/if_not_exists.hpp"
#include "extension/pg/ddl/record/record_settings.hpp"
#include "extension/pg/ddl/replay/added_defaults.hpp"
#include "extension/pg/ddl/replay/ddl_results.hpp"
#include "extension/pg/ddl/replay/domain_checks.hpp"
#include "extension/pg/ddl/replay/extension_version.hpp"
#include "extension/pg/ddl/replay/no_user_code.hpp"
#include "extension/pg/ddl/replay/oid_queue.hpp"
#include "extension/pg/ddl/replay/partition_bounds.hpp"
#include "extension/pg/ddl/replay/partition_keys.hpp"
#include "extension/pg/ddl/replay/role_statement.hpp"
#include "extension/pg/ddl/replay/silent_triggers.hpp"

namespace gcl {
namespace {

// A statement that runs so cannot become another user (ddl.no-user-code).
constexpr int kConfined = SECURITY_RESTRICTED_OPERATION | SECURITY_LOCAL_USERID_CHANGE;

int position_of(const List* list, int value) {
  for (int i = 0; i < list_length(list); ++i)
    if (list_nth_int(list, i) == value) return i;
  return -1;
}

void set_ms(const char* setting, int ms) {
  char text[32];
  snprintf(text, sizeof text, "%d", ms);
  (void)set_config_option(setting, text, PGC_SUSET, PGC_S_SESSION, GUC_ACTION_SAVE, true, 0, false);
}

// The coordinator has made and scanned its rows; a constraint that held for them holds.
void spare_the_rows(Node* statement) {
  if (IsA(statement, CreateTableAsStmt)) castNode(CreateTableAsStmt, statement)->into->skipData = true;
  if (!IsA(statement, AlterTableStmt)) return;
  ListCell* cell;
  foreach (cell, castNode(AlterTableStmt, statement)->cmds) {
    const auto* command = lfirst_node(AlterTableCmd, cell);
    if (command->subtype != AT_AddConstraint) continue;
    auto* constraint = castNode(Constraint, command->def);
    if ((constraint->contype != CONSTR_CHECK && constraint->contype != CONSTR_FOREIGN) || constraint->skip_validation)
      continue;
    constraint->skip_validation = true;
    constraint->initially_valid = true;
  }
}

// The same names must mean the same relations here: a local table may stand in their way.
void check_targets(const DdlRecord* record, const DdlPlan& plan) {
  bool same = list_length(plan.targets) == list_length(record->targets);
  for (int i = 0; same && i < list_length(plan.targets); ++i)
    same = static_cast<DdlTarget*>(list_nth(plan.targets, i))->relation ==
           static_cast<DdlTarget*>(list_nth(record->targets, i))->relation;
  if (!same || plan.scope != DdlScope::kCluster)
    ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                    errmsg("the statement names other objects here than on the primary it came from")));
}

// Runs it as a part of another statement: such parts fire no event triggers (ddl.no-user-code).
void run_utility(const DdlRecord* record, PlannedStmt* statement) {
  if (!find_databases(statement->utilityStmt, record)) return;
  switch (record->to_database) {
    case DdlDatabase::kMakes:
      return make_database_again(castNode(CreatedbStmt, statement->utilityStmt), record);
    case DdlDatabase::kDrops:
    case DdlDatabase::kDropsShared:
      (void)lock_database_to_drop(castNode(DropdbStmt, statement->utilityStmt));
      return;
    case DdlDatabase::kRenames:
      check_database_statement(statement->utilityStmt, false);
      end_idle_workers(record->database);
      break;
    default:
      break;
  }
  ProcessUtility(statement, record->sql, false, PROCESS_UTILITY_SUBCOMMAND, nullptr, nullptr, None_Receiver, nullptr);
}

// Nothing else is planned or run, whatever the record says.
PlannedStmt* utility_statement_of(const DdlRecord* record) {
  List* raw = pg_parse_query(record->sql);
  if (list_length(raw) != 1) elog(ERROR, "gcl: a DDL record holds %d statements", list_length(raw));
  List* queries = pg_analyze_and_rewrite_fixedparams(linitial_node(RawStmt, raw), record->sql, nullptr, 0, nullptr);
  if (list_length(queries) != 1 || linitial_node(Query, queries)->commandType != CMD_UTILITY)
    elog(ERROR, "gcl: a DDL record is not a utility statement");
  return linitial_node(PlannedStmt, pg_plan_queries(queries, record->sql, 0, nullptr));
}

void replay_statement(const DdlRecord* record, PlannedStmt* statement, const List* spared, const List* tables) {
  const List* keys = spare_keys(statement->utilityStmt);
  begin_replay(record);
  const List* silent = IsA(statement->utilityStmt, TruncateStmt) ? silence_triggers(record->targets) : NIL;
  run_utility(record, statement);
  CommandCounterIncrement();
  let_triggers_speak(silent);
  tell_true_defaults(spared, tables);
  tell_true_keys(keys);
  finish_oid_queue();
}

// The coordinator has none, so it does not know what has been done with the one that is here (ddl.database-by-name).
void refuse_another_extension(const Node* statement) {
  if (!IsA(statement, CreateExtensionStmt) || !OidIsValid(gcl_access_method())) return;
  ereport(ERROR, (errcode(ERRCODE_DUPLICATE_OBJECT),
                  errmsg("the extension gcl is in the database here already, and not where it is to be created"),
                  errhint("The next DDL in the database on a primary that has the extension creates it there, too.")));
}

void run_statement(const DdlRecord* record) {
  if (record->shared) require_common_encoding(record->sql);
  PushActiveSnapshot(GetTransactionSnapshot());
  PlannedStmt* planned = utility_statement_of(record);
  Node* statement = planned->utilityStmt;
  refuse_another_extension(statement);
  require_library_for(statement);
  const DdlPlan plan = plan_ddl(statement);
  check_targets(record, plan);
  refuse_checks_of_local_rows(statement);
  // The server refuses to look at such a setting in confinement; these statements have nothing else in them that
  // speaks.
  if (stores_session_user(statement, record)) SetUserIdAndSecContext(GetUserId(), 0);
  spare_the_rows(statement);
  put_bounds(statement, record->bounds);
  put_password(statement, record);
  if (bool* if_not_exists = if_not_exists_of(statement)) *if_not_exists = false;
  hand_to_server_again(record->sequences);
  const List* tables = plan.changes_columns ? tables_with_columns(plan) : NIL;
  ListCell* cell;
  foreach (cell, tables) lower_versions(versions_of(lfirst_oid(cell)));
  const List* spared =
      IsA(statement, AlterTableStmt) ? spare_defaults(castNode(AlterTableStmt, statement), record->added) : NIL;
  inline_no_user_code(IsA(statement, AlterDomainStmt));
  PG_TRY();
  { replay_statement(record, planned, spared, tables); }
  PG_FINALLY();
  {
    end_replay();
    inline_no_user_code(false);
  }
  PG_END_TRY();
  refuse_checks_of_local_rows(statement);
  PopActiveSnapshot();
}

// SESSION_USER and CURRENT_USER are those of the coordinator, and the statement cannot become another user
// (ddl.no-user-code).
void run_as_coordinator(const DdlRecord* record) {
  const Oid before = GetSessionUserId();
  const Oid session_role = get_role_oid(record->session_role, false);
  Oid user;
  int context;
  GetUserIdAndSecContext(&user, &context);
  PG_TRY();
  {
    SetSessionAuthorization(session_role, superuser_arg(session_role));
    SetUserIdAndSecContext(get_role_oid(record->role, false), context | kConfined);
    run_statement(record);
  }
  PG_FINALLY();
  {
    SetUserIdAndSecContext(user, context);
    SetSessionAuthorization(before, superuser_arg(before));
  }
  PG_END_TRY();
}

}  // namespace

void DdlReplay::begin() {
  forget_session_settings();
  StartTransactionCommand();
  (void)GetTopTransactionId();
  open_ = true;
  depth_ = 0;
  forget_drop();
}

void DdlReplay::go_to(const List* path, const List* aborted) {
  HOLD_INTERRUPTS();  // nothing here waits; half of the way would be neither the coordinator's savepoint nor another
  int common = 0;
  while (common < depth_ && common < list_length(path) && path_[common] == list_nth_int(path, common)) ++common;
  for (; depth_ > common; --depth_) {
    if (position_of(aborted, path_[depth_ - 1]) >= 0)
      RollbackAndReleaseCurrentSubTransaction();
    else
      ReleaseCurrentSubTransaction();
  }
  for (; depth_ < list_length(path); ++depth_) {
    if (depth_ == kDepthMax)
      ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED), errmsg("too many savepoints around DDL")));
    BeginInternalSubTransaction(nullptr);
    path_[depth_] = list_nth_int(path, depth_);
  }
  RESUME_INTERRUPTS();
}

void DdlReplay::lock(const List* targets, DdlLockTerms terms) {
  const int nest = NewGUCNestLevel();
  set_ms("lock_timeout", Max(terms.lock_timeout_ms, 0));
  if (terms.deadlock_timeout_ms > 0) set_ms("deadlock_timeout", terms.deadlock_timeout_ms);
  ListCell* cell;
  foreach (cell, targets) {
    const auto* target = static_cast<DdlTarget*>(lfirst(cell));
    if (terms.lock_timeout_ms >= 0)
      LockRelationOid(target->relation, target->mode);
    else if (!ConditionalLockRelationOid(target->relation, target->mode))
      ereport(ERROR, (errcode(ERRCODE_LOCK_NOT_AVAILABLE),
                      errmsg("could not obtain lock on relation \"%s\"", get_rel_name(target->relation))));
    if (get_rel_relkind(target->relation) == 0 && !terms.may_be_gone)
      ereport(ERROR, (errcode(ERRCODE_UNDEFINED_TABLE), errmsg("relation %u is not here", target->relation)));
  }
  AtEOXact_GUC(true, nest);
}

void DdlReplay::run(const DdlRecord* record) {
  const int nest = NewGUCNestLevel();
  take_settings(record);
  take_setting("check_function_bodies",
               "off");  // the coordinator has looked at them, with its local and temporary tables
  run_as_coordinator(record);
  AtEOXact_GUC(true, nest);
  Oid user;
  int context;
  GetUserIdAndSecContext(&user, &context);
  SetUserIdAndSecContext(user, context | kConfined);  // until the end, or until the rollback of an ERROR
  PushActiveSnapshot(GetTransactionSnapshot());
  finish_replay(record);
  PopActiveSnapshot();
  SetUserIdAndSecContext(user, context);
  if (drops_database(record)) dropped_ = MemoryContextStrdup(TopMemoryContext, record->database);
}

void DdlReplay::forget_drop() {
  if (dropped_) pfree(dropped_);
  dropped_ = nullptr;
}

void DdlReplay::commit() {
  go_to(NIL, NIL);
  if (dropped_) dropdb(dropped_, true, false);
  forget_drop();
  CommitTransactionCommand();
  open_ = false;
}

void DdlReplay::abort() {
  if (open_) AbortOutOfAnyTransaction();
  open_ = false;
  depth_ = 0;
  forget_drop();
}

bool DdlReplay::roll_back_innermost(int depth) {
  if (!open_) return false;
  if (depth_ == 0 || depth_ != depth) {
    abort();
    return false;
  }
  RollbackAndReleaseCurrentSubTransaction();
  --depth_;
  return true;
}

}  // namespace gcl
