#include "extension/pg/ddl/base/ddl_sql.hpp"

extern "C" {
#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "utils/array.h"
#include "utils/guc.h"
}

namespace gcl {
namespace {

constexpr int kArgumentsMax = 4;

// Where names are looked for, and how values are written and read (ddl.server-catalogs-only).
constexpr const char* kFixed[][2] = {{"search_path", "pg_catalog, pg_temp"},
                                     {"DateStyle", "ISO, YMD"},
                                     {"IntervalStyle", "postgres"},
                                     {"TimeZone", "UTC"},
                                     {"timezone_abbreviations", "Default"},
                                     {"extra_float_digits", "3"},
                                     {"bytea_output", "hex"},
                                     {"lc_monetary", "C"},
                                     {"array_nulls", "on"},
                                     {"xmlbinary", "base64"},
                                     {"quote_all_identifiers", "off"},
                                     {"standard_conforming_strings", "on"},
                                     {"transform_null_equals", "off"},
                                     {"row_security", "on"},
                                     {"enable_seqscan", "off"},  // a plan for no values in particular would like it
                                     {"jit", "off"}};

struct Arguments {
  Oid types[kArgumentsMax];
  Datum values[kArgumentsMax];
  int count = 0;
  explicit Arguments(std::initializer_list<SqlArgument> arguments) {
    Assert(arguments.size() <= kArgumentsMax);
    for (const SqlArgument& argument : arguments) {
      types[count] = argument.type;
      values[count++] = argument.value;
    }
  }
};

// Look-ups are a few constant texts, run for every statement of DDL: planned once in a session.
struct Prepared {
  const char* query;
  SPIPlanPtr plan;
};
constexpr int kPreparedMax = 64;
Prepared prepared[kPreparedMax];

SPIPlanPtr plan_of(const char* query, Arguments& arguments) {
  int free = 0;
  for (; free < kPreparedMax && prepared[free].query != nullptr; ++free)
    if (strcmp(prepared[free].query, query) == 0) return prepared[free].plan;
  SPIPlanPtr plan = SPI_prepare_cursor(query, arguments.count, arguments.types, CURSOR_OPT_GENERIC_PLAN);
  if (plan == nullptr) elog(ERROR, "gcl: a query on the catalogs cannot be planned");
  if (free == kPreparedMax) return plan;  // goes with SPI_finish()
  const char* text = MemoryContextStrdup(TopMemoryContext, query);
  if (SPI_keepplan(plan) != 0) elog(ERROR, "gcl: a query on the catalogs cannot be kept");
  prepared[free] = {text, plan};
  return plan;
}

void connect() {
  if (SPI_connect() != SPI_OK_CONNECT) elog(ERROR, "SPI_connect failed");
}

void check(int result) {
  if (result < 0) elog(ERROR, "gcl: a query on the catalogs failed");
}

}  // namespace

int enter_fixed_settings() {
  const int nest = NewGUCNestLevel();
  for (const auto& [name, value] : kFixed) {
    const char* now = GetConfigOption(name, true, false);
    if (now == nullptr || strcmp(now, value) != 0)  // what is so is left alone: some settings read a file
      (void)set_config_option(name, value, PGC_USERSET, PGC_S_SESSION, GUC_ACTION_SAVE, true, 0, false);
  }
  return nest;
}

void leave_fixed_settings(int nest) { AtEOXact_GUC(true, nest); }

char* catalog_text(const char* query, std::initializer_list<SqlArgument> arguments) {
  MemoryContext caller = CurrentMemoryContext;
  const int nest = enter_fixed_settings();
  Arguments given(arguments);
  connect();
  check(SPI_execute_plan(plan_of(query, given), given.values, nullptr, false, 0));
  char* text = SPI_processed > 0 ? SPI_getvalue(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1) : nullptr;
  if (text) text = MemoryContextStrdup(caller, text);
  SPI_finish();
  leave_fixed_settings(nest);
  return text;
}

void catalog_change(const char* query, std::initializer_list<SqlArgument> arguments) {
  const int nest = enter_fixed_settings();
  Arguments given(arguments);
  connect();
  check(SPI_execute_with_args(query, given.count, given.types, given.values, nullptr, false, 0));
  SPI_finish();
  leave_fixed_settings(nest);
}

SqlArgument oid_argument(Oid value) { return {OIDOID, ObjectIdGetDatum(value)}; }

SqlArgument text_argument(const char* value) { return {TEXTOID, CStringGetTextDatum(value)}; }

SqlArgument oids_argument(const List* oids) {
  const int count = list_length(oids);
  auto* array = static_cast<Datum*>(palloc(sizeof(Datum) * (size_t(count) + 1)));
  for (int i = 0; i < count; ++i) array[i] = ObjectIdGetDatum(list_nth_oid(oids, i));
  return {OIDARRAYOID, PointerGetDatum(construct_array(array, count, OIDOID, sizeof(Oid), true, TYPALIGN_INT))};
}

}  // namespace gcl
