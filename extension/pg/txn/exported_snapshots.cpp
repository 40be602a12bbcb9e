#include "extension/pg/txn/exported_snapshots.hpp"

#include "extension/pg/boundary/builtin_patch.hpp"
#include "extension/pg/runtime/backend.hpp"
#include "extension/pg/runtime/settings.hpp"
#include "extension/pg/txn/snapshots.hpp"

extern "C" {
#include "storage/fd.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/fmgrprotos.h"
}

namespace gcl {
namespace {

constexpr char kTimeFormat[] = "gcl:%llu\n";

char* path_of(const char* identifier) { return psprintf("pg_snapshots/%s", identifier); }

// No session knows the identifier yet (pg_txn.time-in-snapshot-file).  The server removes the file with the
// transaction, also after an error here.
void append_time(const char* identifier, TimestampTz time) {
  const char* path = path_of(identifier);
  FILE* file = AllocateFile(path, PG_BINARY_A);
  const bool written = file != nullptr && fprintf(file, kTimeFormat, (unsigned long long)time) > 0;
  if (file == nullptr || FreeFile(file) != 0 || !written)
    ereport(ERROR, errcode_for_file_access(), errmsg("could not write to file \"%s\": %m", path));
}

Datum export_snapshot(PG_FUNCTION_ARGS) {
  const TimestampTz time = time_to_export(GetActiveSnapshot());
  const char* identifier = text_to_cstring(DatumGetTextPP(pg_export_snapshot(fcinfo)));
  if (time != 0) append_time(identifier, time);
  PG_RETURN_TEXT_P(cstring_to_text(psprintf("%s-%d", identifier, settings.node_id)));
}

// 0: the file has none, or is not there.
TimestampTz time_in_file(const char* identifier) {
  const char* path = path_of(identifier);
  FILE* file = AllocateFile(path, PG_BINARY_R);
  if (file == nullptr && errno == ENOENT) return 0;
  if (file == nullptr) ereport(ERROR, errcode_for_file_access(), errmsg("could not open file \"%s\": %m", path));
  char line[64];
  unsigned long long time = 0;
  while (time == 0 && fgets(line, sizeof line, file) != nullptr) (void)sscanf(line, kTimeFormat, &time);
  if (ferror(file)) ereport(ERROR, errcode_for_file_access(), errmsg("could not read file \"%s\": %m", path));
  FreeFile(file);
  return TimestampTz(time);
}

A_Const* identifier_in(const PlannedStmt* statement) {
  return linitial_node(A_Const, castNode(VariableSetStmt, statement->utilityStmt)->args);
}

// What the server takes for a file's name.
bool is_well_formed(const char* identifier) { return strspn(identifier, "0123456789ABCDEF-") == strlen(identifier); }

// Where the primary's number begins, behind its hyphen; null: in none of ours (pg_txn.identifier-names-primary).
char* number_in(char* identifier) {
  char* number = identifier;
  for (int hyphens = 0; hyphens < 3; ++hyphens) {
    number = strchr(number, '-');
    if (number == nullptr) return nullptr;
    ++number;
  }
  return *number != '\0' && strspn(number, "0123456789") == strlen(number) ? number : nullptr;
}

[[noreturn]] void refuse_foreign(const char* identifier, const char* primary) {
  ereport(ERROR, errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("snapshot \"%s\" is another primary's", identifier),
          errdetail("It was exported by primary %s; this is primary %d.", primary, settings.node_id),
          errhint("Import it in a session of primary %s.", primary));
  pg_unreachable();
}

// The server's own part of the identifier.
char* servers_part(const char* identifier) {
  char* part = pstrdup(identifier);
  char* number = is_well_formed(part) ? number_in(part) : nullptr;
  if (number == nullptr) return part;
  if (strcmp(number, psprintf("%d", settings.node_id)) != 0) refuse_foreign(identifier, number);
  number[-1] = '\0';
  return part;
}

}  // namespace

void replace_snapshot_export() {
  replace_builtin({F_PG_EXPORT_SNAPSHOT, "pg_export_snapshot", pg_export_snapshot, 0}, export_snapshot);
}

bool imports_snapshot(const Node* statement) {
  if (!IsA(statement, VariableSetStmt)) return false;
  const auto* set = reinterpret_cast<const VariableSetStmt*>(statement);
  return set->kind == VAR_SET_MULTI && strcmp(set->name, "TRANSACTION SNAPSHOT") == 0;
}

SnapshotImport begin_import(const PlannedStmt* statement) {
  auto* servers = static_cast<PlannedStmt*>(copyObjectImpl(statement));
  char* identifier = servers_part(strVal(&identifier_in(statement)->val));
  identifier_in(servers)->val.sval.sval = identifier;
  const TimestampTz time = is_well_formed(identifier) && serves() ? time_in_file(identifier) : 0;
  if (time != 0) txns().adopt_snapshot({uint64_t(time)});
  return {servers, time};
}

void end_import(const SnapshotImport& imported) { set_imported_time(imported.time); }

}  // namespace gcl
