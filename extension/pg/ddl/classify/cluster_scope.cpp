#include "extension/pg/ddl/classify/cluster_scope.hpp"

#include "extension/pg/ddl/base/ddl_port.hpp"
#include "extension/pg/runtime/ddl_hooks.hpp"

extern "C" {
#include "commands/dbcommands.h"
#include "mb/pg_wchar.h"
}

namespace gcl {
namespace {

bool is_type_of_cluster(ObjectType type) {
  return type == OBJECT_ROLE || type == OBJECT_DATABASE || type == OBJECT_PARAMETER_ACL;
}

bool names_tablespace(const List* options) {
  ListCell* cell;
  foreach (cell, options)
    if (strcmp(lfirst_node(DefElem, cell)->defname, "tablespace") == 0) return true;
  return false;
}

const char* name_if(ObjectType type, const Node* name) { return type == OBJECT_DATABASE ? strVal(name) : nullptr; }

// The one database that the statement is about and that another primary may not have; null: none, or several.
const char* database_of(const Node* statement) {
  switch (nodeTag(statement)) {
    case T_CreatedbStmt:
      return as<CreatedbStmt>(statement)->dbname;
    case T_DropdbStmt:
      return as<DropdbStmt>(statement)->dbname;
    case T_AlterDatabaseStmt:
      return as<AlterDatabaseStmt>(statement)->dbname;
    case T_AlterDatabaseSetStmt:
      return as<AlterDatabaseSetStmt>(statement)->dbname;
    case T_AlterRoleSetStmt:
      return as<AlterRoleSetStmt>(statement)->database;
    case T_RenameStmt:
      return as<RenameStmt>(statement)->renameType == OBJECT_DATABASE ? as<RenameStmt>(statement)->subname : nullptr;
    case T_AlterOwnerStmt:
      return name_if(as<AlterOwnerStmt>(statement)->objectType, as<AlterOwnerStmt>(statement)->object);
    case T_CommentStmt:
      return name_if(as<CommentStmt>(statement)->objtype, as<CommentStmt>(statement)->object);
    case T_SecLabelStmt:
      return name_if(as<SecLabelStmt>(statement)->objtype, as<SecLabelStmt>(statement)->object);
    default:
      return nullptr;
  }
}

constexpr const char* kLocalHint =
    "A superuser's SET gcl.local_administration = on lets statements on roles and databases be done on this primary "
    "only; the others have to be brought in line by hand.";

}  // namespace

bool is_of_cluster(const Node* statement) {
  switch (nodeTag(statement)) {
    case T_CreateRoleStmt:
    case T_AlterRoleStmt:
    case T_AlterRoleSetStmt:
    case T_DropRoleStmt:
    case T_GrantRoleStmt:
    case T_CreatedbStmt:
    case T_DropdbStmt:
    case T_AlterDatabaseSetStmt:
      return true;
    case T_AlterDatabaseStmt:  // tablespaces are each primary's own
      return !names_tablespace(as<AlterDatabaseStmt>(statement)->options);
    case T_RenameStmt:
      return is_type_of_cluster(as<RenameStmt>(statement)->renameType);
    case T_AlterOwnerStmt:
      return is_type_of_cluster(as<AlterOwnerStmt>(statement)->objectType);
    case T_CommentStmt:
      return is_type_of_cluster(as<CommentStmt>(statement)->objtype);
    case T_SecLabelStmt:
      return is_type_of_cluster(as<SecLabelStmt>(statement)->objtype);
    case T_GrantStmt:
      return as<GrantStmt>(statement)->targtype == ACL_TARGET_OBJECT &&
             is_type_of_cluster(as<GrantStmt>(statement)->objtype);
    default:
      return false;
  }
}

DdlPlan plan_of_cluster(const Node* statement) {
  DdlPlan plan = everywhere();
  plan.shared = true;
  plan.database = database_of(statement);
  if (plan.database) plan.to_database = DdlDatabase::kAlters;
  if (plan.database && IsA(statement, RenameStmt)) plan.to_database = DdlDatabase::kRenames;
  if (IsA(statement, CreatedbStmt)) plan.to_database = DdlDatabase::kMakes;
  if (IsA(statement, DropdbStmt)) plan.to_database = DdlDatabase::kDrops;
  return plan;
}

void require_cluster() {
  const bool fenced = !ddl_pool_attached() || ddl_pool_fenced();
  if (!fenced && ddl_serving()) return;
  const char* why = fenced ? psprintf("The gcl pool is fenced: %s", ddl_fence_reason())
                           : "This primary has not caught up with the DDL of the others; the server's log says why.";
  ereport(ERROR, (errcode(fenced ? ERRCODE_CRASH_SHUTDOWN : ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                  errmsg("roles and databases are every primary's, and the others cannot be reached"),
                  errdetail("%s", why), errhint("%s", kLocalHint)));
}

void require_common_encoding(const char* text) {
  if (GetDatabaseEncoding() == ddl_pool_encoding()) return;
  for (const char* at = text; *at != '\0'; ++at)
    if (IS_HIGHBIT_SET(*at))
      ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
                      errmsg("a statement that reaches all primaries has characters beyond ASCII, and the encoding of "
                             "database \"%s\" is not the pool's",
                             get_database_name(MyDatabaseId)),
                      errhint("Run it in a database whose encoding is that of gcl.locale.")));
}

}  // namespace gcl
