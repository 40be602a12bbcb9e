// The ProcessUtility hook: decides what a statement is, and runs those of all primaries everywhere.
#include "extension/pg/catalog/names.hpp"
#include "extension/pg/catalog/shared_relations.hpp"
#include "extension/pg/ddl/base/ddl_port.hpp"
#include "extension/pg/ddl/classify/cluster_scope.hpp"
#include "extension/pg/ddl/classify/ddl_plan.hpp"
#include "extension/pg/ddl/classify/ddl_scope.hpp"
#include "extension/pg/ddl/classify/object_scope.hpp"
#include "extension/pg/ddl/classify/partitions.hpp"
#include "extension/pg/ddl/classify/role_scope.hpp"
#include "extension/pg/ddl/classify/sequence_scope.hpp"
#include "extension/pg/ddl/classify/table_scope.hpp"
#include "extension/pg/ddl/coordinate/ddl_transaction.hpp"
#include "extension/pg/ddl/coordinate/event_triggers.hpp"
#include "extension/pg/ddl/coordinate/half_done.hpp"
#include "extension/pg/ddl/coordinate/lock_table.hpp"
#include "extension/pg/ddl/ddl.hpp"
#include "extension/pg/ddl/node/ddl_node_state.hpp"
#include "extension/pg/ddl/node/ddl_wakeup.hpp"
#include "extension/pg/ddl/objects/databases.hpp"
#include "extension/pg/ddl/peer/log_end.hpp"
#include "extension/pg/ddl/record/attribute_versions.hpp"
#include "extension/pg/ddl/record/if_not_exists.hpp"
#include "extension/pg/ddl/record/record_settings.hpp"
#include "extension/pg/ddl/replay/added_defaults.hpp"
#include "extension/pg/ddl/replay/ddl_results.hpp"
#include "extension/pg/ddl/replay/extension_version.hpp"
#include "extension/pg/ddl/replay/no_user_code.hpp"
#include "extension/pg/ddl/replay/partition_bounds.hpp"
#include "extension/pg/ddl/replay/role_statement.hpp"
#include "extension/pg/runtime/ddl_hooks.hpp"
#include "extension/pg/runtime/serializable.hpp"
#include "extension/pg/sequence/copy_identity_columns.hpp"
#include "extension/pg/sequence/sequence_functions.hpp"
#include "extension/pg/txn/exported_snapshots.hpp"

extern "C" {
#include "access/xlog.h"
#include "commands/defrem.h"
#include "commands/extension.h"
#include "storage/lmgr.h"
#include "tcop/pquery.h"
#include "tcop/utility.h"
#include "utils/guc.h"
#include "utils/inval.h"
#include "utils/portal.h"
#include "utils/queryjumble.h"
}

namespace gcl {
namespace {

struct Call {  // one call of the hook, to be passed on
  PlannedStmt* statement;
  const char* text;
  bool read_only_tree;
  ProcessUtilityContext context;
  ParamListInfo params;
  QueryEnvironment* environment;
  DestReceiver* destination;
  QueryCompletion* completion;
};

// The end of the chain (ddl.hooks-run-once): behind us is the server alone.
void pass_on(const Call& call) {
  standard_ProcessUtility(call.statement, call.text, call.read_only_tree, call.context, call.params, call.environment,
                          call.destination, call.completion);
}

char* text_of(const Call& call) {
  int location = call.statement->stmt_location, length = call.statement->stmt_len;
  const char* text = CleanQuerytext(call.text, &location, &length);
  return pnstrdup(text, length);
}

bool drops_an_extension(const Node* node) {
  return IsA(node, DropStmt) && reinterpret_cast<const DropStmt*>(node)->removeType == OBJECT_EXTENSION;
}

void pass_on_as(LocalStatement what, const Call& call) {
  const LocalStatement before = set_local_statement(what);
  PG_TRY();
  { pass_on(call); }
  PG_FINALLY();
  { (void)set_local_statement(before); }
  PG_END_TRY();
}

// (ddl.shared-without-local-ties)
[[noreturn]] void refuse_replacement(const char* why, const char* hint = "Drop it, and create it anew.") {
  ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED), errmsg("this would change to whom the object belongs"),
                  errdetail("In its new form %s.", why), errhint("%s", hint)));
  pg_unreachable();
}

[[noreturn]] void refuse_alteration() {
  refuse_replacement(
      "it would be this primary's own, and another one elsewhere, because the statement ties it to a local object or "
      "alters one along",
      "Leave the local object out, or drop it first.");
}

LocalStatement kind_of_local(const Node* node) {
  // DROP EXTENSION of another extension would take along shared objects that depend on it.
  if (drops_an_extension(node)) return LocalStatement::kDropsExtension;
  // These may find their tables by themselves.
  return IsA(node, ReindexStmt) || IsA(node, ClusterStmt) ? LocalStatement::kOther : LocalStatement::kNamed;
}

