// PageHolds: the pages that transactions keep until their end (coherence.held-until-end), as the layer above knows
// them: coherence keeps other nodes away from what is held, and this keeps the other transactions of this node away.
//
// holds.checked-when-latched: A page is latched exclusively by fix_exclusive(), try_exclusive() or upgrade() only if no
//     transaction holds it but the session's own: a session with PageHolds gets kHeld, and Session::held_by() says who
//     holds the page.  Whoever latches a page to change what transactions see does it so.
// holds.none-costs-a-branch: A page that no transaction of this node holds costs a look at a byte of the line's first
//     cache line.
#pragma once

#include <cstdint>

#include "bufmgr/base/page.hpp"
#include "coherence/base/result.hpp"
#include "coherence/session.hpp"

namespace bufmgr {

using coherence::Intent;

class ExclusiveGuard;

class PageHolds {
 public:
  virtual ~PageHolds() = default;
  // Under the page's exclusive latch: a transaction of this node that holds the page, in the words of
  // coherence::Holder::by; nothing if it is this session's own alone.  Waits for nothing.
  virtual bool held_by_others(PageId page, uint64_t* by) noexcept = 0;
  // The running transaction holds the page from now on until its end.  True: it had not in that mode.  kHeld: another
  // does, in a mode that forbids it.  kNoHolds.  kGivenUp.  Otherwise as BufferPool::fix_exclusive().  REQUIRES: no
  // guard held.
  virtual coherence::Result<bool> hold(PageId page, bool exclusive, Intent intent) = 0;
  // What the transaction holds of `from`, it holds of a new page, too, which takes over a part of what `from` covers.
  // REQUIRES: both are latched exclusively.  kNoHolds, kGivenUp.
  virtual coherence::Status hold_part(PageId from, ExclusiveGuard& part) = 0;
};

}  // namespace bufmgr
