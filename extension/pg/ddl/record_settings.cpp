#include "extension/pg/ddl/record_settings.hpp"

#include "extension/pg/ddl/ddl_record.hpp"

extern "C" {
#include "utils/guc.h"
}

namespace gcl {
namespace {

// Of all that a session can set: what names mean, what is made where nothing is said, how a text is read, and what is
// refused.  Not how values are written or computed, because a replay does neither; lock_timeout and the like are the
// author's own affair.
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

List* with_current(List* settings, const VariableSetStmt* set) {
  return set->kind == VAR_SET_CURRENT ? with_setting(settings, set->name) : settings;
}

List* with_current_of(List* settings, const List* options) {
  ListCell* cell;
  foreach (cell, options) {
    const auto* option = lfirst_node(DefElem, cell);
    if (strcmp(option->defname, "set") == 0) settings = with_current(settings, castNode(VariableSetStmt, option->arg));
  }
  return settings;
}

}  // namespace

List* settings_for(const Node* statement) {
  List* settings = NIL;
  for (const char* name : kSettings) settings = with_setting(settings, name);
  switch (nodeTag(statement)) {
    case T_AlterRoleSetStmt:
      return with_current(settings, reinterpret_cast<const AlterRoleSetStmt*>(statement)->setstmt);
    case T_AlterDatabaseSetStmt:
      return with_current(settings, reinterpret_cast<const AlterDatabaseSetStmt*>(statement)->setstmt);
    case T_CreateFunctionStmt:
      return with_current_of(settings, reinterpret_cast<const CreateFunctionStmt*>(statement)->options);
    case T_AlterFunctionStmt:
      return with_current_of(settings, reinterpret_cast<const AlterFunctionStmt*>(statement)->actions);
    default:
      return settings;
  }
}

}  // namespace gcl
