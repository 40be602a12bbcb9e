#include "extension/pg/ddl/locality.hpp"

#include "extension/pg/ddl/ddl_sql.hpp"
#include "extension/pg/ddl/shared_relations.hpp"

extern "C" {
#include "access/transam.h"
#include "catalog/pg_class.h"
#include "utils/lsyscache.h"
}

namespace gcl {
namespace {

// A view depends on its tables through its rule, a table on what its defaults need through them; the rules of a table
// are nothing it needs.
constexpr const char* kLocalityQuery = R"sql(
  WITH RECURSIVE needed(classid, objid) AS (
    SELECT * FROM ROWS FROM (pg_catalog.unnest($1), pg_catalog.unnest($2)) AS given(classid, objid)
    UNION
    SELECT next.* FROM needed, LATERAL (
      SELECT refclassid, refobjid FROM pg_catalog.pg_depend
        WHERE classid = needed.classid AND objid = needed.objid AND deptype <> 'e'
      UNION ALL
      SELECT 'pg_catalog.pg_attrdef'::pg_catalog.regclass::pg_catalog.oid, d.oid FROM pg_catalog.pg_attrdef d
        WHERE needed.classid = 'pg_catalog.pg_class'::pg_catalog.regclass AND d.adrelid = needed.objid
      UNION ALL
      SELECT 'pg_catalog.pg_rewrite'::pg_catalog.regclass::pg_catalog.oid, w.oid FROM pg_catalog.pg_rewrite w JOIN pg_catalog.pg_class v ON v.oid = w.ev_class
        WHERE needed.classid = 'pg_catalog.pg_class'::pg_catalog.regclass AND v.oid = needed.objid AND v.relkind IN ('v', 'm')) AS next)
  SELECT 1 FROM needed LEFT JOIN pg_catalog.pg_class c ON classid = 'pg_catalog.pg_class'::pg_catalog.regclass AND c.oid = objid
    LEFT JOIN pg_catalog.pg_namespace n ON classid = 'pg_catalog.pg_namespace'::pg_catalog.regclass AND n.oid = objid
    WHERE objid >= 16384
      AND (c.relpersistence <> 'p' OR c.relkind IN ('r', 'm', 'S', 'p') AND c.relam <> $3 OR c.relkind = 'f'
           OR n.nspname LIKE 'pg\_temp\_%')
    LIMIT 1)sql";

}  // namespace

bool any_is_local(const List* objects) {
  List *catalogs = NIL, *oids = NIL;
  ListCell* cell;
  foreach (cell, objects) {
    const auto* object = static_cast<DdlObject*>(lfirst(cell));
    catalogs = lappend_oid(catalogs, object->catalog);
    oids = lappend_oid(oids, object->oid);
  }
  if (oids == NIL) return false;
  return catalog_text(kLocalityQuery,
                      {oids_argument(catalogs), oids_argument(oids), oid_argument(gcl_access_method())}) != nullptr;
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
