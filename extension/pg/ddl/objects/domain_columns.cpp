#include "extension/pg/ddl/objects/domain_columns.hpp"

#include "extension/pg/ddl/base/catalog_rows.hpp"

extern "C" {
#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/dependency.h"
#include "catalog/indexing.h"
#include "catalog/pg_class.h"
#include "catalog/pg_depend.h"
#include "catalog/pg_type.h"
#include "utils/lsyscache.h"
}

namespace gcl {

List* relations_with_domain(Oid domain) {
  List* relations = NIL;
  List* domains = list_make1_oid(domain);
  Relation catalog = table_open(DependRelationId, AccessShareLock);
  for (int i = 0; i < list_length(domains); ++i) {
    CHECK_FOR_INTERRUPTS();
    const auto note = [&](HeapTuple tuple) {
      const auto* row = reinterpret_cast<Form_pg_depend>(GETSTRUCT(tuple));
      if (row->classid == TypeRelationId && get_typtype(row->objid) == TYPTYPE_DOMAIN)
        domains = list_append_unique_oid(domains, row->objid);
      if (row->classid == RelationRelationId && row->objsubid > 0)
        relations = list_append_unique_oid(relations, row->objid);
    };
    each_catalog_row(catalog, DependReferenceIndexId,
                     {{Anum_pg_depend_refclassid, TypeRelationId}, {Anum_pg_depend_refobjid, list_nth_oid(domains, i)}},
                     note);
  }
  table_close(catalog, AccessShareLock);
  list_sort(relations, list_oid_cmp);
  return relations;
}

}  // namespace gcl
