// Whose the pool's pages are.
#include "extension/pg/indexam/open.hpp"
#include "extension/pg/runtime/backend.hpp"
#include "extension/pg/runtime/rows.hpp"
#include "extension/pg/stats/our_relations.hpp"

extern "C" {
#include "access/relation.h"
#include "catalog/pg_class.h"
#include "catalog/pg_namespace.h"
PG_FUNCTION_INFO_V1(gcl_stat_relations_get);
PG_FUNCTION_INFO_V1(gcl_stat_pages_get);
}

namespace gcl {

namespace {

// TOAST tables' indexes count as TOAST, as in pg_table_size().
const char* kind_name(Relation rel) {
  switch (rel->rd_rel->relkind) {
    case RELKIND_TOASTVALUE:
      return "TOAST";
    case RELKIND_SEQUENCE:
      return "sequence";
    case RELKIND_INDEX:
      return rel->rd_rel->relnamespace == PG_TOAST_NAMESPACE ? "TOAST" : "index";
    default:
      return "table";
  }
}

engine::HeapPages pages_of(Relation rel) {
  if (rel->rd_rel->relkind == RELKIND_SEQUENCE) return {1, 1};
  if (rel->rd_rel->relkind != RELKIND_INDEX) return *until_done(rel, [&] { return heap_of(rel).pages(); });
  count_in();
  const auto pages = *until_done(rel, [&] { return open_tree(rel).pages(session()); });
  return {pages, pages};
}

}  // namespace
}  // namespace gcl

using namespace gcl;  // NOLINT: the functions below are PostgreSQL's, in the global namespace

// One row per gcl relation of this database that can be looked at without waiting.
Datum gcl_stat_relations_get(PG_FUNCTION_ARGS) {
  (void)pool();
  ReturnSetInfo* const result = rows_of(fcinfo);
  uint32_t count;
  const OurRelation* all = our_relations(&count);
  for (uint32_t i = 0; i < count; ++i) {
    CHECK_FOR_INTERRUPTS();
    Relation rel = open_without_waiting(all[i].oid);
    if (rel == nullptr) continue;
    const engine::HeapPages pages = pages_of(rel);
    Row<4>().oid(all[i].oid).text(kind_name(rel)).number(pages.allocated).number(pages.used).put(result);
    relation_close(rel, AccessShareLock);
  }
  return Datum{0};
}

// One row: of all pages of the pool.
Datum gcl_stat_pages_get(PG_FUNCTION_ARGS) {
  (void)pool();
  ReturnSetInfo* const result = rows_of(fcinfo);
  const bufmgr::PoolUse use = *until_done(nullptr, [] { return pool().use(session()); });
  Row<5>().number(use.pages).number(use.allocated()).number(use.free).number(use.kept).number(use.maps).put(result);
  return Datum{0};
}
