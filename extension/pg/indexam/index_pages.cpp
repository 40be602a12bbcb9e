#include "extension/pg/indexam/index_pages.hpp"

#include "extension/pg/indexam/dispatch.hpp"
#include "extension/pg/indexam/open.hpp"
#include "extension/pg/runtime/backend.hpp"
#include "extension/pg/txn/transaction_parts.hpp"

extern "C" {
#include "access/genam.h"
#include "access/relation.h"
#include "access/table.h"
#include "catalog/indexing.h"
#include "catalog/pg_am.h"
#include "catalog/pg_class.h"
#include "utils/fmgroids.h"
#include "utils/memutils.h"
#include "utils/rel.h"
}

namespace gcl {

namespace {

List* counted = NIL;  // tables, by OID; in the transaction's memory

// As ANALYZE itself: in place, so that no session waits and no version is left behind.
void set_pages(Oid index, int32 pages) {
  Relation catalog = table_open(RelationRelationId, RowExclusiveLock);
  ScanKeyData key;
  ScanKeyInit(&key, Anum_pg_class_oid, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(index));
  HeapTuple tuple = nullptr;
  void* state = nullptr;
  systable_inplace_update_begin(catalog, ClassOidIndexId, true, nullptr, 1, &key, &tuple, &state);
  if (HeapTupleIsValid(tuple)) {
    auto* row = reinterpret_cast<Form_pg_class>(GETSTRUCT(tuple));
    if (row->relpages == pages) {
      systable_inplace_update_cancel(state);
    } else {
      row->relpages = pages;
      systable_inplace_update_finish(state, tuple);
    }
  }
  table_close(catalog, RowExclusiveLock);
}

void correct(Oid index_oid) {
  Relation index = try_relation_open(index_oid, AccessShareLock);
  if (index == nullptr) return;
  if (index->rd_rel->relkind == RELKIND_INDEX && index->rd_rel->relam == BTREE_AM_OID && is_gcl_index(index)) {
    count_in();
    set_pages(index_oid, int32(*until_done(index, [&] { return open_tree(index).pages(session()); })));
  }
  relation_close(index, AccessShareLock);
}

}  // namespace

void note_counted(Relation table) {
  const MemoryContext before = MemoryContextSwitchTo(TopTransactionContext);
  counted = list_append_unique_oid(counted, RelationGetRelid(table));
  MemoryContextSwitchTo(before);
}

[[gnu::noinline]] static void correct_index_pages() {
  ListCell* cell;
  foreach (cell, counted) {
    Relation table = try_relation_open(lfirst_oid(cell), AccessShareLock);
    if (table == nullptr) continue;  // dropped meanwhile
    ListCell* at;
    foreach (at, RelationGetIndexList(table)) correct(lfirst_oid(at));
    relation_close(table, AccessShareLock);
  }
  counted = NIL;
}

static void correct_if_any() {
  if (counted != NIL) correct_index_pages();
}

static void forget_counted() noexcept { counted = NIL; }

void install_index_sizes() {
  install(TransactionPart::kIndexSizes, {.pre_commit = correct_if_any, .forget = forget_counted});
}

}  // namespace gcl
