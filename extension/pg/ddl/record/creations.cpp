#include "extension/pg/ddl/record/creations.hpp"

extern "C" {
#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/indexing.h"
#include "catalog/pg_authid.h"
#include "catalog/pg_class.h"
#include "catalog/pg_type.h"
#include "utils/fmgroids.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
}

namespace gcl {
namespace {

// Copies the fixed part of the row with that OID; false if there is none.
template <class Form>
bool find_row(Oid catalog, Oid index, AttrNumber oid_column, Oid oid, Form* to) {
  Relation relation = table_open(catalog, AccessShareLock);
  ScanKeyData key;
  ScanKeyInit(&key, oid_column, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(oid));
  SysScanDesc scan = systable_beginscan(relation, index, true, SnapshotSelf, 1, &key);
  HeapTuple tuple = systable_getnext(scan);
  const bool found = HeapTupleIsValid(tuple);
  if (found) memcpy(to, GETSTRUCT(tuple), sizeof(Form));
  systable_endscan(scan);
  table_close(relation, AccessShareLock);
  return found;
}

bool find_type(Oid oid, FormData_pg_type* to) {
  return find_row(TypeRelationId, TypeOidIndexId, Anum_pg_type_oid, oid, to);
}

DdlMade kind_of_type(Oid oid) {
  FormData_pg_type type, element;
  if (!find_type(oid, &type)) return kMadeType;
  if (type.typtype == TYPTYPE_MULTIRANGE) return kMadeMultirange;
  if (!OidIsValid(type.typelem) || type.typsubscript != F_ARRAY_SUBSCRIPT_HANDLER) return kMadeType;
  // The array of a multirange may be made before it.
  const bool of_multirange = find_type(type.typelem, &element) && element.typtype == TYPTYPE_MULTIRANGE;
  return of_multirange ? kMadeMultirangeArray : kMadeArray;
}

bool find_relation_row(Oid oid, FormData_pg_class* to) {
  constexpr size_t kFixed = offsetof(FormData_pg_class, relminmxid) + sizeof(TransactionId);
  static_assert(kFixed <= sizeof(FormData_pg_class));
  return find_row(RelationRelationId, ClassOidIndexId, Anum_pg_class_oid, oid, to);
}

// The name of a TOAST relation says which table it is made for.
Oid toasted_by(const FormData_pg_class& toast) {
  Oid table;
  if (sscanf(NameStr(toast.relname), "pg_toast_%u", &table) != 1)
    elog(ERROR, "gcl: TOAST relation %u has an unexpected name", toast.oid);
  return table;
}

void note_toast(Creations* made, const FormData_pg_class& relation) {
  auto* toast = static_cast<DdlToast*>(palloc(sizeof(DdlToast)));
  toast->table = toasted_by(relation);
  for (int kind = 0; kind < kMadeKinds; ++kind) toast->before[kind] = list_length(made->relations_and_types[kind]);
  made->toasts = lappend(made->toasts, toast);
}

DdlMade kind_of_relation(const FormData_pg_class& relation) {
  if (relation.relkind == RELKIND_TOASTVALUE) return kMadeToast;
  const bool index = relation.relkind == RELKIND_INDEX || relation.relkind == RELKIND_PARTITIONED_INDEX;
  return index ? kMadeIndex : kMadeRelation;
}

void note_relation(Creations* made, Oid oid) {
  FormData_pg_class relation;
  if (!find_relation_row(oid, &relation)) elog(ERROR, "gcl: relation %u is not there", oid);
  const DdlMade kind = kind_of_relation(relation);
  Oid rewritten;
  made->newest_is_toast = kind == kMadeToast;
  made->newest_is_transient =
      relation.relkind == RELKIND_RELATION && sscanf(NameStr(relation.relname), "pg_temp_%u", &rewritten) == 1;
  if (kind == kMadeRelation) made->columns = lappend_int(made->columns, relation.relnatts);
  if (kind == kMadeToast) note_toast(made, relation);
  made->relations_and_types[kind] = lappend_oid(made->relations_and_types[kind], oid);
}

void note_type(Creations* made, Oid oid) {
  List** types = &made->relations_and_types[kind_of_type(oid)];
  *types = lappend_oid(*types, oid);
}

List* append(List* list, Oid catalog, Oid object) {
  auto* entry = static_cast<DdlObject*>(palloc(sizeof(DdlObject)));
  *entry = {catalog, object};
  return lappend(list, entry);
}

}  // namespace

void note_creation(Creations* made, Oid catalog, Oid object) {
  if (catalog == RelationRelationId)
    note_relation(made, object);
  else if (catalog == TypeRelationId)
    note_type(made, object);
  else if (catalog == AuthIdRelationId)
    made->relations_and_types[kMadeRole] = lappend_oid(made->relations_and_types[kMadeRole], object);
  else
    made->objects = append(made->objects, catalog, object);
}

void note_alteration(Creations* made, Oid catalog, Oid object) {
  made->altered = append(made->altered, catalog, object);
}

}  // namespace gcl
