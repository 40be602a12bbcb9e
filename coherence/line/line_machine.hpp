// step(): the protocol's transitions, as one pure function; the table in protocol.md is printed from it.
//
// It looks at nothing but its arguments, waits for nothing and loops over nothing but parked requests.  The driver
// (session/protocol_driver.cpp) and the exhaustive model (tests/model) run this same function, the simulator
// (tests/sim) with the whole driver; each of them provides the rest of the contract:
//
// line.steps-serialised: calls for one line are serialised.  The line's local X latch is held from kFetch or kEvict
// until the Actions say otherwise, and for kPeer and kServe when `latched`.
// line.one-batch-posted: a posted batch runs verb by verb in the order given at Post; its completion comes back as
// kBatchDone with the atomic's old word.  Nothing else of this line is posted meanwhile.
// line.replies-after-batch: replies in the Actions are sent after the step, so after the batch that changes the word is
// complete; those that carry the page (carries_page()), before the latch is released.  The reply to `serving`, and with
// a downgrade those to all parked readers, may be sent when the batch is posted instead.  Then kBatchDone says
// `answered`, and until then a granted node's line has a grant in flight: that line gets no kEvict and no
// kFetchExclusive, and kPeer and kServe without `may_leave` (coherence.early-grant-bound).
// line.reply-or-gone: each request that was sent gets exactly one kReply or kGone.
// line.pending-shows-parked: the latch word's `pending` says that `state.parked_count > 0`.  A process that frees the
// latch then steps kServe.
#pragma once

#include "coherence/base/ids.hpp"
#include "coherence/latch/latch_word.hpp"
#include "coherence/line/features.hpp"
#include "coherence/line/line_state.hpp"

namespace coherence {

struct Event {
  enum class Kind : uint8_t {
    kFetchShared,     // state I; latch held; `passed_to`: the node that took the page a moment ago, or none
    kFetchCopy,       // state I; latch held; of what is held for a transaction's end, a copy will do
    kFetchExclusive,  // state I or S; latch held
    kEvict,           // state S or M, no holds, nothing parked; latch held
    kBatchDone,       // `old`
    kPeer,            // `request`, `latched`, `may_leave`
    kReply,           // `from`, `reply`
    kGone,            // `from` was fenced, or left in order: it will not answer, and holds nothing; `back`
    kServe,           // the latch was freed (and is held again if `latched`): serve what is parked
  } kind;
  ReplyKind reply = ReplyKind::kNone;
  NodeId from;
  NodeId passed_to;  // of kReply, with kDropped; of kFetchShared
  bool latched = false;
  // The log horizon covers the page's last change (coherence.log-first), and no grant is in flight
  // (coherence.early-grant-bound).
  bool may_leave = true;
  bool back = false;      // of kGone: it has joined again; what is parked is what the next incarnation asks
  bool answered = false;  // of kBatchDone: the node it serves was answered when it was posted
  NodeSet repairable;     // of kBatchDone: dead nodes whose pages may be taken over (repair.death-is-over)
  uint64_t old = 0;
  PeerRequest request;
};

// Batches, with n = this node, j = Actions::to.
enum class Post : uint8_t {
  kNone = 0,
  kAddReader,  // FAA +b_n; READ page if there was no owner
  kProbe,      // LOAD word; READ page if there is no owner
  kTake,       // CAS 0 -> X_n; READ page if it swapped
  kReadPage,   // READ page
  kUpgrade,    // CAS b_n -> X_n
  kClaim,      // CAS s (+ b_n, of a sharer) -> s + X_n; READ page if it swapped, unless we share.  s: Actions::over
  kDropShare,  // FAA -b_n
  kRelease,    // WRITE dirty; FAA -X_n
  kHandOver,   // WRITE dirty; FAA X_j - X_n
  kDowngrade,  // WRITE dirty; FAA b_n - X_n + the bits of Actions::over
  // CAS Actions::expects -> X_n + the bits of Actions::over; READ page if it swapped, unless we share.  What the redo
  // of dead nodes has and the page lacks is in the frame before kBatchDone (repair.redo-before-use).
  kTakeOver,
};

// What becomes of the local X latch.
enum class LatchEnd : uint8_t {
  kKeep,      // still needed (or not held by this event)
  kRelease,   // free
  kToShared,  // one shared holder: the waiter
  kToCaller,  // stays exclusive: the waiter's, perhaps of a copy only; or the evictor's
};

struct Actions {
  struct Reply {
    PeerRequest to;
    ReplyKind kind;
    NodeId passed_to;  // with kDropped: the node that has the page as far as this node knows, perhaps itself
  };
  Post post = Post::kNone;
  NodeId to;             // kHandOver
  NodeSet over;          // kClaim, kTakeOver: the others that share, or may; kDowngrade: the nodes that join
  uint64_t expects = 0;  // kTakeOver
  RequestKind send = RequestKind::kNone;
  NodeSet send_to;
  uint8_t reply_count = 0;
  bool finished = false;  // the operation begun by kFetch or kEvict is over
  Outcome outcome = Outcome::kOwned;
  bool blocked = false;  // a parked request waits until the page may leave
  bool bad = false;      // the word or the caller broke an invariant: a bug
  LatchEnd latch = LatchEnd::kKeep;
  uint64_t held_by = 0;  // goes with each kHeld
  Reply replies[kParkedMax + 1];
};

// A writer that was refused so often was starved: readers match its priority (Feature::kMatching).
inline constexpr uint8_t kStarvedFrom = 2;

// `on`: what this node does; peers may differ, and one line's steps may, too.
Actions step(LineState& state, NodeId self, const Event& event, Features on = Features::all());

}  // namespace coherence
