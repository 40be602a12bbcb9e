#include "extension/pg/ddl/captured_statement.hpp"

#include "extension/pg/catalog/shared_relations.hpp"
#include "extension/pg/ddl/base/ddl_port.hpp"
#include "extension/pg/ddl/classify/cluster_scope.hpp"
#include "extension/pg/ddl/classify/ddl_scope.hpp"
#include "extension/pg/ddl/classify/object_scope.hpp"
#include "extension/pg/ddl/classify/partitions.hpp"
#include "extension/pg/ddl/classify/sequence_scope.hpp"
#include "extension/pg/ddl/coordinate/ddl_transaction.hpp"
#include "extension/pg/ddl/coordinate/half_done.hpp"
#include "extension/pg/ddl/objects/databases.hpp"
#include "extension/pg/ddl/peer/log_end.hpp"
#include "extension/pg/ddl/record/attribute_versions.hpp"
#include "extension/pg/ddl/record/captures.hpp"
#include "extension/pg/ddl/record/if_not_exists.hpp"
#include "extension/pg/ddl/record/record_settings.hpp"
#include "extension/pg/ddl/replay/added_defaults.hpp"
#include "extension/pg/ddl/replay/ddl_results.hpp"
#include "extension/pg/ddl/replay/extension_version.hpp"
#include "extension/pg/ddl/replay/partition_bounds.hpp"
#include "extension/pg/ddl/replay/role_statement.hpp"
#include "extension/pg/runtime/ddl_hooks.hpp"

extern "C" {
#include "storage/lmgr.h"
#include "tcop/pquery.h"
#include "utils/guc.h"
#include "utils/portal.h"
}

namespace gcl {
namespace {

[[noreturn]] void refuse_alteration() {
  refuse_replacement(
      "it would be this primary's own, and another one elsewhere, because the statement ties it to a local object or "
      "alters one along",
      "Leave the local object out, or drop it first.");
}

// The body of a function in SQL's own form is parsed by every primary; one that is a string is looked at by its
// coordinator.
void hint_at_body(void*) {
  if (ERRCODE_TO_CATEGORY(geterrcode()) == ERRCODE_SYNTAX_ERROR_OR_ACCESS_RULE_VIOLATION)
    errhint("Write the body as a string (AS $$ ... $$), or make what it names on every primary.");
}

// `call` is all of its transaction, and its portal that of a simple query: with the extended protocol the client
// would hear of success before the commit.  A database is made before anything is sent.
bool goes_with_commit(const UtilityCall& call, const DdlRecord* record) {
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

class Captured final : public Capture {
 public:
  Captured(const UtilityCall& call, const DdlPlan& plan)
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

  const UtilityCall& call_;
  DdlPlan plan_;
  const AlterTableStmt* altered_ = nullptr;
  const List* before_ = nullptr;  // DdlRelationState*
  bool exempt_;
  Oid user_;
  int user_context_;
};

}  // namespace

void open_ddl_transaction_for(const UtilityCall& call, const DdlPlan& plan) {
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

void run_captured(UtilityCall call, const DdlPlan& plan) {
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

}  // namespace gcl
