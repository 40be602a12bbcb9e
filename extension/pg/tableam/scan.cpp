// Scans over pages: sequential, parallel, bitmap, TABLESAMPLE, ANALYZE.  Every page is copied out; slots point into the
// scan's copy until it takes the next page.
#include "extension/pg/indexam/index_pages.hpp"
#include "extension/pg/runtime/backend.hpp"
#include "extension/pg/runtime/ddl_hooks.hpp"
#include "extension/pg/tableam/storage_face.hpp"
#include "extension/pg/tableam/table_am.hpp"
#include "extension/pg/txn/snapshots.hpp"

extern "C" {
#include "access/tsmapi.h"
#include "nodes/tidbitmap.h"
#include "pgstat.h"
}

namespace gcl {

using engine::PageRows;
using engine::Tid;

namespace {

constexpr uint32_t kPagesOfSmallTable = 8;

struct Scan {
  TableScanDescData base;  // first: PostgreSQL's view
  Relation table;
  StorageFace face;  // of a scan for which PostgreSQL reads ahead
  engine::Heap* heap;
  engine::Snapshot snapshot;
  engine::Intent intent;
  bool started;
  bool exhausted;
  uint32_t blocks;  // in `block`, ascending: used when the scan started
  uint32_t* block;
  int64 next;  // index of the page to read when the copy is used up
  int row;     // index into rows.offset of the last row returned
  ParallelBlockTableScanWorkerData worker;
  engine::AsOf sampled[engine::kLinesMax];    // of rows.offset
  uint64_t laid[engine::kLinesMax / 64 + 1];  // lines of `rows` that have PostgreSQL's header: a cursor may come again
  PageRows rows;

