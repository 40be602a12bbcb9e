#include "extension/pg/ddl/coordinate/half_done.hpp"

#include "extension/pg/ddl/base/ddl_sql.hpp"
#include "extension/pg/ddl/record/captures.hpp"
#include "extension/pg/ddl/record/record_objects.hpp"

namespace gcl {
namespace {

constexpr const char* kNeedsQuery = R"sql(
  SELECT 1 FROM ROWS FROM (pg_catalog.unnest($1), pg_catalog.unnest($2)) AS given(classid, objid)
    JOIN pg_catalog.pg_depend d ON d.classid = given.classid AND d.objid = given.objid
    WHERE d.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass AND d.refobjid = ANY ($3)
    LIMIT 1)sql";

List* relations_changed_by(const Capture* capture) {
  List* relations = NIL;
  ListCell* cell;
  foreach (cell, capture->record->targets)
    relations = lappend_oid(relations, static_cast<DdlTarget*>(lfirst(cell))->relation);
  return list_concat(relations, relations_made(capture->made));
}

bool changes_any(const List* targets, const List* relations) {
  ListCell* cell;
  foreach (cell, targets)
    if (list_member_oid(relations, static_cast<DdlTarget*>(lfirst(cell))->relation)) return true;
  return false;
}

bool needs_any(const DdlRecord* record, const List* relations) {
  List *catalogs = NIL, *oids = NIL;
  ListCell* cell;
  foreach (cell, touched_by(record)) {
    const auto* object = static_cast<DdlObject*>(lfirst(cell));
    catalogs = lappend_oid(catalogs, object->catalog);
    oids = lappend_oid(oids, object->oid);
  }
  return catalog_text(kNeedsQuery, {oids_argument(catalogs), oids_argument(oids), oids_argument(relations)}) != nullptr;
}

[[noreturn]] void refuse_order() {
  ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
                  errmsg("DDL in an event trigger on table_rewrite cannot be about the table that is rewritten"),
                  errdetail("What ALTER TABLE has done so far is on this primary only."),
                  errhint("Run it in an event trigger on ddl_command_end.")));
  pg_unreachable();
}

template <class Test>
void check_order(Test breaks_with) {
  for (const Capture* below = newest_capture(); below; below = below->below)
    if (below->stage == CaptureStage::kRewrites && breaks_with(relations_changed_by(below))) refuse_order();
}

}  // namespace

void check_order_before(const List* targets) {
  check_order([=](const List* relations) { return changes_any(targets, relations); });
}

void check_order_after(const DdlRecord* record) {
  check_order([=](const List* relations) { return needs_any(record, relations); });
}

}  // namespace gcl
