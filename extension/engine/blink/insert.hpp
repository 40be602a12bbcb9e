// Insert: find the position without guards, then put the entry in under the leaf's exclusive latch if the position
// still holds.
#pragma once

#include "extension/engine/blink/split.hpp"

namespace engine::blink {

// Between which two entries of which leaf something belongs, as copied out at one moment.  Plain data.
struct InsertPosition {
  PageId page;
  uint64_t version;
  uint32_t index;     // entries before it
  Key before, after;  // its neighbours; empty: none on this page
  Key high;           // of the page, if `after` is empty; empty: rightmost
};

// Reads the insert position of the seek's place.  kRestart: read the page again.
Errc read_position(Comparator& compare, const Seek& seek, const PageReader& reader, const Head& head,
                   InsertPosition& where);

// Whether the position still holds on the page, under guard; `index` learns where.  Compares bytes only: neighbours
// that are still neighbours enclose the same position, whatever else happened to the page.
bool find_position(const bufmgr::ExclusiveGuard& page, const Head& head, const InsertPosition& where, uint32_t& index);

}  // namespace engine::blink
