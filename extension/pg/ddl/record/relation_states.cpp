#include "extension/pg/ddl/record/relation_states.hpp"

#include "extension/pg/catalog/shared_relations.hpp"
#include "extension/pg/ddl/base/ddl_sql.hpp"
#include "extension/pg/ddl/record/attribute_versions.hpp"
#include "extension/pg/runtime/relation_record.hpp"

extern "C" {
#include "access/htup_details.h"
#include "access/multixact.h"
#include "access/relation.h"
#include "access/table.h"
#include "access/transam.h"
#include "catalog/heap.h"
#include "catalog/indexing.h"
#include "catalog/pg_class.h"
#include "catalog/pg_index.h"
#include "commands/vacuum.h"
#include "utils/rel.h"
#include "utils/relcache.h"
#include "utils/syscache.h"
}

namespace gcl {
namespace {

constexpr uint64_t kNoHeader = ~uint64_t{0};

void read_missing(Relation relation, DdlRelationState* state) {
  for (int i = 0; i < state->natts; ++i) {
    const Form_pg_attribute attribute = TupleDescAttr(relation->rd_att, i);
    if (!attribute->atthasmissing || attribute->attisdropped) continue;
    state->missing[i] =
        catalog_text("SELECT attmissingval FROM pg_catalog.pg_attribute WHERE attrelid = $1 AND attname = $2",
                     {oid_argument(state->relation), text_argument(NameStr(attribute->attname))});
  }
}

bool is_index(Relation relation) {
  return relation->rd_rel->relkind == RELKIND_INDEX || relation->rd_rel->relkind == RELKIND_PARTITIONED_INDEX;
}

// Replay evaluates a default again: now() is another one by then.
void impose_missing(Relation relation, const DdlRelationState* state) {
  DdlRelationState* here = new_relation_state(state->relation, state->natts);
  read_missing(relation, here);
  for (int i = 0; i < state->natts && i < relation->rd_att->natts; ++i) {
    if (!state->missing[i] || (here->missing[i] && strcmp(state->missing[i], here->missing[i]) == 0)) continue;
    char* name = pstrdup(NameStr(TupleDescAttr(relation->rd_att, i)->attname));
    const int nest = enter_fixed_settings();
    SetAttrMissing(state->relation, name, state->missing[i]);
    leave_fixed_settings(nest);
  }
}

// The coordinator met row versions that have no entry in the index: older transactions need them, here too.  They are
// older than the row in pg_index that this transaction writes.
void impose_check_of_xmin(Oid index) {
  Relation catalog = table_open(IndexRelationId, RowExclusiveLock);
  HeapTuple tuple = SearchSysCacheCopy1(INDEXRELID, ObjectIdGetDatum(index));
  if (!HeapTupleIsValid(tuple)) elog(ERROR, "cache lookup failed for index %u", index);
  reinterpret_cast<Form_pg_index>(GETSTRUCT(tuple))->indcheckxmin = true;
  CatalogTupleUpdate(catalog, &tuple->t_self, tuple);
  table_close(catalog, RowExclusiveLock);
}

// An index that PostgreSQL would keep the file of is made with a new one in the replay, and not built.
void impose_header(Relation relation, const DdlRelationState* state) {
  if (!is_index(relation) || state->header == kNoHeader) return;
  const coherence::PageId here = relation_page_in_file(relation->rd_node, RelationFile::kIndex);
  if (here.raw == state->header) return;
  write_relation_record(relation->rd_node, RelationFile::kIndex, coherence::PageId{state->header});
}

}  // namespace

DdlRelationState* relation_state_of(Oid oid) {
  Relation relation = try_relation_open(oid, AccessShareLock);
  if (!relation) return nullptr;
  DdlRelationState* state = is_index(relation) ? new_relation_state(oid, 0) : versions_of(oid);
  if (RELKIND_HAS_STORAGE(relation->rd_rel->relkind) && is_shared_relation(oid))
    state->header = relation_page(relation).raw;
  state->checks_xmin = is_index(relation) && relation->rd_index->indcheckxmin;
  state->pages = relation->rd_rel->relpages;
  state->tuples = relation->rd_rel->reltuples;
  read_missing(relation, state);
  relation_close(relation, NoLock);
  return state;
}

void impose_relation_state(const DdlRelationState* state) {
  Relation relation = try_relation_open(state->relation, AccessShareLock);
  if (!relation) return;
  impose_versions(state);
  CommandCounterIncrement();
  impose_missing(relation, state);
  impose_header(relation, state);
  if (state->checks_xmin && !relation->rd_index->indcheckxmin) impose_check_of_xmin(state->relation);
  if (state->header != kNoHeader)
    vac_update_relstats(relation, BlockNumber(state->pages), state->tuples, 0, relation->rd_rel->relhasindex,
                        InvalidTransactionId, InvalidMultiXactId, nullptr, nullptr, true);
  relation_close(relation, NoLock);
  CommandCounterIncrement();
}

void forget_frozen_ids(Oid table) {
  if (!is_shared_table(table)) return;
  Relation catalog = table_open(RelationRelationId, RowExclusiveLock);
  HeapTuple tuple = SearchSysCacheCopy1(RELOID, ObjectIdGetDatum(table));
  if (!HeapTupleIsValid(tuple)) elog(ERROR, "cache lookup failed for relation %u", table);
  auto* form = reinterpret_cast<Form_pg_class>(GETSTRUCT(tuple));
  if (TransactionIdIsValid(form->relfrozenxid) || MultiXactIdIsValid(form->relminmxid)) {
    form->relfrozenxid = InvalidTransactionId;
    form->relminmxid = InvalidMultiXactId;
    CatalogTupleUpdate(catalog, &tuple->t_self, tuple);
  }
  table_close(catalog, RowExclusiveLock);
}

}  // namespace gcl
