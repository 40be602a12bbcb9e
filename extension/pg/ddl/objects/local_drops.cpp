#include "extension/pg/ddl/objects/local_drops.hpp"

#include "extension/pg/catalog/shared_relations.hpp"
#include "extension/pg/ddl/objects/shared_or_local.hpp"

extern "C" {
#include "access/transam.h"
#include "catalog/dependency.h"
#include "catalog/objectaddress.h"
#include "catalog/pg_class.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_rewrite.h"
#include "catalog/pg_type.h"
#include "utils/lsyscache.h"
}

namespace gcl {
namespace {

struct LocalDrop {
  Oid relation;  // it is one, or a part of one; InvalidOid: neither
  bool part;
  char* what;
};
List* local_drops = NIL;  // LocalDrop*, in the memory context of its message

// Relations that are dropped with a table or a column without a word.
bool goes_unsaid(Oid relation) {
  Oid table;
  int32 column;
  switch (get_rel_relkind(relation)) {
    case RELKIND_RELATION:
    case RELKIND_PARTITIONED_TABLE:
    case RELKIND_VIEW:
    case RELKIND_MATVIEW:
    case RELKIND_FOREIGN_TABLE:
    case RELKIND_COMPOSITE_TYPE:
      return false;
    case RELKIND_SEQUENCE:
      return sequenceIsOwned(relation, DEPENDENCY_AUTO, &table, &column) ||
             sequenceIsOwned(relation, DEPENDENCY_INTERNAL, &table, &column);
    default:
      return true;
  }
}

// Row types and arrays go with their relations and types.
bool is_type_by_itself(Oid type) {
  const char kind = get_typtype(type);
  return kind == TYPTYPE_DOMAIN || kind == TYPTYPE_ENUM ||
         (kind == TYPTYPE_BASE && !OidIsValid(get_element_type(type)));
}

bool is_local_drop(Oid class_id, Oid object, Oid relation) {
  if (object < FirstNormalObjectId) return false;
  if (OidIsValid(relation)) return !goes_unsaid(relation) && !is_cluster_relation(relation);
  if (class_id == TypeRelationId && !is_type_by_itself(object)) return false;
  return (class_id == TypeRelationId || class_id == ProcedureRelationId) && is_local_object(class_id, object);
}

bool drops_whole(Oid relation) {
  if (!OidIsValid(relation)) return false;
  ListCell* cell;
  foreach (cell, local_drops) {
    const auto* drop = static_cast<LocalDrop*>(lfirst(cell));
    if (drop->relation == relation && !drop->part) return true;
  }
  return false;
}

}  // namespace

void begin_local_drops() { local_drops = NIL; }

void note_local_drop(Oid class_id, Oid object, int sub_id) {
  const Oid relation = relation_of_part(class_id, object);
  // A view goes by its rule, and what it depends on is known no more when it goes itself.
  if (class_id == RewriteRelationId && get_rel_relkind(relation) == RELKIND_VIEW) {
    class_id = RelationRelationId;
    object = relation;
  }
  if (!is_local_drop(class_id, object, relation) || (sub_id == 0 && drops_whole(relation))) return;
  ObjectAddress address;
  ObjectAddressSubSet(address, class_id, object, sub_id);
  auto* drop = static_cast<LocalDrop*>(palloc(sizeof(LocalDrop)));
  *drop = {relation, class_id != RelationRelationId || sub_id != 0, getObjectDescription(&address, true)};
  if (drop->what) local_drops = lappend(local_drops, drop);
}

char* local_drops_text(size_t bytes) {
  constexpr size_t kMore = 32;
  StringInfoData text;
  initStringInfo(&text);
  int more = 0;
  ListCell* cell;
  foreach (cell, local_drops) {
    const auto* drop = static_cast<LocalDrop*>(lfirst(cell));
    if (drop->part && drops_whole(drop->relation)) continue;
    if (more > 0 || size_t(text.len) + strlen(drop->what) + kMore > bytes)
      ++more;
    else
      appendStringInfo(&text, "%s%s", text.len > 0 ? ", " : "", drop->what);
  }
  if (more > 0) appendStringInfo(&text, " and %d more", more);
  return text.data;
}

}  // namespace gcl
