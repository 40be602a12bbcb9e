#include "extension/pg/ddl/replay/extension_version.hpp"

#include "extension/pg/catalog/shared_relations.hpp"
#include "extension/pg/ddl/base/ddl_sql.hpp"
#include "extension/pg/runtime/version.hpp"

extern "C" {
#include "commands/defrem.h"
}

namespace gcl {
namespace {

// 1.10 is newer than 1.9; what is no number counts as 0.
bool is_newer(const char* version, const char* than) {
  for (;;) {
    char *rest, *rest_of_other;
    const long ours = strtol(version, &rest, 10), theirs = strtol(than, &rest_of_other, 10);
    if (ours != theirs) return ours > theirs;
    if (*rest != '.') return false;
    version = rest + 1;
    than = *rest_of_other == '.' ? rest_of_other + 1 : "0";
  }
}

void require_library_of(const char* version) {
  if (!is_newer(version, kVersion)) return;
  ereport(ERROR,
          (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
           errmsg("the library of gcl has version %s here, and the extension is to have version %s", kVersion, version),
           errhint("Upgrade this primary first (gclctl upgrade), or restart it if the newer files are there.")));
}

const char* version_in(List* options) {
  ListCell* cell;
  foreach (cell, options)
    if (auto* option = lfirst_node(DefElem, cell); strcmp(option->defname, "new_version") == 0)
      return defGetString(option);
  return nullptr;
}

}  // namespace

void name_version(const Node* statement, DdlRecord* record) {
  if (!IsA(statement, CreateExtensionStmt) && !IsA(statement, AlterExtensionStmt)) return;
  const char* version = catalog_text("SELECT extversion FROM pg_catalog.pg_extension WHERE extname = $1",
                                     {text_argument(kExtensionName)});
  if (version == nullptr) elog(ERROR, "gcl: the extension is not there");
  require_library_of(version);
  const char* literal = quote_literal_cstr(version);
  if (IsA(statement, AlterExtensionStmt))
    record->sql = psprintf("ALTER EXTENSION %s UPDATE TO %s", kExtensionName, literal);
  else if (version_in(as<CreateExtensionStmt>(statement)->options) == nullptr)
    record->sql = psprintf("%s\nVERSION %s", record->sql, literal);
}

void require_library_for(const Node* statement) {
  const char* version = nullptr;
  if (IsA(statement, CreateExtensionStmt)) version = version_in(as<CreateExtensionStmt>(statement)->options);
  if (IsA(statement, AlterExtensionStmt)) version = version_in(as<AlterExtensionStmt>(statement)->options);
  if (version != nullptr) require_library_of(version);
}

}  // namespace gcl
