// Splits.  A split is two mini-transactions: (1) the page gives its upper part to a new right sibling, and is marked
// incomplete; (2) the sibling's downlink enters the parent, and the mark goes.  Between them readers find everything by
// the right link, and a session that wants to insert through the mark does (2) first.  A split never inserts an entry:
// the page gets room, then the insert starts again.
//
// Latches are taken upwards, and rightwards within a level: left page, parent | page, its new sibling, its old sibling.
#pragma once

#include "extension/engine/blink/edit.hpp"
#include "extension/engine/blink/search.hpp"

namespace engine::blink {

// Makes room on `page`, about where entry `index` would go; does nothing if the page changed since `version`.
// `compare` shortens the separator of leaves (may be null for inner pages).
Status make_room(const Ground& ground, PageId page, uint64_t version, uint32_t index, Comparator* compare,
                 const Path& path);

// Its first half, (1).  A full root instead gives all it has to an only child, and grows a level.
Status split_in_two(const Ground& ground, PageId page, uint64_t version, uint32_t index, Comparator* compare,
                    bool& done);

// Does (2) for `left` if it is still to do.
Status complete_split(const Ground& ground, PageId left, const Path& path);

// The page above `left`, whose split was not complete when `seen` was read.  Invalid: it is by now, and `left` may have
// been emptied, and have left the tree, since.
Status parent_of_incomplete(const Ground& ground, PageId left, const Head& seen, const Path& path, PageId& parent);

// The page of `level` that has the downlink to `child`, or did when read; invalid: none has.  Begins where `path`
// says, because downlinks only move right.  No comparison.
Status find_parent(const Ground& ground, PageId child, uint16_t level, const Path& path, PageId& parent);
// head.count if the page has no such child.
uint32_t index_of_child(const std::byte* page, const Head& head, PageId child);

}  // namespace engine::blink
