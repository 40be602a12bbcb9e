// The ProcessUtility hook: decides what a statement is, and runs those of all primaries everywhere.
#include "extension/pg/catalog/names.hpp"
#include "extension/pg/catalog/shared_relations.hpp"
#include "extension/pg/ddl/base/ddl_port.hpp"
#include "extension/pg/ddl/captured_statement.hpp"
#include "extension/pg/ddl/classify/cluster_scope.hpp"
#include "extension/pg/ddl/classify/ddl_plan.hpp"
#include "extension/pg/ddl/classify/ddl_scope.hpp"
#include "extension/pg/ddl/classify/object_scope.hpp"
#include "extension/pg/ddl/classify/role_scope.hpp"
#include "extension/pg/ddl/classify/sequence_scope.hpp"
#include "extension/pg/ddl/classify/table_scope.hpp"
#include "extension/pg/ddl/coordinate/ddl_transaction.hpp"
#include "extension/pg/ddl/coordinate/event_triggers.hpp"
#include "extension/pg/ddl/coordinate/lock_table.hpp"
#include "extension/pg/ddl/ddl.hpp"
#include "extension/pg/ddl/node/ddl_node_state.hpp"
#include "extension/pg/ddl/node/ddl_wakeup.hpp"
#include "extension/pg/ddl/objects/databases.hpp"
#include "extension/pg/ddl/replay/ddl_results.hpp"
#include "extension/pg/ddl/replay/no_user_code.hpp"
#include "extension/pg/ddl/replay/role_statement.hpp"
#include "extension/pg/ddl/utility_call.hpp"
#include "extension/pg/runtime/ddl_hooks.hpp"
#include "extension/pg/runtime/serializable.hpp"
#include "extension/pg/sequence/copy_identity_columns.hpp"
#include "extension/pg/sequence/sequence_functions.hpp"
#include "extension/pg/txn/exported_snapshots.hpp"

extern "C" {
#include "access/xlog.h"
#include "commands/defrem.h"
#include "commands/extension.h"
#include "tcop/utility.h"
#include "utils/inval.h"
}

