// ambuild: the tree and the local file that names it; sorted by the server's tuplesort, loaded bottom up.
#include <new>

#include "extension/engine/blink/build.hpp"
#include "extension/pg/indexam/callbacks.hpp"
#include "extension/pg/indexam/compare.hpp"
#include "extension/pg/indexam/index_pages.hpp"
#include "extension/pg/indexam/open.hpp"
#include "extension/pg/indexam/replaced.hpp"
#include "extension/pg/txn/deferred_free.hpp"

extern "C" {
#include "access/nbtree.h"
#include "access/tableam.h"
#include "catalog/index.h"
#include "commands/progress.h"
#include "miscadmin.h"
#include "utils/backend_progress.h"
#include "utils/rel.h"
#include "utils/sortsupport.h"
#include "utils/tuplesort.h"
}

namespace gcl {

using coherence::PageId;
using engine::blink::Builder;
using engine::blink::Tree;

namespace {

// Rows that are dead to us but that another snapshot may still see are indexed too, without the uniqueness check.
struct Spools {
  Tuplesortstate* live;
  Tuplesortstate* dead;  // null unless the index is unique
  bool any_dead;
  double entries;
};

void spool_row(Relation index, ItemPointer tid, Datum* values, bool* isnull, bool alive, void* state) {
  auto& spools = *static_cast<Spools*>(state);
  const bool as_dead = !alive && spools.dead != nullptr;
  if (as_dead) spools.any_dead = true;
  tuplesort_putindextuplevalues(as_dead ? spools.dead : spools.live, index, tid, values, isnull);
  spools.entries += 1;
}

double fill_spools(Relation table, Relation index, IndexInfo* info, Spools& spools) {
  pgstat_progress_update_param(PROGRESS_CREATEIDX_SUBPHASE, PROGRESS_BTREE_PHASE_INDEXBUILD_TABLESCAN);
  spools.live = tuplesort_begin_index_btree(table, index, info->ii_Unique, info->ii_NullsNotDistinct,
                                            maintenance_work_mem, nullptr, TUPLESORT_NONE);
  if (info->ii_Unique) {
    spools.dead = tuplesort_begin_index_btree(table, index, false, false, work_mem, nullptr, TUPLESORT_NONE);
  }
  const double rows = table_index_build_scan(table, index, info, true, true, spool_row, &spools, nullptr);
  pgstat_progress_update_param(PROGRESS_CREATEIDX_SUBPHASE, PROGRESS_BTREE_PHASE_PERFORMSORT_1);
  tuplesort_performsort(spools.live);
  if (spools.any_dead) {
    pgstat_progress_update_param(PROGRESS_CREATEIDX_SUBPHASE, PROGRESS_BTREE_PHASE_PERFORMSORT_2);
    tuplesort_performsort(spools.dead);
  }
  return rows;
}

// The smaller of the spools' heads; the tuples' own tids decide among equal keys.
bool live_comes_first(TupleComparator& compare, Relation index, IndexTuple live, IndexTuple dead) {
  if (dead == nullptr) return true;
  if (live == nullptr) return false;
  SearchKey search;
  search.fill(index, live);
  const int order = compare.compare(&search, {reinterpret_cast<const std::byte*>(dead), IndexTupleSize(dead)});
  return order != 0 ? order < 0 : ItemPointerCompare(&live->t_tid, &dead->t_tid) <= 0;
}

void load(Builder& builder, TupleComparator& compare, Relation table, Relation index, const Spools& spools) {
  pgstat_progress_update_param(PROGRESS_CREATEIDX_SUBPHASE, PROGRESS_BTREE_PHASE_LEAF_LOAD);
  IndexTuple live = tuplesort_getindextuple(spools.live, true);
  IndexTuple dead = spools.any_dead ? tuplesort_getindextuple(spools.dead, true) : nullptr;
  int64 loaded = 0;
  while (live != nullptr || dead != nullptr) {
    const bool take_live = live_comes_first(compare, index, live, dead);
    IndexTuple tuple = take_live ? live : dead;
    const Size bytes = IndexTupleSize(tuple);
    if (bytes > engine::blink::kKeyMax) report_too_large(index, table, bytes, &tuple->t_tid);
    const engine::Tid tid{ItemPointerGetBlockNumberNoCheck(&tuple->t_tid),
                          ItemPointerGetOffsetNumberNoCheck(&tuple->t_tid)};
    until_ok(index, [&] { return builder.add({reinterpret_cast<const std::byte*>(tuple), bytes}, tid); });
    (take_live ? live : dead) = tuplesort_getindextuple(take_live ? spools.live : spools.dead, true);
    pgstat_progress_update_param(PROGRESS_CREATEIDX_TUPLES_DONE, ++loaded);
    CHECK_FOR_INTERRUPTS();
  }
  until_ok(index, [&] { return builder.finish(); });
}

// Loads the spools into the empty tree.  An error leaves what the builder has taken to the transaction's end.
void load_tree(Relation table, Relation index, const Spools& spools) {
  TupleComparator compare(index);
  auto* builder = new (palloc(sizeof(Builder))) Builder(open_tree(index), session(), compare);
  load(*builder, compare, table, index, spools);
  pfree(builder);
}

// An empty tree under the index's name; what it replaces goes when the transaction commits.
void make_tree(Relation index) {
  if (const std::optional<PageId> old = replaced_tree(index)) pages_dropped(RelationFile::kIndex, *old);
  const PageId meta = new_pages(RelationFile::kIndex);
  until_ok(index, [=] { return Tree::create_at(pool(), session(), meta); });
  note_tree(index, meta);
  if (relation_seam.relation_made != nullptr) {
    relation_seam.relation_made(RelationGetRelid(index), RelationFile::kIndex, meta);
  }
  write_relation_record(index->rd_node, RelationFile::kIndex, meta);
}

IndexBuildResult* result_of(double rows, double entries) {
  auto* result = static_cast<IndexBuildResult*>(palloc(sizeof(IndexBuildResult)));
  result->heap_tuples = rows;
  result->index_tuples = entries;
  return result;
}

void check_supported(Relation index, IndexInfo* info) {
  if (!info->ii_Concurrent) return;
  ereport(ERROR, errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
          errmsg("index \"%s\" cannot be built concurrently on a gcl table", RelationGetRelationName(index)),
          errhint("Use CREATE INDEX without CONCURRENTLY."));
}

}  // namespace

IndexBuildResult* blink_ambuild(Relation table, Relation index, IndexInfo* info) {
  check_supported(index, info);
  PageId meta;
  if (relation_seam.next_relation_override != nullptr &&
      relation_seam.next_relation_override(RelationGetRelid(index), &meta)) {
    // The coordinator has built it already.
    write_relation_record(index->rd_node, RelationFile::kIndex, meta);
    const double rows = Max(table->rd_rel->reltuples, 0);
    return result_of(rows, rows);
  }
  make_tree(index);
  note_counted(table);

  Spools spools{};
  const double rows = fill_spools(table, index, info, spools);
  load_tree(table, index, spools);
  tuplesort_end(spools.live);
  if (spools.dead != nullptr) tuplesort_end(spools.dead);
  return result_of(rows, spools.entries);
}

void blink_ambuildempty(Relation index) {
  ereport(ERROR, errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
          errmsg("index \"%s\" cannot be unlogged: its table uses gcl", RelationGetRelationName(index)));
}

}  // namespace gcl
