#include "extension/pg/ddl/record/record_objects.hpp"

extern "C" {
#include "catalog/pg_authid.h"
#include "catalog/pg_class.h"
#include "catalog/pg_type.h"
#include "utils/lsyscache.h"
}

#include "extension/pg/ddl/record/object_oids.hpp"

namespace gcl {
namespace {

Oid catalog_of(int kind) {
  if (kind == kMadeRole) return AuthIdRelationId;
  return kind <= kMadeToast ? Oid{RelationRelationId} : Oid{TypeRelationId};
}

}  // namespace

List* relations_of(const DdlRecord* record) {
  List* all = list_concat_copy(record->made[kMadeRelation], record->made[kMadeIndex]);
  all = list_concat(all, record->made[kMadeToast]);
  ListCell* cell;
  foreach (cell, record->targets) all = list_append_unique_oid(all, static_cast<DdlTarget*>(lfirst(cell))->relation);
  return all;
}

List* objects_of(const DdlRecord* record) {
  List* all = NIL;
  ListCell* cell;
  foreach (cell, list_concat_copy(record->objects, record->altered))
    if (has_common_oid(static_cast<DdlObject*>(lfirst(cell))->catalog)) all = lappend(all, lfirst(cell));
  foreach (cell, record->made[kMadeRole]) {
    auto* role = static_cast<DdlObject*>(palloc(sizeof(DdlObject)));
    *role = {AuthIdRelationId, lfirst_oid(cell)};
    all = lappend(all, role);
  }
  foreach (cell, record->made[kMadeType]) {
    if (get_typtype(lfirst_oid(cell)) != TYPTYPE_DOMAIN) continue;
    auto* domain = static_cast<DdlObject*>(palloc(sizeof(DdlObject)));
    *domain = {TypeRelationId, lfirst_oid(cell)};
    all = lappend(all, domain);
  }
  return all;
}

List* touched_by(const DdlRecord* record) {
  List* all = list_concat_copy(record->objects, record->altered);
  for (int kind = 0; kind < kMadeKinds; ++kind) {
    ListCell* cell;
    foreach (cell, record->made[kind]) {
      auto* object = static_cast<DdlObject*>(palloc(sizeof(DdlObject)));
      *object = {catalog_of(kind), lfirst_oid(cell)};
      all = lappend(all, object);
    }
  }
  return all;
}

List* enums_of(const DdlRecord* record) {
  List* types = list_copy(record->made[kMadeType]);
  ListCell* cell;
  foreach (cell, record->altered) {
    const auto* object = static_cast<DdlObject*>(lfirst(cell));
    if (object->catalog == TypeRelationId) types = list_append_unique_oid(types, object->oid);
  }
  List* enums = NIL;
  foreach (cell, types)
    if (get_typtype(lfirst_oid(cell)) == TYPTYPE_ENUM) enums = lappend_oid(enums, lfirst_oid(cell));
  return enums;
}

}  // namespace gcl
