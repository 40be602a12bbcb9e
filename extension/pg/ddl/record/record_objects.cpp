#include "extension/pg/ddl/record/record_objects.hpp"

extern "C" {
#include "catalog/pg_class.h"
#include "catalog/pg_type.h"
#include "utils/lsyscache.h"
}

#include "extension/pg/ddl/record/object_oids.hpp"

namespace gcl {
namespace {

bool is_stated(const DdlMade& made) {
  if (made.kind == kMadeType) return get_typtype(made.object.oid) == TYPTYPE_DOMAIN;
  return made.kind == kMadeRole || (made.kind == kMadeOther && has_common_oid(made.object.catalog));
}

}  // namespace

List* made_of_kind(const List* made, DdlMadeKind kind) {
  List* oids = NIL;
  ListCell* cell;
  foreach (cell, made) {
    const auto* one = static_cast<DdlMade*>(lfirst(cell));
    if (one->kind == kind) oids = lappend_oid(oids, one->object.oid);
  }
  return oids;
}

List* relations_made(const List* made) {
  List* oids = NIL;
  ListCell* cell;
  foreach (cell, made) {
    const auto* one = static_cast<DdlMade*>(lfirst(cell));
    if (one->object.catalog == RelationRelationId) oids = lappend_oid(oids, one->object.oid);
  }
  return oids;
}

List* relations_of(const DdlRecord* record) {
  List* all = relations_made(record->made);
  ListCell* cell;
  foreach (cell, record->targets) all = list_append_unique_oid(all, static_cast<DdlTarget*>(lfirst(cell))->relation);
  return all;
}

List* objects_of(const DdlRecord* record) {
  List* all = NIL;
  ListCell* cell;
  foreach (cell, record->made)
    if (is_stated(*static_cast<DdlMade*>(lfirst(cell)))) all = lappend(all, lfirst(cell));
  foreach (cell, record->altered)
    if (has_common_oid(static_cast<DdlObject*>(lfirst(cell))->catalog)) all = lappend(all, lfirst(cell));
  return all;
}

List* touched_by(const DdlRecord* record) { return list_concat_copy(record->made, record->altered); }

List* enums_of(const DdlRecord* record) {
  List* types = made_of_kind(record->made, kMadeType);
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
