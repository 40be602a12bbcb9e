#include "extension/pg/ddl/objects/uses.hpp"

#include "extension/pg/ddl/base/catalog_rows.hpp"
#include "extension/pg/ddl/objects/shared_or_local.hpp"

extern "C" {
#include "access/htup_details.h"
#include "access/table.h"
#include "access/transam.h"
#include "catalog/dependency.h"
#include "catalog/indexing.h"
#include "catalog/pg_amop.h"
#include "catalog/pg_amproc.h"
#include "catalog/pg_attrdef.h"
#include "catalog/pg_cast.h"
#include "catalog/pg_class.h"
#include "catalog/pg_collation.h"
#include "catalog/pg_constraint.h"
#include "catalog/pg_depend.h"
#include "catalog/pg_language.h"
#include "catalog/pg_opclass.h"
#include "catalog/pg_operator.h"
#include "catalog/pg_opfamily.h"
#include "catalog/pg_policy.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_rewrite.h"
#include "catalog/pg_statistic_ext.h"
#include "catalog/pg_transform.h"
#include "catalog/pg_trigger.h"
#include "catalog/pg_ts_config.h"
#include "catalog/pg_ts_dict.h"
#include "catalog/pg_ts_parser.h"
#include "catalog/pg_ts_template.h"
#include "catalog/pg_type.h"
#include "utils/hsearch.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
}

