#include "extension/pg/ddl/replay/no_user_code.hpp"

#include "extension/pg/boundary/builtin_patch.hpp"
#include "extension/pg/ddl/base/pg.hpp"

extern "C" {
#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/transam.h"
#include "catalog/pg_amproc.h"
#include "catalog/pg_language.h"
#include "catalog/pg_proc.h"
#include "commands/event_trigger.h"
#include "commands/trigger.h"
#include "utils/fmgroids.h"
#include "utils/fmgrprotos.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/syscache.h"
}

namespace gcl {
namespace {

bool active = false;
bool inlines_none = false;
needs_fmgr_hook_type next_needs_hook = nullptr;
fmgr_hook_type next_hook = nullptr;

// Support functions order the bounds of a partitioned table.  Only superusers make operator classes.
bool supports_operator_class(Oid function) {
  Relation catalog = table_open(AccessMethodProcedureRelationId, AccessShareLock);
  ScanKeyData key;
  ScanKeyInit(&key, Anum_pg_amproc_amproc, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(function));
  SysScanDesc scan = systable_beginscan(catalog, InvalidOid, false, nullptr, 1, &key);
  const bool found = HeapTupleIsValid(systable_getnext(scan));
  systable_endscan(scan);
  table_close(catalog, AccessShareLock);
  return found;
}

enum class Code : uint8_t {
  kTrusted,    // the server's, or a superuser's
  kInlinable,  // of a user, in SQL, and not IMMUTABLE
  kOther,      // of a user
};

Code code_of(Oid function) {
  if (function < FirstNormalObjectId) return Code::kTrusted;
  HeapTuple tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(function));
  if (!HeapTupleIsValid(tuple)) return Code::kOther;
  const auto* form = reinterpret_cast<Form_pg_proc>(GETSTRUCT(tuple));
  const Oid language = form->prolang;
  const bool immutable = form->provolatile == PROVOLATILE_IMMUTABLE;
  ReleaseSysCache(tuple);
  if (language == ClanguageId || language == INTERNALlanguageId || supports_operator_class(function))
    return Code::kTrusted;
  return language == SQLlanguageId && !immutable ? Code::kInlinable : Code::kOther;
}

// A function that is looked at is neither called directly nor put into an expression in place of its call.  Whether an
// expression is immutable may depend on the latter, so SQL functions are not looked at, but for IMMUTABLE ones: those
// the server calls when their arguments are constants, and it takes their word for what they are.
bool needs_hook(Oid function) {
  const Code code = code_of(function);
  return code == Code::kOther || (inlines_none && code == Code::kInlinable) ||
         (next_needs_hook != nullptr && next_needs_hook(function));
}

// Null is harmless: the rows are the coordinator's, and what it has computed is in the record
// (ddl.coordinator-ships-constants).  A trigger returns a null pointer, and never a null value.
Datum return_null(PG_FUNCTION_ARGS) {
  fcinfo->isnull = !CALLED_AS_TRIGGER(fcinfo) && !CALLED_AS_EVENT_TRIGGER(fcinfo);
  return Datum{0};
}

void look(FmgrHookEventType event, FmgrInfo* function, Datum* arg) {
  if (next_hook) next_hook(event, function, arg);
  if (event == FHET_START && code_of(function->fn_oid) != Code::kTrusted) function->fn_addr = return_null;
}

// A value that is read (a literal, the missing value of a column) comes from the coordinator, where it has been
// checked.
Datum domain_in_or_base_in(PG_FUNCTION_ARGS) {
  if (!active || PG_ARGISNULL(1)) return domain_in(fcinfo);
  int32 typmod = -1;
  const Oid base = getBaseTypeAndTypmod(PG_GETARG_OID(1), &typmod);
  Oid input, parameter;
  getTypeInputInfo(base, &input, &parameter);
  char* text = PG_ARGISNULL(0) ? nullptr : PG_GETARG_CSTRING(0);
  const Datum value = OidInputFunctionCall(input, text, parameter, typmod);
  fcinfo->isnull = text == nullptr;
  return value;
}

}  // namespace

void install_no_user_code() { replace_builtin({F_DOMAIN_IN, "domain_in", domain_in, 3, false}, domain_in_or_base_in); }

void inline_no_user_code(bool on) { inlines_none = on; }

void run_no_user_code() {
  if (active) return;
  active = true;
  next_needs_hook = needs_fmgr_hook;
  next_hook = fmgr_hook;
  needs_fmgr_hook = needs_hook;
  fmgr_hook = look;
}

}  // namespace gcl
