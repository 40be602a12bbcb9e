#include "extension/pg/ddl/role_scope.hpp"

#include "extension/pg/ddl/foreign_keys.hpp"
#include "extension/pg/ddl/shared_relations.hpp"

extern "C" {
#include "access/htup_details.h"
#include "catalog/pg_class.h"
#include "commands/dbcommands.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/syscache.h"
}

namespace gcl {
namespace {

Oid owner_of(Oid relation) {
  FormData_pg_class form;
  return find_class(relation, &form) ? form.relowner : InvalidOid;
}

// Every primary does it with what it has, its local tables included; gcl tables are locked before.
DdlPlan plan_owned(const List* specs, bool drops) {
  DdlPlan plan = everywhere();
  plan.owned = plan.shared = true;
  List* roles = NIL;
  ListCell* cell;
  foreach (cell, specs) roles = lappend_oid(roles, get_rolespec_oid(lfirst_node(RoleSpec, cell), false));
  foreach (cell, list_concat(shared_tables(InvalidOid), shared_sequences(InvalidOid)))
    if (list_member_oid(roles, owner_of(lfirst_oid(cell)))) add_target(&plan, lfirst_oid(cell), AccessExclusiveLock);
  if (drops) add_neighbours(&plan, AccessExclusiveLock, false);
  return plan;
}

bool is_here(const char* database) {
  return database == nullptr || strcmp(database, get_database_name(MyDatabaseId)) == 0;
}

}  // namespace

bool may_be_role(NodeTag tag) {
  switch (tag) {
    case T_CreateRoleStmt:
    case T_AlterRoleStmt:
    case T_AlterRoleSetStmt:
    case T_DropRoleStmt:
    case T_GrantRoleStmt:
    case T_ReassignOwnedStmt:
    case T_DropOwnedStmt:
      return true;
    default:
      return false;
  }
}

DdlPlan plan_role(const Node* statement) {
  if (IsA(statement, ReassignOwnedStmt))
    return plan_owned(reinterpret_cast<const ReassignOwnedStmt*>(statement)->roles, false);
  if (IsA(statement, DropOwnedStmt)) return plan_owned(reinterpret_cast<const DropOwnedStmt*>(statement)->roles, true);
  DdlPlan plan = everywhere();
  plan.shared = true;
  if (IsA(statement, AlterRoleSetStmt) && !is_here(reinterpret_cast<const AlterRoleSetStmt*>(statement)->database))
    return local();
  return plan;
}

}  // namespace gcl