namespace gcl {
namespace {

void pass_on_as(LocalStatement what, const UtilityCall& call) {
  const LocalStatement before = set_local_statement(what);
  PG_TRY();
  { pass_on(call); }
  PG_FINALLY();
  { (void)set_local_statement(before); }
  PG_END_TRY();
}

LocalStatement kind_of_local(const Node* node) {
  // DROP EXTENSION of another extension would take along shared objects that depend on it.
  if (drops_an_extension(node)) return LocalStatement::kDropsExtension;
  // These may find their tables by themselves.
  return IsA(node, ReindexStmt) || IsA(node, ClusterStmt) ? LocalStatement::kOther : LocalStatement::kNamed;
}

// Changes that the access hook does not see are found by the name, which is locked by now (ddl.names-decide-unlocked).
void pass_on_local(const UtilityCall& call) {
  Node* node = call.statement->utilityStmt;
  if (!OidIsValid(gcl_access_method())) return pass_on(call);
  pass_on_as(kind_of_local(node), call);
  const AskedAgain asked = asked_again(node);
  if (asked == AskedAgain::kNames && plan_ddl(node).scope == DdlScope::kCluster) raise_changed_names();
  if (asked == AskedAgain::kTies && plan_ddl(node).was_shared)
    refuse_replacement("it would become every primary's, and be on this one only");
}

// The sequence becomes this primary's own.  Others that need it fail to drop it, and so does the statement.
void let_leave(const UtilityCall& call, const DdlPlan& plan) {
  DdlRecord* record = start_record(call);
  record->targets = plan.targets;
  record->sql = statement_to_drop(linitial_oid(plan.sequences));
  (void)hand_to_server(plan.sequences);
  pass_on_as(LocalStatement::kLeaving, call);
  CommandCounterIncrement();
  send_statement(record, false);
}

// Nothing that could fail is left to do when the files go (ddl.databases-made-everywhere).
void drop_everywhere(const UtilityCall& call, const DdlPlan& plan) {
  PreventInTransactionBlock(call.context == PROCESS_UTILITY_TOPLEVEL, "DROP DATABASE");
  const Oid database = lock_database_to_drop(reinterpret_cast<const DropdbStmt*>(call.statement->utilityStmt));
  if (!OidIsValid(database)) return pass_on(call);  // which says so
  DdlRecord* record = start_record(call);
  note_plan(record, plan);
  if (has_extension(database)) record->to_database = DdlDatabase::kDropsShared;
  send_statement(record, false);
  drop_pages_of_database(database);
  ddl_pre_commit();
  pass_on(call);
}

// The server's own error says which right is missing (ddl.no-lock-without-right).
[[noreturn]] void refuse_for_rights(const UtilityCall& call) {
  pass_on(call);
  elog(ERROR, "gcl: the server has done what it was to refuse");
  pg_unreachable();
}

// `before`: the plan, before there was a lock.
void run_everywhere(const UtilityCall& call, const DdlPlan& before) {
  if (!has_rights(call.statement->utilityStmt)) refuse_for_rights(call);
  open_ddl_transaction_for(call, before);
  // Others may have changed what the names mean while we waited for the lock.
  AcceptInvalidationMessages();
  const DdlPlan plan = plan_ddl(call.statement->utilityStmt);
  if (plan.scope != DdlScope::kCluster) return pass_on_local(call);
  if (!has_rights(call.statement->utilityStmt)) refuse_for_rights(call);
  leave_database(call.statement->utilityStmt);  // behind the right: a user without it ends no worker
  open_ddl_transaction_for(call, plan);
  if (plan.to_database == DdlDatabase::kDrops) return drop_everywhere(call, plan);
  if (plan.targets != NIL) lock_everywhere(plan.targets);
  note_ddl_begins();
  PG_TRY();
  {
    if (plan.leaves)
      let_leave(call, plan);
    else
      run_captured(call, plan);
  }
  PG_FINALLY();
  { note_ddl_ended(); }
  PG_END_TRY();
}

void lock_table(const UtilityCall& call, const LockStmt* statement) {
  if (IsInParallelMode()) return pass_on(call);
  const SharedLock lock = begin_shared_lock(statement);
  pass_on(call);
  end_shared_lock(lock);
}

// Statements that clients of any table send all the time go to the server unexamined, at its own price.
bool is_of_every_client(const Node* node) { return IsA(node, TransactionStmt) || IsA(node, ExecuteStmt); }

// Statements that cannot be ours, or that are part of one that is already being captured or replayed.
bool none_of_ours(const UtilityCall& call) {
  return call.context == PROCESS_UTILITY_SUBCOMMAND || replaying() || IsBinaryUpgrade || !IsUnderPostmaster ||
         RecoveryInProgress() || !IsTransactionState() || creating_extension;
}

bool stays_here(const UtilityCall& call) {
  const Node* node = call.statement->utilityStmt;
  if (!may_concern_us(node) || none_of_ours(call)) return true;
  if (!is_of_cluster(node)) return !ddl_pool_attached();
  if (!ddl_local_administration()) return false;
  check_database_statement(node, true);
  leave_database(node);  // a superuser's
  return true;
}

void import_snapshot(UtilityCall call) {
  const SnapshotImport imported = begin_import(call.statement);
  call.statement = imported.statement;
  pass_on(call);
  end_import(imported);
}

// EXPLAIN runs it by itself, past this hook.
void refuse_explained_creation(const Node* node) {
  if (!IsA(node, ExplainStmt) || !ddl_pool_attached() || !OidIsValid(gcl_access_method())) return;
  const auto* explain = reinterpret_cast<const ExplainStmt*>(node);
  const auto* query = reinterpret_cast<const Query*>(explain->query);
  if (!IsA(query, Query) || query->commandType != CMD_UTILITY || !IsA(query->utilityStmt, CreateTableAsStmt)) return;
  bool analyze = false;
  ListCell* cell;
  foreach (cell, explain->options)
    if (auto* option = lfirst_node(DefElem, cell); strcmp(option->defname, "analyze") == 0)
      analyze = defGetBoolean(option);
  if (analyze && plan_create_table_as(castNode(CreateTableAsStmt, query->utilityStmt)).scope == DdlScope::kCluster)
    refuse_ddl("EXPLAIN ANALYZE of CREATE TABLE AS", "EXPLAIN ANALYZE the query alone, or add USING heap.");
}

// Part of an ALTER TABLE, or of CREATE TABLE.  It takes no OID; the server would refuse to make its new file while one
// waits to be taken (ddl.upgrade-mode-per-oid).
void alter_sequence_again(const UtilityCall& call) {
  const bool waits = IsBinaryUpgrade;
  IsBinaryUpgrade = false;
  pass_on(call);
  IsBinaryUpgrade = waits;
}

void forget_what_is_discarded(const Node* node) {
  if (!IsA(node, DiscardStmt)) return;
  const DiscardMode target = reinterpret_cast<const DiscardStmt*>(node)->target;
  if (target == DISCARD_ALL || target == DISCARD_SEQUENCES) forget_sequences();
}

// Not inlined: the statements of every client would pay for its frame.
[[gnu::noinline]] void look_at(UtilityCall call) {
  if (ddl_pool_attached()) ddl_statement_begins();
  require_method(call.statement->utilityStmt);
  if (imports_snapshot(call.statement->utilityStmt)) return import_snapshot(call);
  refuse_explained_creation(call.statement->utilityStmt);
  if (ddl_pool_attached() && copies_into_identity_column(call.statement->utilityStmt)) {
    const uint64 rows = copy_into_identity_column(call.statement, call.text);
    if (call.completion) SetQueryCompletion(call.completion, CMDTAG_COPY, rows);
    return;
  }
  if (replaying() && IsA(call.statement->utilityStmt, AlterSeqStmt)) return alter_sequence_again(call);
  if (stays_here(call)) {
    pass_on(call);
    return forget_what_is_discarded(call.statement->utilityStmt);
  }
  // Also READ ONLY transactions may lock.
  if (IsA(call.statement->utilityStmt, LockStmt))
    return lock_table(call, reinterpret_cast<const LockStmt*>(call.statement->utilityStmt));
  check_database_statement(call.statement->utilityStmt, false);
  note_owned_stays_here(call.statement->utilityStmt);
  if (wants_heap_instead(call.statement->utilityStmt)) {
    call.statement = static_cast<PlannedStmt*>(copyObjectImpl(call.statement));
    use_heap_instead(call.statement->utilityStmt);
  }
  const DdlPlan plan = plan_ddl(call.statement->utilityStmt);
  if (plan.scope == DdlScope::kLocal || XactReadOnly || IsInParallelMode()) return pass_on_local(call);
  if (capturing())
    ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
                    errmsg("DDL on gcl tables inside another DDL statement is not supported"),
                    errdetail("What the other statement has done so far is on this primary only."),
                    errhint("Run it in an event trigger on ddl_command_end, or as a statement of its own.")));
  run_everywhere(call, plan);
}

