// Page deletion: of an empty leaf, and with it the pages above it that have no other child (its branch).
//
//   (1) detach   the branch's range becomes that of its right neighbour: one mini-transaction turns the parent's
//                downlink to it into one to that neighbour, drops the neighbour's own, and marks the branch half-dead
//   (2) delete   from the top down, each page in a mini-transaction of its own: its siblings are linked to each other,
//                and the page is put into the bin
//
// Not done where it would cost a comparison or move a range to the left: the last page of a level, the last of several
// children (it goes when it is the only one), a page whose split is not complete.  Only VACUUM does this, one at a time
// per tree.  Latches go up, then right; the bin is above all.
#pragma once

#include "extension/engine/blink/split.hpp"

namespace engine::blink {

// Lets an empty leaf go if that can be done now; `deleted` counts the pages.  `hint`: where the parents of leaves
// further left were; learns where this one's are.
Status delete_leaf(const Ground& ground, PageId leaf, Path& hint, uint64_t& deleted);

// Its first half, (1).  Nothing changed if `done` is false.
Status detach_leaf(const Ground& ground, PageId leaf, Path& hint, bool& done);

// Does (2) for a half-dead leaf and its branch.
Status delete_branch(const Ground& ground, PageId leaf, uint64_t& deleted);

}  // namespace engine::blink
