#include "extension/pg/catalog/shared_relations.hpp"

extern "C" {
#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/index.h"
#include "catalog/objectaddress.h"
#include "catalog/pg_attrdef.h"
#include "catalog/pg_class.h"
#include "catalog/pg_constraint.h"
#include "catalog/pg_policy.h"
#include "catalog/pg_rewrite.h"
#include "catalog/pg_trigger.h"
#include "commands/defrem.h"
#include "utils/fmgroids.h"
#include "utils/syscache.h"
}

namespace gcl {

bool find_class(Oid relation, FormData_pg_class* form) {
  HeapTuple tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(relation));
  if (!HeapTupleIsValid(tuple)) return false;
  *form = *reinterpret_cast<Form_pg_class>(GETSTRUCT(tuple));
  ReleaseSysCache(tuple);
  return true;
}

Oid gcl_access_method() { return get_table_am_oid(kExtensionName, true); }

static bool is_shared(Oid relation, bool or_more) {
  FormData_pg_class form;
  if (!OidIsValid(relation) || !find_class(relation, &form)) return false;
  const char kind = form.relkind;
  const Oid method = form.relam;
  if (kind == RELKIND_RELATION || kind == RELKIND_MATVIEW || kind == RELKIND_TOASTVALUE ||
      kind == RELKIND_PARTITIONED_TABLE)
    return OidIsValid(method) && method == gcl_access_method();
  if (kind == RELKIND_SEQUENCE && or_more) return OidIsValid(method);
  if ((kind == RELKIND_INDEX || kind == RELKIND_PARTITIONED_INDEX) && or_more)
    return is_shared(IndexGetRelation(relation, true), false);
  return false;
}

bool is_shared_table(Oid relation) { return is_shared(relation, false); }
bool is_shared_relation(Oid relation) { return is_shared(relation, true); }

static List* shared_relations(Oid schema, bool sequences) {
  const Oid method = gcl_access_method();
  List* tables = NIL;
  if (!OidIsValid(method)) return NIL;
  Relation catalog = table_open(RelationRelationId, AccessShareLock);
  ScanKeyData key;
  ScanKeyInit(&key, Anum_pg_class_relam, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(method));
  SysScanDesc scan = systable_beginscan(catalog, InvalidOid, false, nullptr, 1, &key);
  while (HeapTuple tuple = systable_getnext(scan)) {
    const auto* form = reinterpret_cast<Form_pg_class>(GETSTRUCT(tuple));
    if ((form->relkind == RELKIND_SEQUENCE) != sequences) continue;
    if (form->relkind == RELKIND_TOASTVALUE) continue;  // goes with its table
    if (!OidIsValid(schema) || form->relnamespace == schema) tables = lappend_oid(tables, form->oid);
  }
  systable_endscan(scan);
  table_close(catalog, AccessShareLock);
  list_sort(tables, list_oid_cmp);
  return tables;
}

List* shared_tables(Oid schema) { return shared_relations(schema, false); }
List* shared_sequences(Oid schema) { return shared_relations(schema, true); }

Oid relation_of_part(Oid class_id, Oid object) {
  if (class_id == RelationRelationId) return object;
  if (class_id == AttrDefaultRelationId) return GetAttrDefaultColumnAddress(object).objectId;
  if (class_id != ConstraintRelationId && class_id != TriggerRelationId && class_id != PolicyRelationId &&
      class_id != RewriteRelationId)
    return InvalidOid;
  Relation catalog = table_open(class_id, AccessShareLock);
  Oid relation = InvalidOid;
  if (HeapTuple row = get_catalog_object_by_oid(catalog, get_object_attnum_oid(class_id), object)) {
    const void* form = GETSTRUCT(row);
    relation = class_id == ConstraintRelationId ? static_cast<const FormData_pg_constraint*>(form)->conrelid
               : class_id == TriggerRelationId  ? static_cast<const FormData_pg_trigger*>(form)->tgrelid
               : class_id == PolicyRelationId   ? static_cast<const FormData_pg_policy*>(form)->polrelid
                                                : static_cast<const FormData_pg_rewrite*>(form)->ev_class;
  }
  table_close(catalog, AccessShareLock);
  return relation;
}

}  // namespace gcl