void utility_hook(PlannedStmt* statement, const char* text, bool read_only_tree, ProcessUtilityContext context,
                  ParamListInfo params, QueryEnvironment* environment, DestReceiver* destination,
                  QueryCompletion* completion) {
  if (is_of_every_client(statement->utilityStmt))
    return standard_ProcessUtility(statement, text, read_only_tree, context, params, environment, destination,
                                   completion);
  note_statement();
  look_at({statement, text, read_only_tree, context, params, environment, destination, completion});
}

// (ddl.hooks-run-once)
void require_end_of_chain() {
  if (ProcessUtility_hook == nullptr) return;
  ereport(FATAL, errcode(ERRCODE_CONFIG_FILE_ERROR), errmsg("gcl must be first in shared_preload_libraries"),
          errdetail("A library before it takes part in utility statements, and would miss those that gcl runs itself."),
          errhint("Put gcl before all others in shared_preload_libraries."));
}

}  // namespace

static bool is_replaying() noexcept { return replaying(); }

void install_ddl_hooks() {
  require_end_of_chain();
  install({.require_serving = require_caught_up,
           .serving = serves_here,
           .serving_flag = serves_all_flag,
           .replaying = is_replaying,
           .wake_waits = wake_waiters});
  ProcessUtility_hook = utility_hook;
  install_database_hooks();
  install_event_triggers();
  install_no_user_code();
  install_results_hooks();
  install_ddl_transaction_hooks();
  install_node_state();
}

}  // namespace gcl
