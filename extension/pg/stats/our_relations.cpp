#include "extension/pg/stats/our_relations.hpp"

#include "extension/pg/catalog/shared_relations.hpp"
#include "extension/pg/indexam/dispatch.hpp"

extern "C" {
#include "access/genam.h"
#include "access/relation.h"
#include "access/table.h"
#include "catalog/pg_am.h"
#include "catalog/pg_class.h"
}

namespace gcl {

namespace {

bool may_be_ours(const FormData_pg_class& row, Oid am) {
  if (row.oid < FirstNormalObjectId || row.relpersistence != RELPERSISTENCE_PERMANENT) return false;
  switch (row.relkind) {
    case RELKIND_RELATION:
    case RELKIND_TOASTVALUE:
      return row.relam == am;
    case RELKIND_INDEX:
      return row.relam == BTREE_AM_OID;
    case RELKIND_SEQUENCE:
      return row.relam == am;
    default:
      return false;
  }
}

// Invalid: an index of a table, or a sequence, that is not ours.
coherence::PageId page_of(Relation rel) {
  const char kind = rel->rd_rel->relkind;
  if (kind == RELKIND_SEQUENCE) return relation_page_in_file(rel->rd_node, RelationFile::kSequence);
  if (kind == RELKIND_INDEX && !is_gcl_index(rel)) return {};
  return relation_page(rel);
}

List* candidates(Oid am) {
  List* all = NIL;
  Relation catalog = table_open(RelationRelationId, AccessShareLock);
  SysScanDesc scan = systable_beginscan(catalog, InvalidOid, false, nullptr, 0, nullptr);
  while (HeapTuple tuple = systable_getnext(scan)) {
    const auto& row = *reinterpret_cast<Form_pg_class>(GETSTRUCT(tuple));
    if (may_be_ours(row, am)) all = lappend_oid(all, row.oid);
  }
  systable_endscan(scan);
  table_close(catalog, AccessShareLock);
  return all;
}

}  // namespace

OurRelation* our_relations(uint32_t* count) {
  const Oid am = gcl_access_method();
  List* oids = OidIsValid(am) ? candidates(am) : NIL;
  auto* all = static_cast<OurRelation*>(palloc(Max(list_length(oids), 1) * sizeof(OurRelation)));
  *count = 0;
  ListCell* cell;
  foreach (cell, oids) {
    CHECK_FOR_INTERRUPTS();
    Relation rel = open_without_waiting(lfirst_oid(cell));
    if (rel == nullptr) continue;
    all[*count] = {RelationGetRelid(rel), rel->rd_rel->relkind, page_of(rel)};
    *count += all[*count].header.valid();
    relation_close(rel, AccessShareLock);
  }
  return all;
}

Relation open_without_waiting(Oid relation) {
  if (!ConditionalLockRelationOid(relation, AccessShareLock)) return nullptr;
  Relation rel = try_relation_open(relation, NoLock);
  if (rel == nullptr) UnlockRelationOid(relation, AccessShareLock);
  return rel;
}

}  // namespace gcl