// Changes that the access hook does not see are found by the name, which is locked by now (ddl.names-decide-unlocked).
void pass_on_local(const Call& call) {
  Node* node = call.statement->utilityStmt;
  if (!OidIsValid(gcl_access_method())) return pass_on(call);
  pass_on_as(kind_of_local(node), call);
  const AskedAgain asked = asked_again(node);
  if (asked == AskedAgain::kNames && plan_ddl(node).scope == DdlScope::kCluster) raise_changed_names();
  if (asked == AskedAgain::kTies && plan_ddl(node).was_shared)
    refuse_replacement("it would become every primary's, and be on this one only");
}

DdlRecord* start_record(const Call& call) {
  auto* record = static_cast<DdlRecord*>(palloc0(sizeof(DdlRecord)));
  record->sql = text_of(call);
  record->role = GetUserNameFromId(GetUserId(), false);
  record->session_role = GetUserNameFromId(GetSessionUserId(), false);
  record->path = savepoint_path();
  record->outcome = pstrdup("");
  record->settings = settings_for(call.statement->utilityStmt);
  return record;
}

// The body of a function in SQL's own form is parsed by every primary; one that is a string is looked at by its
// coordinator.
void hint_at_body(void*) {
  if (ERRCODE_TO_CATEGORY(geterrcode()) == ERRCODE_SYNTAX_ERROR_OR_ACCESS_RULE_VIOLATION)
    errhint("Write the body as a string (AS $$ ... $$), or make what it names on every primary.");
}

// `call` is all of its transaction, and its portal that of a simple query: with the extended protocol the client
// would hear of success before the commit.  A database is made before anything is sent.
bool goes_with_commit(const Call& call, const DdlRecord* record) {
  return call.context == PROCESS_UTILITY_TOPLEVEL && !IsTransactionBlock() && GetCurrentTransactionNestLevel() == 1 &&
         ActivePortal != nullptr && !ActivePortal->visible && record->to_database == DdlDatabase::kNothing;
}

void send_statement_of(const Node* node, DdlRecord* record, bool last) {
  const bool parsed_body = IsA(node, CreateFunctionStmt) && reinterpret_cast<const CreateFunctionStmt*>(node)->sql_body;
  if (!parsed_body) return send_statement(record, last);
  ErrorContextCallback hint{error_context_stack, hint_at_body, nullptr};
  error_context_stack = &hint;
  send_statement(record, false);
  error_context_stack = hint.previous;
}

// DdlRelationState*: of the tables whose columns it changes.
List* relation_states_before(const DdlPlan& plan) {
  const auto* target = static_cast<DdlTarget*>(linitial(plan.targets));
  List* before = NIL;
  ListCell* cell;
  foreach (cell, tables_with_columns(plan)) {
    LockRelationOid(lfirst_oid(cell), target->mode);
    DdlRelationState* state = versions_of(lfirst_oid(cell));
    lower_versions(state);
    before = lappend(before, state);
  }
  return before;
}

DdlRight lock_for(const DdlPlan& plan) { return plan.shared ? DdlRight::kWhole : DdlRight::kDatabase; }

void open_ddl_transaction_for(const Call& call, const DdlPlan& plan) {
  const bool of_cluster = is_of_cluster(call.statement->utilityStmt);
  if (of_cluster) {
    require_cluster();
    require_common_encoding(text_of(call));
    ddl_attach_for_any_locale();
  } else {
    ddl_require_locale();
    ddl_require_serving();
  }
  open_ddl_transaction(lock_for(plan), false, of_cluster);
  require_log_room();
}

// A statement that is run here and told to the others.
class Captured final : public Capture {
 public:
  Captured(const Call& call, const DdlPlan& plan)
      : Capture(call.statement->utilityStmt, start_record(call)), call_(call), plan_(plan) {
    GetUserIdAndSecContext(&user_, &user_context_);
    // The server scribbles on the original.
    if (IsA(statement, AlterTableStmt)) altered_ = static_cast<AlterTableStmt*>(copyObjectImpl(statement));
    exempt_ =
        IsA(statement, CreateExtensionStmt) || IsA(statement, AlterExtensionStmt) || drops_an_extension(statement);
  }

  void run() {
    prepare();
    pass_on(call_);
    if (stage != CaptureStage::kDone) tell(goes_with_commit(call_, record));
  }

  void pause() override {
    as_at_first([this] { take_back(); });
  }
  void resume() override {
    as_at_first([this] {
      if (disturbed) plan_again();
      prepare();
    });
  }
  void finish() override {
    as_at_first([this] { tell(false); });
  }

 private:
  // The function of an event trigger may have a user and settings of its own (ddl.event-triggers-apart).
  template <class Work>
  void as_at_first(Work work) {
    Oid user;
    int user_context;
    GetUserIdAndSecContext(&user, &user_context);
    MemoryContext caller = MemoryContextSwitchTo(context);
    const int nest = NewGUCNestLevel();
    take_settings(record);
    SetUserIdAndSecContext(user_, user_context_);
    work();
    SetUserIdAndSecContext(user, user_context);
    AtEOXact_GUC(true, nest);
    MemoryContextSwitchTo(caller);
  }

