// The orders of guards.ordered-waits: in which a session may wait for pages while it holds guards.
//
// Two sessions that each hold a page and wait for the other's would wait for ever: neither node can give its page up,
// and no detector looks at latches.  So every wait under a guard (a fix_ call, hit or miss: which of the two is chance)
// belongs to one of these orders, and none of them can run in a circle:
//
//   kUp     B-link pages: from a level to the one above it, and from any of them to the tree's bin, which is above all.
//   kRight  along a chain: B-link pages of one level from left to right, a list's pages from its first to its last.
//   kById   heap pages: from the lower page number to the higher, whichever memory node they lie in.
//   kLocks  from a heap page to the lock pages of its block, and from those of one block to those of another: a session
//           that latches them holds the block's heap page exclusively, or nothing else.
//   kNew    one of the two is new: only this session knows it, so no session waits for it with a page in hand.
//   kSpace  from a page that is being freed, which no other session knows any more, to the allocator's map of it.
//   kNote   from those to the pages of a note (space/space_note.hpp): a session that latches one of them first never
//           waits for a page of the allocator.  And from a reclaim list's page that is being freed to the one before
//           it.
//
// Between chains, relations and kinds of pages there is no order, so there is no waiting either: release first, or
// try_.  The map page of a relation and the allocator's are waited for with no guard held (MiniTransaction::reserve()
// and allocate() insist on it), but for kSpace.
//
//   session.next_wait(WaitOrder::kUp);                       // what the next fix_ claims; debug builds check it
//   auto parent = pool.fix_exclusive(session, up);
#pragma once

#include <cstdint>

#include "bufmgr/base/page.hpp"

namespace bufmgr {

enum class WaitOrder : uint8_t { kAlone, kUp, kRight, kById, kLocks, kNew, kSpace, kNote };

struct LatchedPage {
  PageId id;
  PageType type;  // as it is now: kUnused before it is formatted
};

// Pages that notes change.
constexpr bool keeps_account(PageType type) {
  return type == PageType::kRelation || type == PageType::kExtentMap || type == PageType::kLockCells ||
         type == PageType::kBlinkMeta || type == PageType::kReclaim;
}

// Whether two pages agree with the claim that `wanted` comes behind `held` in that order.  A new page says nothing of
// its place: its neighbours in the order are checked against each other.
constexpr bool in_order(WaitOrder order, LatchedPage held, LatchedPage wanted) {
  const bool either_new = held.type == PageType::kUnused || wanted.type == PageType::kUnused;
  const bool blink = held.type == PageType::kBlinkLeaf || held.type == PageType::kBlinkInner;
  switch (order) {
    case WaitOrder::kAlone:
      return false;
    case WaitOrder::kUp:
      return either_new || (blink && (wanted.type == PageType::kBlinkInner || wanted.type == PageType::kBlinkMeta));
    case WaitOrder::kRight:
      return either_new || (held.type == PageType::kLogRoot && wanted.type == PageType::kLog) ||
             (held.type == wanted.type && (blink || held.type == PageType::kList || held.type == PageType::kLog));
    case WaitOrder::kById:
      return held.id < wanted.id && (held.type == PageType::kHeap || held.type == PageType::kUnused) &&
             (wanted.type == PageType::kHeap || wanted.type == PageType::kUnused);
    case WaitOrder::kLocks:
      return either_new || ((held.type == PageType::kHeap || held.type == PageType::kLockCells) &&
                            wanted.type == PageType::kLockCells);
    case WaitOrder::kNew:
      return either_new;
    case WaitOrder::kSpace:
      return held.type != PageType::kSpaceMap &&
             (wanted.type == PageType::kUnused || wanted.type == PageType::kSpaceMap);
    case WaitOrder::kNote:
      return either_new ||
             (held.type == PageType::kReclaim ? wanted.type == PageType::kReclaim : keeps_account(wanted.type));
  }
  return false;
}

}  // namespace bufmgr
