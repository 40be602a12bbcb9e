#include "extension/pg/ddl/classify/role_scope.hpp"

#include "extension/pg/catalog/shared_relations.hpp"
#include "extension/pg/ddl/classify/foreign_keys.hpp"

extern "C" {
#include "access/htup_details.h"
#include "catalog/pg_class.h"
#include "utils/acl.h"
#include "utils/syscache.h"
}

namespace gcl {
namespace {

Oid owner_of(Oid relation) {
  FormData_pg_class form;
  return find_class(relation, &form) ? form.relowner : InvalidOid;
}

// Every primary does it for its own objects, local tables included; gcl tables are locked before.
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

}  // namespace

DdlPlan plan_reassign_owned(const ReassignOwnedStmt* statement) { return plan_owned(statement->roles, false); }
DdlPlan plan_drop_owned(const DropOwnedStmt* statement) { return plan_owned(statement->roles, true); }

void note_owned_stays_here(const Node* statement) {
  if (!IsA(statement, ReassignOwnedStmt) && !IsA(statement, DropOwnedStmt)) return;
  if (OidIsValid(gcl_access_method())) return;
  ereport(NOTICE, (errmsg("%s is done on this primary only, because the extension gcl is not in the database",
                          IsA(statement, DropOwnedStmt) ? "DROP OWNED" : "REASSIGN OWNED")));
}

}  // namespace gcl