  void prepare() {
    check_order_before(plan_.targets);
    record->targets = plan_.targets;
    before_ = plan_.changes_columns ? relation_states_before(plan_) : NIL;
    record->sequences = hand_to_server(plan_.sequences);
  }

  void take_back() {
    ListCell* cell;
    foreach (cell, before_) raise_versions(static_cast<DdlRelationState*>(lfirst(cell)));
    take_from_server(record);
    CommandCounterIncrement();
  }

  // The names in it may mean something else now.
  void plan_again() {
    CommandCounterIncrement();
    plan_ = plan_ddl(call_.statement->utilityStmt);
    if (plan_.scope != DdlScope::kCluster || plan_.leaves)
      ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
                      errmsg("an event trigger has changed to whom belongs what the statement is about"),
                      errdetail("It was every primary's before the triggers on ddl_command_start ran."),
                      errhint("Run what the trigger does as a statement of its own.")));
    open_ddl_transaction_for(call_, plan_);
    if (plan_.targets != NIL) lock_everywhere(plan_.targets);
    disturbed = false;
  }

  void tell(bool last) {
    Node* node = call_.statement->utilityStmt;
    CommandCounterIncrement();
    ListCell* cell;
    foreach (cell, before_) raise_versions(static_cast<DdlRelationState*>(lfirst(cell)));
    record->bounds = bounds_of(node);
    if (altered_ && before_ != NIL) record->added = added_defaults(altered_, before_);
    const bool everywhere = end_capture(this, record, plan_, exempt_);
    if (!everywhere && plan_.was_shared && !replaces(node)) refuse_alteration();
    if (!everywhere && plan_.was_shared)
      refuse_replacement("it would be this primary's own, and another one elsewhere");
    hide_password(node, record);
    name_version(node, record);
    const bool* if_not_exists = if_not_exists_of(node);
    if (if_not_exists && *if_not_exists && made_nothing(record)) return;
    if (record->to_database == DdlDatabase::kMakes) database_made(record->database);
    if (!everywhere) return;
    check_order_after(record);
    send_statement_of(node, record, last);
  }

  const Call& call_;
  DdlPlan plan_;
  const AlterTableStmt* altered_ = nullptr;
  const List* before_ = nullptr;  // DdlRelationState*
  bool exempt_;
  Oid user_;
  int user_context_;
};

void run_captured(Call call, const DdlPlan& plan) {
  // Event triggers know the statement by its address; the server would copy a read-only one.
  if (call.read_only_tree) call.statement = static_cast<PlannedStmt*>(copyObjectImpl(call.statement));
  call.read_only_tree = false;
  Captured captured(call, plan);
  begin_capture(&captured);
  PG_TRY();
  { captured.run(); }
  PG_FINALLY();
  { leave_capture(&captured); }
  PG_END_TRY();
}

// The sequence becomes this primary's own.  Others that need it fail to drop it, and so does the statement.
void let_leave(const Call& call, const DdlPlan& plan) {
  DdlRecord* record = start_record(call);
  record->targets = plan.targets;
  record->sql = statement_to_drop(linitial_oid(plan.sequences));
  (void)hand_to_server(plan.sequences);
  pass_on_as(LocalStatement::kLeaving, call);
  CommandCounterIncrement();
  send_statement(record, false);
}

// Nothing that could fail is left to do when the files go (ddl.databases-made-everywhere).
void drop_everywhere(const Call& call, const DdlPlan& plan) {
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
[[noreturn]] void refuse_for_rights(const Call& call) {
  pass_on(call);
  elog(ERROR, "gcl: the server has done what it was to refuse");
  pg_unreachable();
}

// `before`: the plan, before there was a lock.
void run_everywhere(const Call& call, const DdlPlan& before) {
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

void lock_table(const Call& call, const LockStmt* statement) {
  if (IsInParallelMode()) return pass_on(call);
  const SharedLock lock = begin_shared_lock(statement);
  pass_on(call);
  end_shared_lock(lock);
}

// Statements that clients of any table send all the time go to the server unexamined, at its own price.
bool is_of_every_client(const Node* node) { return IsA(node, TransactionStmt) || IsA(node, ExecuteStmt); }

// Statements that cannot be ours, or that are part of one that is already being captured or replayed.
bool none_of_ours(const Call& call) {
  return call.context == PROCESS_UTILITY_SUBCOMMAND || replaying() || IsBinaryUpgrade || !IsUnderPostmaster ||
         RecoveryInProgress() || !IsTransactionState() || creating_extension;
}

bool stays_here(const Call& call) {
  const Node* node = call.statement->utilityStmt;
  if (!may_concern_us(node) || none_of_ours(call)) return true;
  if (!is_of_cluster(node)) return !ddl_pool_attached();
  if (!ddl_local_administration()) return false;
  check_database_statement(node, true);
  leave_database(node);  // a superuser's
  return true;
}

void import_snapshot(Call call) {
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
void alter_sequence_again(const Call& call) {
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
[[gnu::noinline]] void look_at(Call call) {
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
