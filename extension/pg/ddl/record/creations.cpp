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
#include "utils/lsyscache.h"
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

DdlMadeKind kind_of_type(Oid oid) {
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

DdlMadeKind kind_of_relation(const FormData_pg_class& relation) {
  if (relation.relkind == RELKIND_TOASTVALUE) return kMadeToast;
  const bool index = relation.relkind == RELKIND_INDEX || relation.relkind == RELKIND_PARTITIONED_INDEX;
  return index ? kMadeIndex : kMadeRelation;
}

void describe_relation(DdlMade* made) {
  FormData_pg_class relation;
  if (!find_relation_row(made->object.oid, &relation)) elog(ERROR, "gcl: relation %u is not there", made->object.oid);
  Oid rewritten;
  made->kind = kind_of_relation(relation);
  made->transient =
      relation.relkind == RELKIND_RELATION && sscanf(NameStr(relation.relname), "pg_temp_%u", &rewritten) == 1;
  if (made->kind == kMadeRelation) made->columns = relation.relnatts;
  if (made->kind == kMadeToast) made->toasted = toasted_by(relation);
}

}  // namespace

DdlMade creation_of(Oid catalog, Oid object) {
  DdlMade made{{catalog, object}, kMadeOther, false, 0, InvalidOid};
  if (catalog == RelationRelationId) describe_relation(&made);
  if (catalog == TypeRelationId) made.kind = kind_of_type(object);
  if (catalog == AuthIdRelationId) made.kind = kMadeRole;
  return made;
}

char* describe_made(const DdlMade& made) {
  switch (made.kind) {
    case kMadeIndex:
      return pstrdup("an index");
    case kMadeToast:
      return pstrdup("a TOAST relation");
    case kMadeArray:
    case kMadeMultirangeArray:
      return pstrdup("an array type");
    case kMadeMultirange:
      return pstrdup("a multirange type");
    default:
      return psprintf("a row of %s", get_rel_name(made.object.catalog));
  }
}

}  // namespace gcl
