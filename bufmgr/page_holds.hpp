// PageHolds: the pages that transactions keep until their end (coherence.held-until-end), as the layer above knows
// them: coherence keeps other nodes away from what is held, and this keeps the other transactions of this node away.
//
// holds.checked-when-latched: A page is latched exclusively by fix_exclusive(), try_exclusive() or upgrade() only if no
//     transaction holds it but the session's own: a session with PageHolds gets kHeld, and Session::held_by() says
//     which transaction holds the page.  A session that latches a page to change what transactions see does it so.
// holds.parts-of-a-page: A hold is of parts of a page, a bit each; what a part is, is its holder's to say.
//     Transactions of one node may write different parts of a page that the node has.  A session that has
//     checked that by a hold of its own, and changes nothing else that others have read, says so where it latches the
//     page (Others).  For all others a page is held as a whole: for other nodes, for sessions without holds, and
//     where nothing else is said.
// holds.none-costs-a-branch: A page that no transaction of this node holds costs a look at a byte of the line's first
//     cache line.
#pragma once

#include <cstdint>

#include "bufmgr/base/page.hpp"
#include "coherence/base/result.hpp"
#include "coherence/session.hpp"

namespace bufmgr {

using coherence::Intent;

using Parts = uint64_t;
inline constexpr Parts kWholePage = ~Parts{0};
constexpr Parts part(uint64_t number) { return Parts{1} << (number % 64); }

// Which other transactions of the node may hold a page that is latched exclusively.
enum class Others : uint8_t {
  kNone,          // holds.checked-when-latched
  kOfOtherParts,  // any, if the session's own holds a part of it to write; else none
  kChecked,       // any: the caller looks at them under the latch
};

class ExclusiveGuard;

class PageHolds {
 public:
  virtual ~PageHolds() = default;
  // Under the page's exclusive latch: a transaction of this node that holds the page, in the words of
  // coherence::Holder::by; nothing if it is this session's own alone.  Waits for nothing.
  virtual bool held_by_others(PageId page, uint64_t* by) noexcept = 0;
  // Whether the running transaction holds a part of the page exclusively.
  virtual bool writes(PageId page) const noexcept = 0;
  // The running transaction holds those parts of the page from now on until its end.  True: it had not in that mode.
  // kHeld: another does, in a mode that forbids it.  kUpgrade: the same, and that one waits for this transaction.
  // kNoHolds.  kGivenUp.  Otherwise as BufferPool::fix_exclusive().
  // REQUIRES: no guard held.
  virtual coherence::Result<bool> hold(PageId page, bool exclusive, Parts parts, Intent intent) = 0;
  // What transactions of the node hold of `from`, they hold of a new page, too, which takes over some of what `from`
  // covers.  REQUIRES: both are latched exclusively.  kNoHolds, kGivenUp.
  virtual coherence::Status hold_part(PageId from, ExclusiveGuard& part) = 0;
};

}  // namespace bufmgr
