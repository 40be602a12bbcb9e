#include "extension/pg/ddl/constraint_oids.hpp"

extern "C" {
#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/dependency.h"
#include "catalog/indexing.h"
#include "catalog/pg_constraint.h"
#include "utils/fmgroids.h"
#include "utils/rel.h"
}

namespace gcl {
namespace {

SysScanDesc scan_constraints(Relation catalog, Oid relation) {
  ScanKeyData key;
  ScanKeyInit(&key, Anum_pg_constraint_conrelid, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(relation));
  return systable_beginscan(catalog, ConstraintRelidTypidNameIndexId, true, nullptr, 1, &key);
}

const FormData_pg_constraint* form_of(HeapTuple tuple) {
  return reinterpret_cast<const FormData_pg_constraint*>(GETSTRUCT(tuple));
}

void change_oid(Relation catalog, HeapTuple tuple, Oid oid) {
  const Oid was = form_of(tuple)->oid;
  Datum values[Natts_pg_constraint] = {};
  bool nulls[Natts_pg_constraint] = {}, replace[Natts_pg_constraint] = {};
  values[Anum_pg_constraint_oid - 1] = ObjectIdGetDatum(oid);
  replace[Anum_pg_constraint_oid - 1] = true;
  HeapTuple changed = heap_modify_tuple(tuple, RelationGetDescr(catalog), values, nulls, replace);
  CatalogTupleUpdate(catalog, &changed->t_self, changed);
  (void)changeDependenciesOf(ConstraintRelationId, was, oid);
  (void)changeDependenciesOn(ConstraintRelationId, was, oid);
}

}  // namespace

List* constraints_of(List* relations) {
  List* all = NIL;
  Relation catalog = table_open(ConstraintRelationId, AccessShareLock);
  ListCell* cell;
  foreach (cell, relations) {
    SysScanDesc scan = scan_constraints(catalog, lfirst_oid(cell));
    while (HeapTuple tuple = systable_getnext(scan)) {
      if (form_of(tuple)->condeferrable) continue;
      auto* constraint = static_cast<DdlConstraint*>(palloc(sizeof(DdlConstraint)));
      *constraint = {lfirst_oid(cell), form_of(tuple)->oid, pstrdup(NameStr(form_of(tuple)->conname))};
      all = lappend(all, constraint);
    }
    systable_endscan(scan);
  }
  table_close(catalog, AccessShareLock);
  return all;
}

void impose_constraint_oids(List* constraints) {
  Relation catalog = table_open(ConstraintRelationId, RowExclusiveLock);
  ListCell* cell;
  foreach (cell, constraints) {
    const auto* wanted = static_cast<DdlConstraint*>(lfirst(cell));
    SysScanDesc scan = scan_constraints(catalog, wanted->relation);
    while (HeapTuple tuple = systable_getnext(scan)) {
      if (strcmp(NameStr(form_of(tuple)->conname), wanted->name) != 0) continue;
      if (form_of(tuple)->oid != wanted->oid) change_oid(catalog, tuple, wanted->oid);
      break;
    }
    systable_endscan(scan);
  }
  table_close(catalog, RowExclusiveLock);
  CommandCounterIncrement();
}

}  // namespace gcl
