#include "extension/pg/ddl/classify/foreign_keys.hpp"

#include "extension/pg/catalog/names.hpp"
#include "extension/pg/catalog/shared_relations.hpp"

extern "C" {
#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/pg_constraint.h"
#include "utils/rel.h"
}

namespace gcl {
namespace {

// False: it is one already.
bool add_table(DdlPlan* plan, Oid relation, LOCKMODE mode) {
  if (is_target(plan, relation) || !is_shared_table(relation)) return false;
  add_target(plan, relation, mode);
  return true;
}

// In the order of their OIDs, which is the same everywhere.
List* neighbours_of(const DdlPlan* plan) {
  List* found = NIL;
  Relation catalog = table_open(ConstraintRelationId, AccessShareLock);
  SysScanDesc scan = systable_beginscan(catalog, InvalidOid, false, nullptr, 0, nullptr);
  while (HeapTuple tuple = systable_getnext(scan)) {
    const auto* form = reinterpret_cast<Form_pg_constraint>(GETSTRUCT(tuple));
    if (form->contype != CONSTRAINT_FOREIGN) continue;
    if (is_target(plan, form->conrelid)) found = list_append_unique_oid(found, form->confrelid);
    if (is_target(plan, form->confrelid)) found = list_append_unique_oid(found, form->conrelid);
  }
  systable_endscan(scan);
  table_close(catalog, AccessShareLock);
  list_sort(found, list_oid_cmp);
  return found;
}

}  // namespace

void check_foreign_key(const Constraint* constraint, bool shared) {
  if (constraint->contype != CONSTR_FOREIGN) return;
  const Oid referenced = find_relation(constraint->pktable);  // none: the table itself, or the statement fails
  if (!OidIsValid(referenced) || is_shared_table(referenced) == shared) return;
  refuse_ddl(shared ? "FOREIGN KEY of a gcl table to a local table" : "FOREIGN KEY of a local table to a gcl table",
             "Both tables must be gcl tables, or both local.");
}

void add_referenced(DdlPlan* plan, const Constraint* constraint) {
  if (constraint->contype == CONSTR_FOREIGN)
    (void)add_table(plan, find_relation(constraint->pktable), ShareRowExclusiveLock);
}

void add_neighbours(DdlPlan* plan, LOCKMODE mode, bool all) {
  bool more = true;
  while (more) {
    more = false;
    ListCell* cell;
    foreach (cell, neighbours_of(plan)) more |= add_table(plan, lfirst_oid(cell), mode);
    more &= all;
  }
}

}  // namespace gcl
