// CREATE INDEX: every row version that a snapshot may see is given to the index, under the TID its entry is to have.
#include "extension/pg/runtime/backend.hpp"
#include "extension/pg/tableam/table_am.hpp"

extern "C" {
#include "catalog/index.h"
#include "executor/executor.h"
#include "pgstat.h"
}

namespace gcl {

using engine::Liveness;
using engine::PageRows;
using engine::Tid;

namespace {

enum class Entry : uint8_t { kNone, kDead, kAlive };

// What the index gets for one version.  A version that was superseded within its page has no entry of its own: the
// chain's live member stands for it, and transactions with an old snapshot must not use the index (*broken).
Entry entry_for(const engine::RowHeader& row, Liveness live, bool* broken) {
  switch (live) {
    case Liveness::kLive:
    case Liveness::kInsertRunning:
      return Entry::kAlive;
    case Liveness::kDead:
      return Entry::kNone;
    case Liveness::kRecentlyDead:
    case Liveness::kDeleteRunning:
      if (row.heap_only() || row.chain_goes_on()) {
        *broken = true;
        return Entry::kNone;
      }
      return Entry::kDead;
  }
  pg_unreachable();
}

struct Build {
  Relation table, index;
  IndexInfo* info;
  IndexBuildCallback callback;
  void* state;
  EState* estate;
  ExprContext* context;
  ExprState* predicate;
  TupleTableSlot* slot;
  PageRows* rows;
  Liveness live[engine::kLinesMax];
  bool mine[engine::kLinesMax];
};

// As heap counts the rows of a table: a deletion under way may be undone.
bool counts(Liveness live, bool mine) {
  return live == Liveness::kLive || live == Liveness::kInsertRunning || (live == Liveness::kDeleteRunning && !mine);
}

// The table's rows on the page, whether or not the index has them.
double add_page(Build& b, engine::Heap& heap, uint32_t block) {
  until_ok(b.table, [&] { return heap.all_versions(block, *b.rows, b.live, b.mine); });
  uint16_t roots[engine::kLinesMax + 1];
  until_ok(b.table, [&] { return heap.roots_of(*b.rows, roots); });
  // Headers first: laying tuples over the rows overwrites them.
  Entry entries[engine::kLinesMax];
  bool broken = false;
  for (int i = 0; i < b.rows->count; ++i) {
    engine::RowHeader header;
    memcpy(&header, b.rows->row(b.rows->offset[i]), sizeof header);
    entries[i] = entry_for(header, b.live[i], &broken);
  }
  if (broken) b.info->ii_BrokenHotChain = true;
  double rows = 0;
  for (int i = 0; i < b.rows->count; ++i) {
    const uint16_t line = b.rows->offset[i];
    rows += counts(b.live[i], b.mine[i]);
    if (entries[i] == Entry::kNone || roots[line] == 0) continue;
    MemoryContextReset(b.context->ecxt_per_tuple_memory);
    store_row(b.table, b.rows->row(line), b.rows->bytes(line), Tid{block, line}, b.slot);
    if (b.predicate != nullptr && !ExecQual(b.predicate, b.context)) continue;
    Datum values[INDEX_MAX_KEYS];
    bool nulls[INDEX_MAX_KEYS];
    FormIndexDatum(b.info, b.slot, b.estate, values, nulls);
    ItemPointerData tid;
    set_tid(&tid, Tid{block, roots[line]});
    b.callback(b.index, &tid, values, nulls, entries[i] == Entry::kAlive, b.state);
  }
  return rows;
}

}  // namespace

double gcl_index_build_range_scan(Relation table, Relation index, IndexInfo* info, bool, bool, bool,
                                  BlockNumber start_block, BlockNumber blocks, IndexBuildCallback callback, void* state,
                                  TableScanDesc scan) {
  if (start_block != 0 || blocks != InvalidBlockNumber)
    not_supported("building an index from a range of blocks", nullptr);
  if (info->ii_Concurrent)
    not_supported("CREATE INDEX CONCURRENTLY and REINDEX CONCURRENTLY", "Use CREATE INDEX without CONCURRENTLY.");
  if (scan != nullptr) table_endscan(scan);
  engine::Heap& heap = heap_of(table);
  count_in();  // values out of line stay until the rows that name them have been read
  EState* estate = CreateExecutorState();
  Build build{.table = table, .index = index, .info = info, .callback = callback, .state = state, .estate = estate};
  build.context = GetPerTupleExprContext(estate);
  build.slot = table_slot_create(table, nullptr);
  build.context->ecxt_scantuple = build.slot;
  build.predicate = ExecPrepareQual(info->ii_Predicate, estate);
  build.rows = static_cast<PageRows*>(palloc(sizeof(PageRows)));

  const uint32_t used = *until_done(table, [&] { return heap.used_blocks(); });
  uint32_t* block = static_cast<uint32_t*>(palloc(sizeof(uint32_t) * Max(used, 1u)));
  for (uint32_t i = 0; i < used; ++i) block[i] = heap.block_at(i);
  double rows = 0;
  pgstat_count_heap_scan(table);  // as heap does: it is one
  for (uint32_t i = 0; i < used; ++i) {
    CHECK_FOR_INTERRUPTS();
    rows += add_page(build, heap, block[i]);
    if (pgstat_should_count_relation(table)) table->pgstat_info->t_counts.t_tuples_returned += build.rows->count;
  }

  ExecDropSingleTupleTableSlot(build.slot);
  FreeExecutorState(estate);
  info->ii_ExpressionsState = NIL;  // they pointed into the executor state
  info->ii_PredicateState = nullptr;
  pfree(build.rows);
  pfree(block);
  return rows;
}

void gcl_index_validate_scan(Relation, Relation, IndexInfo*, Snapshot, ValidateIndexState*) {
  not_supported("CREATE INDEX CONCURRENTLY", "Use CREATE INDEX.");
}

}  // namespace gcl
