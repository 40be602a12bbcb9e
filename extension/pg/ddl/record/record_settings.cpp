#include "extension/pg/ddl/record/record_settings.hpp"

extern "C" {
#include "nodes/value.h"
#include "utils/guc.h"
}

namespace gcl {
namespace {

// Settings that say what names mean, what is made by default, how a text is read, and what is refused.  Not how values
// are written or computed, because a replay does neither; lock_timeout and the like concern the coordinator alone.
constexpr const char* kSettings[] = {"search_path",
                                     "default_table_access_method",
                                     "default_tablespace",
                                     "DateStyle",
                                     "IntervalStyle",
                                     "TimeZone",
                                     "timezone_abbreviations",
                                     "standard_conforming_strings",
                                     "backslash_quote",
                                     "escape_string_warning",
                                     "array_nulls",
                                     "transform_null_equals",
                                     "quote_all_identifiers",
                                     "check_function_bodies",
                                     "xmloption",
                                     "bytea_output",
                                     "default_text_search_config",
                                     "allow_system_table_mods",
                                     "plpgsql.check_asserts",
                                     "plpgsql.extra_errors",
                                     "plpgsql.extra_warnings",
                                     "plpgsql.print_strict_params",
                                     "plpgsql.variable_conflict",
                                     "extra_float_digits",
                                     "default_toast_compression",
                                     "lc_monetary",
                                     "lc_numeric",
                                     "lc_time",
                                     "lc_messages"};

List* with_setting(List* settings, const char* name) {
  const char* value = GetConfigOption(name, true, false);
  if (!value) return settings;
  auto* setting = static_cast<DdlSetting*>(palloc(sizeof(DdlSetting)));
  *setting = {pstrdup(name), pstrdup(value)};
  return lappend(settings, setting);
}

List* sets_among(const List* options) {
  List* sets = NIL;
  ListCell* cell;
  foreach (cell, options)
    if (auto* option = lfirst_node(DefElem, cell); strcmp(option->defname, "set") == 0)
      sets = lappend(sets, castNode(VariableSetStmt, option->arg));
  return sets;
}

// VariableSetStmt*: what the statement stores for callers of the function, or for connections.
List* sets_of(const Node* statement) {
  switch (nodeTag(statement)) {
    case T_AlterRoleSetStmt:
      return list_make1(reinterpret_cast<const AlterRoleSetStmt*>(statement)->setstmt);
    case T_AlterDatabaseSetStmt:
      return list_make1(reinterpret_cast<const AlterDatabaseSetStmt*>(statement)->setstmt);
    case T_CreateFunctionStmt:
      return sets_among(reinterpret_cast<const CreateFunctionStmt*>(statement)->options);
    case T_AlterFunctionStmt:
      return sets_among(reinterpret_cast<const AlterFunctionStmt*>(statement)->actions);
    default:
      return NIL;
  }
}

void put_value(VariableSetStmt* set, const List* settings) {
  ListCell* cell;
  foreach (cell, settings) {
    const auto* setting = static_cast<DdlSetting*>(lfirst(cell));
    if (pg_strcasecmp(setting->name, set->name) != 0) continue;
    auto* value = makeNode(A_Const);
    value->val.sval = *makeString(pstrdup(setting->value));
    value->location = -1;
    set->kind = VAR_SET_VALUE;
    set->args = list_make1(value);
  }
}

}  // namespace

List* settings_for(const Node* statement) {
  List* settings = NIL;
  for (const char* name : kSettings) settings = with_setting(settings, name);
  ListCell* cell;
  foreach (cell, sets_of(statement))
    if (const auto* set = lfirst_node(VariableSetStmt, cell); set->kind == VAR_SET_CURRENT)
      settings = with_setting(settings, set->name);
  return settings;
}

void take_setting(const char* name, const char* value) {
  const char* now = GetConfigOption(name, true, false);
  if (now != nullptr && strcmp(now, value) == 0) return;  // some settings read a file
  (void)set_config_option(name, value, PGC_SUSET, PGC_S_SESSION, GUC_ACTION_SAVE, true, 0, false);
}

void take_settings(const DdlRecord* record) {
  ListCell* cell;
  foreach (cell, record->settings) {
    const auto* setting = static_cast<DdlSetting*>(lfirst(cell));
    if (!is_session_user_setting(setting->name)) take_setting(setting->name, setting->value);
  }
}

bool is_session_user_setting(const char* setting) {
  return setting && (pg_strcasecmp(setting, "role") == 0 || pg_strcasecmp(setting, "session_authorization") == 0);
}

bool stores_session_user(Node* statement, const DdlRecord* record) {
  bool any = false;
  ListCell* cell;
  foreach (cell, sets_of(statement)) {
    auto* set = lfirst_node(VariableSetStmt, cell);
    if (!is_session_user_setting(set->name)) continue;
    any = true;
    if (set->kind == VAR_SET_CURRENT) put_value(set, record->settings);
  }
  return any;
}

}  // namespace gcl
