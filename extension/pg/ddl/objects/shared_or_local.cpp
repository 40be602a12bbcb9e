#include "extension/pg/ddl/objects/shared_or_local.hpp"

#include "extension/pg/catalog/shared_relations.hpp"
#include "extension/pg/ddl/base/catalog_rows.hpp"

extern "C" {
#include "access/htup_details.h"
#include "access/table.h"
#include "access/transam.h"
#include "catalog/dependency.h"
#include "catalog/indexing.h"
#include "catalog/namespace.h"
#include "catalog/pg_attrdef.h"
#include "catalog/pg_class.h"
#include "catalog/pg_depend.h"
#include "catalog/pg_namespace.h"
#include "catalog/pg_rewrite.h"
#include "utils/hsearch.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
}

namespace gcl {
namespace {

// This primary has it for itself.
bool is_local(const DdlObject& object) {
  if (object.oid < FirstNormalObjectId) return false;
  if (object.catalog == NamespaceRelationId) {
    const char* name = get_namespace_name(object.oid);
    return name && strncmp(name, "pg_temp_", strlen("pg_temp_")) == 0;
  }
  FormData_pg_class form;
  if (object.catalog != RelationRelationId || !find_class(object.oid, &form)) return false;
  const bool has_method = form.relkind == RELKIND_RELATION || form.relkind == RELKIND_MATVIEW ||
                          form.relkind == RELKIND_SEQUENCE || form.relkind == RELKIND_PARTITIONED_TABLE;
  return form.relpersistence != RELPERSISTENCE_PERMANENT || form.relkind == RELKIND_FOREIGN_TABLE ||
         (has_method && form.relam != gcl_access_method());
}

// The objects that others need, over any number of steps.
class Needs {
 public:
  Needs() {
    HASHCTL control{};
    control.keysize = control.entrysize = sizeof(DdlObject);
    control.hcxt = CurrentMemoryContext;
    seen_ = hash_create("gcl needs", 64, &control, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
  }

  void meet(const DdlObject& object) {
    bool found;
    auto* entry = static_cast<DdlObject*>(hash_search(seen_, &object, HASH_ENTER, &found));
    if (!found) ahead_ = lappend(ahead_, entry);
  }

  bool any_is_local() {
    while (ahead_ != NIL) {
      CHECK_FOR_INTERRUPTS();
      const DdlObject object = *static_cast<DdlObject*>(llast(ahead_));
      ahead_ = list_delete_last(ahead_);
      if (is_local(object)) return true;
      go_on_from(object);
    }
    return false;
  }

 private:
  // A view depends on its tables through its rule, a table on what its defaults need through them; the rules of a table
  // are nothing it needs.
  void go_on_from(const DdlObject& object) {
    each_row(DependRelationId, DependDependerIndexId,
             {{Anum_pg_depend_classid, object.catalog}, {Anum_pg_depend_objid, object.oid}}, [this](HeapTuple tuple) {
               const auto* row = reinterpret_cast<Form_pg_depend>(GETSTRUCT(tuple));
               if (row->deptype != DEPENDENCY_EXTENSION) meet({row->refclassid, row->refobjid});
             });
    if (object.catalog != RelationRelationId) return;
    const char kind = get_rel_relkind(object.oid);
    if (kind == RELKIND_RELATION || kind == RELKIND_PARTITIONED_TABLE || kind == RELKIND_FOREIGN_TABLE ||
        kind == RELKIND_VIEW)
      each_row(AttrDefaultRelationId, AttrDefaultIndexId, {{Anum_pg_attrdef_adrelid, object.oid}},
               [this](HeapTuple tuple) {
                 meet({AttrDefaultRelationId, reinterpret_cast<Form_pg_attrdef>(GETSTRUCT(tuple))->oid});
               });
    if (kind == RELKIND_VIEW || kind == RELKIND_MATVIEW)
      each_row(RewriteRelationId, RewriteRelRulenameIndexId, {{Anum_pg_rewrite_ev_class, object.oid}},
               [this](HeapTuple tuple) {
                 meet({RewriteRelationId, reinterpret_cast<Form_pg_rewrite>(GETSTRUCT(tuple))->oid});
               });
  }

  template <class Work>
  static void each_row(Oid of, Oid index, std::initializer_list<CatalogKey> keys, Work work) {
    Relation catalog = table_open(of, AccessShareLock);
    each_catalog_row(catalog, index, keys, work);
    table_close(catalog, AccessShareLock);
  }

  HTAB* seen_;
  List* ahead_ = nullptr;  // DdlObject*, in seen_
};

}  // namespace

bool any_is_local(const List* objects) {
  Needs needs;
  ListCell* cell;
  foreach (cell, objects) needs.meet(*static_cast<DdlObject*>(lfirst(cell)));
  return needs.any_is_local();
}

bool is_local_object(Oid catalog, Oid object) {
  DdlObject one{catalog, object};
  return any_is_local(list_make1(&one));
}

bool is_cluster_relation(Oid relation) {
  if (OidIsValid(relation) && relation < FirstNormalObjectId) return true;  // the server's own catalogs
  if (is_shared_relation(relation)) return true;
  switch (get_rel_relkind(relation)) {
    case RELKIND_VIEW:
    case RELKIND_COMPOSITE_TYPE:
      return !is_local_object(RelationRelationId, relation);
    default:
      return false;
  }
}

}  // namespace gcl
