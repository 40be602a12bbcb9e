#include "extension/pg/ddl/utility_call.hpp"

#include "extension/pg/ddl/coordinate/ddl_transaction.hpp"
#include "extension/pg/ddl/record/record_settings.hpp"

extern "C" {
#include "miscadmin.h"
#include "utils/queryjumble.h"
}

namespace gcl {

char* text_of(const UtilityCall& call) {
  int location = call.statement->stmt_location, length = call.statement->stmt_len;
  const char* text = CleanQuerytext(call.text, &location, &length);
  return pnstrdup(text, length);
}

void pass_on(const UtilityCall& call) {
  standard_ProcessUtility(call.statement, call.text, call.read_only_tree, call.context, call.params, call.environment,
                          call.destination, call.completion);
}

DdlRecord* start_record(const UtilityCall& call) {
  auto* record = static_cast<DdlRecord*>(palloc0(sizeof(DdlRecord)));
  record->sql = text_of(call);
  record->role = GetUserNameFromId(GetUserId(), false);
  record->session_role = GetUserNameFromId(GetSessionUserId(), false);
  record->path = savepoint_path();
  record->outcome = pstrdup("");
  record->settings = settings_for(call.statement->utilityStmt);
  return record;
}

bool drops_an_extension(const Node* node) {
  return IsA(node, DropStmt) && reinterpret_cast<const DropStmt*>(node)->removeType == OBJECT_EXTENSION;
}

void refuse_replacement(const char* why, const char* hint) {
  ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED), errmsg("this would change to whom the object belongs"),
                  errdetail("In its new form %s.", why), errhint("%s", hint)));
  pg_unreachable();
}

}  // namespace gcl