  static Scan* of(TableScanDesc scan) { return reinterpret_cast<Scan*>(scan); }
  Relation rel() const { return table; }
};

// The list is taken after the snapshot: it has every page that may hold rows the snapshot sees.  It lives as long as
// the scan: ALTER TABLE asks for the first row in a context it resets with each row.
// Another primary's statement finds no rows: its coordinator has rewritten and checked them.
void list_blocks(Scan& scan) {
  if (!ddl_replaying() && scan.snapshot.strict && (scan.base.rs_flags & SO_TYPE_BITMAPSCAN) == 0)
    until_ok(scan.rel(), [&] { return scan.heap->hold_map(); });
  scan.blocks = ddl_replaying() ? 0 : *until_done(scan.rel(), [&] { return scan.heap->used_blocks(); });
  if (scan.block != nullptr) pfree(scan.block);
  scan.block =
      static_cast<uint32_t*>(MemoryContextAlloc(GetMemoryChunkContext(&scan), sizeof(uint32_t) * Max(scan.blocks, 1u)));
  for (uint32_t i = 0; i < scan.blocks; ++i) scan.block[i] = scan.heap->block_at(i);
}

bool is_used(const Scan& scan, uint32_t block) {
  uint32_t low = 0, high = scan.blocks;
  while (low < high) {
    const uint32_t middle = (low + high) / 2;
    if (scan.block[middle] < block)
      low = middle + 1;
    else
      high = middle;
  }
  return low < scan.blocks && scan.block[low] == block;
}

void start(Scan& scan) {
  list_blocks(scan);
  // A table of few pages is likely to be written where it is read.  Pages that are not are read as shared ones from the
  // second time on (Intent).
  // What is to be held exclusively is held so at once (serializable.exclusive-first).
  scan.intent =
      scan.blocks <= kPagesOfSmallTable || scan.snapshot.strict ? intent_with(scan.rel()) : engine::Intent::kRead;
  scan.started = true;
  scan.exhausted = false;
  scan.rows.count = 0;
  scan.row = -1;
  scan.next = 0;
  if (scan.base.rs_parallel != nullptr)
    table_block_parallelscan_startblock_init(scan.rel(), &scan.worker,
                                             reinterpret_cast<ParallelBlockTableScanDesc>(scan.base.rs_parallel));
}

void read_block(Scan& scan, uint32_t block) {
  memset(scan.laid, 0, sizeof scan.laid);
  until_ok(scan.rel(), [&] { return scan.heap->read_block(block, scan.snapshot, scan.rows, scan.intent); });
}

// The next page in that direction; false at the end.
bool next_page(Scan& scan, bool forward) {
  CHECK_FOR_INTERRUPTS();
  if (scan.base.rs_parallel != nullptr) {
    for (;;) {
      const BlockNumber block = table_block_parallelscan_nextpage(
          scan.rel(), &scan.worker, reinterpret_cast<ParallelBlockTableScanDesc>(scan.base.rs_parallel));
      if (block == InvalidBlockNumber) return false;
      if (!is_used(scan, block)) continue;
      read_block(scan, block);
      return true;
    }
  }
  // `next` is the page to read going forward; the current one is the one before it.
  const int64 index = forward ? scan.next : scan.next - 2;
  if (index < 0 || index >= int64(scan.blocks)) return false;
  read_block(scan, scan.block[index]);
  scan.next = index + 1;
  return true;
}

bool next_row(Scan& scan, bool forward) {
  scan.row += forward ? 1 : -1;
  while (scan.row < 0 || scan.row >= scan.rows.count) {
    if (!next_page(scan, forward)) {
      // Stand behind the last row, or before the first, so that the direction may change.
      scan.row = forward ? scan.rows.count : -1;
      if (!forward) scan.next = 1;
      return false;
    }
    scan.row = forward ? 0 : scan.rows.count - 1;
  }
  return true;
}

void store(Scan& scan, uint16_t line, TupleTableSlot* slot) {
  const Tid tid{scan.rows.block, line};
  std::byte* row = scan.rows.row(line);
  uint64_t& word = scan.laid[line / 64];
  const uint64_t bit = uint64_t{1} << (line % 64);
  if (!(word & bit)) lay_header(row, tid);
  word |= bit;
  store_laid(scan.rel(), row, scan.rows.bytes(line), tid, slot);
}

}  // namespace

TableScanDesc gcl_scan_begin(Relation rel, Snapshot snapshot, int nkeys, ScanKeyData*, ParallelTableScanDesc parallel,
                             uint32 flags) {
  if (nkeys != 0) elog(ERROR, "gcl tables are not scanned with keys");
  engine::Heap* heap = ddl_replaying() ? nullptr : &heap_of(rel);
  // ANALYZE names none.  It counts each row once, where the versions of those that are changed meanwhile are far apart.
  const engine::Snapshot seen = engine_snapshot(flags & SO_TYPE_ANALYZE ? GetLatestSnapshot() : snapshot);
  RelationIncrementReferenceCount(rel);
  Scan* scan = static_cast<Scan*>(palloc(sizeof(Scan)));
  memset(static_cast<void*>(scan), 0, offsetof(Scan, rows));
  scan->table = rel;
  scan->base.rs_rd = flags & (SO_TYPE_BITMAPSCAN | SO_TYPE_ANALYZE) ? storage_face_of(rel, &scan->face) : rel;
  scan->base.rs_snapshot = snapshot;
  scan->base.rs_flags = flags;
  scan->base.rs_parallel = parallel;
  scan->heap = heap;
  scan->snapshot = seen;
  if (flags & SO_TYPE_ANALYZE) {
    count_in();  // values out of line stay until the sample's rows have been looked at
    note_counted(rel);
  }
  if (flags & SO_TYPE_SEQSCAN) pgstat_count_heap_scan(rel);
  return &scan->base;
}

void gcl_scan_end(TableScanDesc sscan) {
  Scan* scan = Scan::of(sscan);
  RelationDecrementReferenceCount(scan->rel());
  if (sscan->rs_flags & SO_TEMP_SNAPSHOT) UnregisterSnapshot(sscan->rs_snapshot);
  if (scan->block != nullptr) pfree(scan->block);
  pfree(scan);
}

void gcl_scan_rescan(TableScanDesc sscan, ScanKeyData*, bool, bool, bool, bool) {
  Scan::of(sscan)->started = false;
  Scan::of(sscan)->rows.count = 0;
  if (sscan->rs_flags & SO_TYPE_SEQSCAN) pgstat_count_heap_scan(Scan::of(sscan)->rel());
}

bool gcl_scan_getnextslot(TableScanDesc sscan, ScanDirection direction, TupleTableSlot* slot) {
  Scan& scan = *Scan::of(sscan);
  if (!scan.started) start(scan);
  if (!next_row(scan, !ScanDirectionIsBackward(direction))) {
    ExecClearTuple(slot);
    return false;
  }
  pgstat_count_heap_getnext(scan.rel());
  store(scan, scan.rows.offset[scan.row], slot);
  return true;
}

// --- bitmap ----------------------------------------------------------------------------------------------------------

// For exact pages the bitmap's offsets are roots: the chain's visible version is looked for in the page's copy.
bool gcl_scan_bitmap_next_block(TableScanDesc sscan, TBMIterateResult* page) {
  Scan& scan = *Scan::of(sscan);
  if (!scan.started) start(scan);
  scan.row = -1;
  if (!is_used(scan, page->blockno)) {
    scan.rows.count = 0;
    return false;
  }
  read_block(scan, page->blockno);
  if (page->ntuples >= 0) {
    uint16_t roots[engine::kLinesMax + 1];
    until_ok(scan.rel(), [&] { return scan.heap->roots_of(scan.rows, roots); });
    uint16_t kept = 0;
    for (int i = 0; i < scan.rows.count; ++i) {
      const uint16_t line = scan.rows.offset[i];
      const uint16_t root = roots[line] != 0 ? roots[line] : line;
      for (int j = 0; j < page->ntuples; ++j) {
        if (page->offsets[j] != root) continue;
        scan.rows.offset[kept++] = line;
        break;
      }
    }
    scan.rows.count = kept;
  }
  return scan.rows.count > 0;
}

bool gcl_scan_bitmap_next_tuple(TableScanDesc sscan, TBMIterateResult*, TupleTableSlot* slot) {
  Scan& scan = *Scan::of(sscan);
  if (++scan.row >= scan.rows.count) return false;
  pgstat_count_heap_fetch(scan.rel());
  store(scan, scan.rows.offset[scan.row], slot);
  return true;
}

// --- ANALYZE ---------------------------------------------------------------------------------------------------------

bool gcl_scan_analyze_next_block(TableScanDesc sscan, BlockNumber block, BufferAccessStrategy) {
  Scan& scan = *Scan::of(sscan);
  if (!scan.started) start(scan);
  if (!is_used(scan, block)) return false;
  memset(scan.laid, 0, sizeof scan.laid);
  until_ok(scan.rel(), [&] { return scan.heap->sample_block(block, scan.snapshot, scan.rows, scan.sampled); });
  scan.row = -1;
  return true;
}

bool gcl_scan_analyze_next_tuple(TableScanDesc sscan, TransactionId, double* live, double* dead, TupleTableSlot* slot) {
  Scan& scan = *Scan::of(sscan);
  while (++scan.row < scan.rows.count) {
    const engine::AsOf is = scan.sampled[scan.row];
    if (is == engine::AsOf::kToCome) continue;
    *(is == engine::AsOf::kThere ? live : dead) += 1;
    if (is == engine::AsOf::kGone) continue;
    store(scan, scan.rows.offset[scan.row], slot);
    return true;
  }
  ExecClearTuple(slot);
  return false;
}

// --- TABLESAMPLE -----------------------------------------------------------------------------------------------------

bool gcl_scan_sample_next_block(TableScanDesc sscan, SampleScanState* state) {
  Scan& scan = *Scan::of(sscan);
  if (!scan.started) start(scan);
  const TsmRoutine* method = state->tsmroutine;
  for (;;) {
    uint32_t index;
    if (method->NextSampleBlock != nullptr) {
      const BlockNumber chosen = method->NextSampleBlock(state, scan.blocks);
      if (!BlockNumberIsValid(chosen)) return false;
      index = chosen;
    } else {
      if (scan.next >= int64(scan.blocks)) return false;
      index = uint32_t(scan.next++);
    }
    if (index >= scan.blocks) continue;
    CHECK_FOR_INTERRUPTS();
    read_block(scan, scan.block[index]);
    scan.row = 0;
    return true;
  }
}

bool gcl_scan_sample_next_tuple(TableScanDesc sscan, SampleScanState* state, TupleTableSlot* slot) {
  Scan& scan = *Scan::of(sscan);
  // The method is shown the page's visible rows as offsets 1..count.
  const OffsetNumber chosen = state->tsmroutine->NextSampleTuple(state, scan.rows.block, scan.rows.count);
  if (!OffsetNumberIsValid(chosen) || chosen > scan.rows.count) {
    ExecClearTuple(slot);
    return false;
  }
  pgstat_count_heap_getnext(scan.rel());
  store(scan, scan.rows.offset[chosen - 1], slot);
  return true;
}

}  // namespace gcl
