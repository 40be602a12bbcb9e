#include "extension/pg/tableam/temp_tables.hpp"

#include "extension/pg/boundary/pg.hpp"

extern "C" {
#include "nodes/parsenodes.h"
#include "tcop/utility.h"
}

namespace gcl {

namespace {

ProcessUtility_hook_type next_utility = nullptr;

// The access method a temporary table gets if its statement names none; null: the statement makes none.
char** method_of(Node* statement) {
  if (IsA(statement, CreateStmt)) {
    CreateStmt* create = reinterpret_cast<CreateStmt*>(statement);
    if (create->relation->relpersistence == RELPERSISTENCE_TEMP && create->partspec == nullptr)
      return &create->accessMethod;
  } else if (IsA(statement, CreateTableAsStmt)) {
    CreateTableAsStmt* create = reinterpret_cast<CreateTableAsStmt*>(statement);
    if (create->into != nullptr && create->into->rel != nullptr &&
        create->into->rel->relpersistence == RELPERSISTENCE_TEMP)
      return &create->into->accessMethod;
  }
  return nullptr;
}

void run_utility(PlannedStmt* statement, const char* text, bool read_only, ProcessUtilityContext context,
                 ParamListInfo params, QueryEnvironment* environment, DestReceiver* to, QueryCompletion* done) {
  char** method = method_of(statement->utilityStmt);
  if (method != nullptr && *method == nullptr) {
    if (read_only) {
      statement = static_cast<PlannedStmt*>(copyObjectImpl(statement));
      read_only = false;
      method = method_of(statement->utilityStmt);
    }
    *method = pstrdup("heap");
  }
  if (next_utility)
    next_utility(statement, text, read_only, context, params, environment, to, done);
  else
    standard_ProcessUtility(statement, text, read_only, context, params, environment, to, done);
}

}  // namespace

void install_temp_table_hook() {
  next_utility = ProcessUtility_hook;
  ProcessUtility_hook = run_utility;
}

}  // namespace gcl
