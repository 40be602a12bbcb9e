// The state of an index scan: nbtree's own preprocessed keys, and our position in the B-link tree.
//
// The server exports nbtree's scan key preparation (array keys, redundant and contradictory keys, checking a tuple).
//
// index.layout-of-nbtree: The state begins with the fields of BTScanOpaqueData before `currPos`, on which that
//     preparation works, and has nothing of those behind them.
#pragma once

extern "C" {
#include "postgres.h"

#include "access/nbtree.h"
#include "access/relscan.h"
}

#include <stddef.h>

#include "extension/engine/blink/erase.hpp"
#include "extension/engine/blink/scan.hpp"
#include "extension/pg/indexam/compare.hpp"

namespace gcl {

struct ScanState {
  alignas(BTScanOpaqueData) char nbtree[offsetof(BTScanOpaqueData, currPos)];  // (index.layout-of-nbtree)
  MemoryContext context;                                                       // lives as long as the scan
  bool positioned;  // `position` stands in the range of the present array keys
  bool done[2];     // nothing more in this direction (backward, forward): a key said so
  bool marked;
  bool marked_done[2];
  engine::Tid last;  // what the scan has handed out
  engine::blink::DeadEntries dead;
  SearchKey low, high;  // what position's range points to
  TupleComparator* compare;
  engine::blink::Scan* position;
  engine::blink::Scan* mark;  // null until the first mark
  // What `compare` and `position` point to: a statement takes its memory once.
  alignas(TupleComparator) char compare_at[sizeof(TupleComparator)];
  alignas(engine::blink::Scan) char position_at[sizeof(engine::blink::Scan)];

  BTScanOpaque keys() { return reinterpret_cast<BTScanOpaque>(nbtree); }
  static ScanState* of(IndexScanDesc scan) { return static_cast<ScanState*>(scan->opaque); }
};
static_assert(offsetof(ScanState, nbtree) == 0);
static_assert(offsetof(BTScanOpaqueData, markItemIndex) < offsetof(BTScanOpaqueData, currPos) &&
              offsetof(BTScanOpaqueData, markPos) + sizeof(BTScanPosData) <= sizeof(BTScanOpaqueData) &&
              offsetof(BTScanOpaqueData, currPos) < offsetof(BTScanOpaqueData, markPos));

// The narrowest range of the tree that holds every entry the preprocessed keys can accept; fills state.low and high.
// Entries in it still have to be checked.
engine::blink::Range scan_range(IndexScanDesc scan, ScanState& state);

}  // namespace gcl
