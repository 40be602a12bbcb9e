#include "extension/pg/stats/relation_size.hpp"

#include "extension/pg/boundary/builtin_patch.hpp"
#include "extension/pg/indexam/dispatch.hpp"
#include "extension/pg/indexam/open.hpp"
#include "extension/pg/runtime/backend.hpp"
#include "extension/pg/tableam/table_am.hpp"

extern "C" {
#include "access/relation.h"
#include "catalog/pg_am.h"
#include "catalog/pg_class.h"
#include "common/relpath.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/fmgrprotos.h"
}

namespace gcl {

namespace {

int64 table_pages(Relation rel) {
  engine::Heap& heap = heap_of(rel);
  return *until_done(rel, [&] { return heap.used_blocks(); });
}

int64 index_pages(Relation index) {
  count_in();
  return int64(*until_done(index, [&] { return open_tree(index).pages(session()); }));
}

int64 pages_of_indexes(Relation table) {
  int64 pages = 0;
  ListCell* cell;
  foreach (cell, RelationGetIndexList(table)) {
    Relation index = relation_open(lfirst_oid(cell), AccessShareLock);
    pages += index_pages(index);
    relation_close(index, AccessShareLock);
  }
  return pages;
}

enum class Part { kMain, kTable, kIndexes, kTotal };

// The TOAST relation belongs to the table, with its index.
int64 pages_of_toast(Relation table) {
  if (!OidIsValid(table->rd_rel->reltoastrelid)) return 0;
  Relation toast = relation_open(table->rd_rel->reltoastrelid, AccessShareLock);
  const int64 pages = table_pages(toast) + pages_of_indexes(toast);
  relation_close(toast, AccessShareLock);
  return pages;
}

int64 pages_of(Relation rel, Part part) {
  if (rel->rd_rel->relkind == RELKIND_INDEX) return part == Part::kIndexes ? 0 : index_pages(rel);
  int64 pages = part == Part::kIndexes ? 0 : table_pages(rel);
  if (part == Part::kTable || part == Part::kTotal) pages += pages_of_toast(rel);
  if (part == Part::kIndexes || part == Part::kTotal) pages += pages_of_indexes(rel);
  return pages;
}

bool is_ours(Relation rel) {
  const char kind = rel->rd_rel->relkind;
  if (RelationGetRelid(rel) < FirstNormalObjectId) return false;
  if (kind == RELKIND_INDEX) return rel->rd_rel->relam == BTREE_AM_OID && is_gcl_index(rel);
  return (kind == RELKIND_RELATION || kind == RELKIND_MATVIEW || kind == RELKIND_TOASTVALUE) && is_gcl_table(rel);
}

Datum size(FunctionCallInfo fcinfo, PGFunction native, Part part) {
  Relation rel = try_relation_open(PG_GETARG_OID(0), AccessShareLock);
  if (rel == nullptr) PG_RETURN_NULL();
  if (!is_ours(rel)) {
    relation_close(rel, AccessShareLock);
    return native(fcinfo);
  }
  const bool main_fork =
      part != Part::kMain || forkname_to_number(text_to_cstring(PG_GETARG_TEXT_PP(1))) == MAIN_FORKNUM;
  const bool known = serves();
  const int64 bytes = known && main_fork ? pages_of(rel, part) * BLCKSZ : 0;
  relation_close(rel, AccessShareLock);
  if (!known) PG_RETURN_NULL();
  PG_RETURN_INT64(bytes);
}

Datum relation_size(PG_FUNCTION_ARGS) { return size(fcinfo, pg_relation_size, Part::kMain); }
Datum table_size(PG_FUNCTION_ARGS) { return size(fcinfo, pg_table_size, Part::kTable); }
Datum indexes_size(PG_FUNCTION_ARGS) { return size(fcinfo, pg_indexes_size, Part::kIndexes); }
Datum total_size(PG_FUNCTION_ARGS) { return size(fcinfo, pg_total_relation_size, Part::kTotal); }

}  // namespace

void replace_size_functions() {
  replace_builtin({F_PG_RELATION_SIZE_REGCLASS_TEXT, "pg_relation_size", pg_relation_size, 2}, relation_size);
  replace_builtin({F_PG_TABLE_SIZE, "pg_table_size", pg_table_size, 1}, table_size);
  replace_builtin({F_PG_INDEXES_SIZE, "pg_indexes_size", pg_indexes_size, 1}, indexes_size);
  replace_builtin({F_PG_TOTAL_RELATION_SIZE, "pg_total_relation_size", pg_total_relation_size, 1}, total_size);
}

}  // namespace gcl
