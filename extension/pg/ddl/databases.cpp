#include "extension/pg/ddl/databases.hpp"

#include "extension/pg/ddl/ddl_position.hpp"

extern "C" {
#include "commands/dbcommands.h"
#include "commands/defrem.h"
}

namespace gcl {
namespace {

bool has_extension(const char* database) {
  const Oid oid = get_database_oid(database, true);
  return OidIsValid(oid) && load_position(oid).extension;
}

// Null: template1.
const char* template_of(const CreatedbStmt* statement) {
  ListCell* cell;
  foreach (cell, statement->options) {
    auto* option = lfirst_node(DefElem, cell);
    if (strcmp(option->defname, "template") == 0 && option->arg) return defGetString(option);
  }
  return "template1";
}

void check_drop(const char* database) {
  if (!has_extension(database)) return;
  ereport(ERROR,
          (errcode(ERRCODE_DEPENDENT_OBJECTS_STILL_EXIST),
           errmsg("cannot drop database \"%s\" while the extension gcl is in it", database),
           errdetail("Its gcl tables belong to all primaries."),
           errhint("Connect to it and DROP EXTENSION gcl CASCADE, which drops its gcl tables on every primary.")));
}

void check_create(const char* source) {
  if (!has_extension(source)) return;
  ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
                  errmsg("cannot copy database \"%s\" while the extension gcl is in it", source),
                  errdetail("The copy would share the pages of its gcl tables."),
                  errhint("Create the database from another template, and restore a pg_dump into it.")));
}

void check_rename(const char* database) {
  if (!has_extension(database)) return;
  ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
                  errmsg("cannot rename database \"%s\" while the extension gcl is in it", database),
                  errdetail("The other primaries know it by its name.")));
}

}  // namespace

void check_database_statement(const Node* statement) {
  if (IsA(statement, DropdbStmt)) check_drop(reinterpret_cast<const DropdbStmt*>(statement)->dbname);
  if (IsA(statement, CreatedbStmt)) check_create(template_of(reinterpret_cast<const CreatedbStmt*>(statement)));
  if (!IsA(statement, RenameStmt)) return;
  const auto* rename = reinterpret_cast<const RenameStmt*>(statement);
  if (rename->renameType == OBJECT_DATABASE) check_rename(rename->subname);
}

}  // namespace gcl