namespace gcl {
namespace {

// How objects of a catalog are met on the way.
struct Kind {
  Oid catalog;
  bool has_parts;  // what depends on one belongs to it
  bool is_part;    // it comes with what it belongs to
  bool is_told;    // by its own line; the others are in the lines of what they belong to
};
constexpr Kind kKinds[] = {{RelationRelationId, true, true, true},
                           {ConstraintRelationId, true, true, false},
                           {AttrDefaultRelationId, false, true, false},
                           {TriggerRelationId, false, true, false},
                           {RewriteRelationId, false, true, false},
                           {PolicyRelationId, false, true, false},
                           {StatisticExtRelationId, false, true, true},
                           {TypeRelationId, true, false, true},
                           {ProcedureRelationId, true, false, true},
                           {OperatorRelationId, false, false, true},
                           {OperatorClassRelationId, true, false, true},
                           {OperatorFamilyRelationId, true, false, true},
                           {AccessMethodOperatorRelationId, false, true, true},
                           {AccessMethodProcedureRelationId, false, true, true},
                           {CastRelationId, false, true, true},
                           {CollationRelationId, false, false, true},
                           {LanguageRelationId, false, false, true},
                           {TransformRelationId, false, false, true},
                           {TSConfigRelationId, false, false, true},
                           {TSDictionaryRelationId, false, false, true},
                           {TSParserRelationId, false, false, true},
                           {TSTemplateRelationId, false, false, true}};

const Kind* kind_of(Oid catalog) {
  for (const Kind& kind : kKinds)
    if (kind.catalog == catalog) return &kind;
  return nullptr;
}

enum class Direction : uint8_t { kNeeded, kNeeding };

// DdlObject*: what the object needs, or what needs it and belongs to it (casts belong to their types and functions).
// *of_extension: it is a member of one.
List* neighbours(const DdlObject& object, Direction direction, bool* of_extension) {
  const bool forward = direction == Direction::kNeeded;
  List* found = NIL;
  const auto note = [&](HeapTuple tuple) {
    const auto* row = reinterpret_cast<Form_pg_depend>(GETSTRUCT(tuple));
    if (forward && row->deptype == DEPENDENCY_EXTENSION) *of_extension = true;
    const bool belongs = row->deptype == DEPENDENCY_AUTO || row->deptype == DEPENDENCY_INTERNAL;
    if (!forward && !belongs && row->classid != CastRelationId) return;
    auto* other = static_cast<DdlObject*>(palloc(sizeof(DdlObject)));
    *other = forward ? DdlObject{row->refclassid, row->refobjid} : DdlObject{row->classid, row->objid};
    found = lappend(found, other);
  };
  Relation catalog = table_open(DependRelationId, AccessShareLock);
  if (forward)
    each_catalog_row(catalog, DependDependerIndexId,
                     {{Anum_pg_depend_classid, object.catalog}, {Anum_pg_depend_objid, object.oid}}, note);
  else
    each_catalog_row(catalog, DependReferenceIndexId,
                     {{Anum_pg_depend_refclassid, object.catalog}, {Anum_pg_depend_refobjid, object.oid}}, note);
  table_close(catalog, AccessShareLock);
  return found;
}

bool is_index(Oid relation) {
  const char kind = get_rel_relkind(relation);
  return kind == RELKIND_INDEX || kind == RELKIND_PARTITIONED_INDEX;
}

// Tables have lines of their own where they are compared.
bool is_met(Oid relation, Direction direction) {
  const char kind = get_rel_relkind(relation);
  if (kind == RELKIND_COMPOSITE_TYPE) return true;
  return direction == Direction::kNeeded ? kind == RELKIND_VIEW : is_index(relation);
}

bool is_told(const DdlObject& object) {
  return kind_of(object.catalog)->is_told && !(object.catalog == RelationRelationId && is_index(object.oid));
}

class Walk {
 public:
  Walk() {
    HASHCTL control{};
    control.keysize = control.entrysize = sizeof(DdlObject);
    control.hcxt = CurrentMemoryContext;
    seen_ = hash_create("gcl uses", 64, &control, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
  }

  bool enter(const DdlObject& object) {  // false: it was met before
    bool found;
    (void)hash_search(seen_, &object, HASH_ENTER, &found);
    return !found;
  }

  void begin_at(const DdlObject& object) { (void)go_on_from(object); }

  List* run() {
    while (ahead_ != NIL) {
      CHECK_FOR_INTERRUPTS();
      const DdlObject object = *static_cast<DdlObject*>(llast(ahead_));
      ahead_ = list_delete_last(ahead_);
      const bool by_name = go_on_from(object);
      if (!is_told(object)) continue;
      auto* use = static_cast<DdlUse*>(palloc(sizeof(DdlUse)));
      *use = {object, by_name};
      found_ = lappend(found_, use);
    }
    return found_;
  }

 private:
  // The server's own objects are the same on all primaries.
  void meet(const DdlObject& object, Direction direction) {
    const Kind* kind = kind_of(object.catalog);
    if (object.oid < FirstNormalObjectId || !kind) return;
    if (direction == Direction::kNeeding && !kind->is_part) return;
    if (object.catalog == RelationRelationId && !is_met(object.oid, direction)) return;
    if (!enter(object)) return;
    if (object.catalog == CastRelationId && is_local_object(object.catalog, object.oid)) return;
    auto* copy = static_cast<DdlObject*>(palloc(sizeof(DdlObject)));
    *copy = object;
    ahead_ = lappend(ahead_, copy);
  }

  // True: it belongs to an extension, which answers for what it needs.
  bool go_on_from(const DdlObject& object) {
    bool of_extension = false;
    const List* needed = neighbours(object, Direction::kNeeded, &of_extension);
    if (of_extension) return true;
    ListCell* cell;
    foreach (cell, needed) meet(*static_cast<DdlObject*>(lfirst(cell)), Direction::kNeeded);
    const Kind* kind = kind_of(object.catalog);
    if (!kind || !kind->has_parts) return false;
    foreach (cell, neighbours(object, Direction::kNeeding, nullptr))
      meet(*static_cast<DdlObject*>(lfirst(cell)), Direction::kNeeding);
    return false;
  }

  HTAB* seen_;
  List* ahead_ = nullptr;  // DdlObject*
  List* found_ = nullptr;
};

}  // namespace

List* uses_of(const List* relations, const List* objects) {
  Walk walk;
  ListCell* cell;
  foreach (cell, relations) (void)walk.enter({RelationRelationId, lfirst_oid(cell)});
  foreach (cell, objects) (void)walk.enter(*static_cast<DdlObject*>(lfirst(cell)));
  foreach (cell, relations) walk.begin_at({RelationRelationId, lfirst_oid(cell)});
  foreach (cell, objects) walk.begin_at(*static_cast<DdlObject*>(lfirst(cell)));
  return walk.run();
}

}  // namespace gcl
