// LineState: what a node knows about one page's ownership, and what it is doing about it.  Plain data in the node's
// arena, changed only by step() (line_machine.hpp) under the line's spinlock.
#pragma once

#include <cstdint>

#include "coherence/base/ids.hpp"
#include "coherence/latch/local_latch.hpp"

namespace coherence {

// The requests between nodes (a message carries its case).
enum class RequestKind : uint8_t {
  kNone = 0,
  kPeerRd,     // to the owner: make it shared, grant me S
  kPeerWr,     // to the owner: hand over, grant me M
  kPeerInv,    // to a sharer: drop your share; never grants
  kPeerCopy,   // to the owner: as PeerRd, but of what a transaction holds a copy will do
  kPeerClaim,  // to a sharer under my claim: drop your share; any answer but Held says that none is left
  kPeerJoin,   // to the node believed to be the owner: as PeerRd, and add my bit to the word
};
constexpr bool is_reader(RequestKind kind) {
  return kind == RequestKind::kPeerRd || kind == RequestKind::kPeerCopy || kind == RequestKind::kPeerJoin;
}
enum class ReplyKind : uint8_t {
  kNone = 0,
  kDropped,       // not here, or not now: look at the word again
  kDone,          // the share, or what the owner had, is gone from the word
  kGrantS,        // the word says you share; the page is in your frame
  kGrantM,        // the word names you; the page is in your frame
  kGrantSInPool,  // without forwarding: the same, and the page is in the pool
  kGrantMInPool,
  kCopy,  // the page is in your frame as it is at this moment, and nothing of it is yours
  kHeld,  // for a transaction's end: wait for that, and ask again
};
// Whether the page comes with the reply, in the requester's frame.
constexpr bool carries_page(ReplyKind kind) {
  return kind == ReplyKind::kGrantS || kind == ReplyKind::kGrantM || kind == ReplyKind::kCopy;
}

// How an operation ended.
enum class Outcome : uint8_t {
  kOwned,   // or given up, of an eviction
  kCopied,  // the frame has a copy, the node owns nothing
  kHeld,    // by a peer's transaction; the node has what it had
};

// The operation of a line: at most one.
enum class LineOp : uint8_t {
  kIdle = 0,
  // A batch is posted:
  kReadPosted,        // I, read: FAA +b; READ
  kProbePosted,       // pending-reader bit stands: READ word; READ
  kWritePosted,       // I, write: CAS 0 -> X; READ
  kReclaimPosted,     // the word names us (a grant without the page; after a repair): READ
  kUpgradePosted,     // S, write: CAS b -> X
  kFallbackPosted,    // upgrade given up: FAA -b, then as I
  kWithdrawPosted,    // no share to be had, held or copied: FAA -b, of the pending-reader bit
  kReleasePosted,     // eviction
  kHandOverPosted,    // serving PeerWr: WRITE; FAA X_j - X_n
  kDowngradePosted,   // serving PeerRd: WRITE; FAA b_n - X_n
  kInvalidatePosted,  // serving PeerInv / PeerWr as a sharer: FAA -b
  kGiveUpPosted,      // serving PeerWr / PeerRd without hand-over: WRITE; FAA -X
  kClaimPosted,       // I or S, write, others share: CAS s -> s + X (without b); READ
  kUnclaimPosted,     // one of them holds its share: FAA -X (+ b)
  // The word names a dead node (repair.take-over-by-exact-word):
  kTakeReadPosted,   // I, read: CAS w -> X + bits; READ
  kTakeWritePosted,  // I or S, write: the same
  kRepairedPosted,   // I, read: the page is as new as the dead node's redo: WRITE; FAA b - X
  // Replies are awaited:
  kWaitShared,
  kWaitExclusive,
  kWaitUpgrade,
  kWaitClaimed,
};

inline constexpr int kParkedMax = 15;

// A peer's request, by reference to its slot in the peer's arena.
struct PeerRequest {
  uint8_t from = 0xff;
  RequestKind kind = RequestKind::kNone;
  uint8_t priority = 0;     // grows with each refusal of the same want
  uint8_t incarnation = 0;  // of the requester; its lowest bits, as a node that leaves waits for its replies first
  uint16_t slot = 0;        // session * kSlotsPerSession + n
  uint16_t id = 0;          // echoed in the reply
  constexpr bool operator==(const PeerRequest&) const = default;
};
static_assert(sizeof(PeerRequest) == 8);

struct LineState {
  MsiState msi = MsiState::kInvalid;
  LineOp op = LineOp::kIdle;
  uint8_t failures = 0;  // of this upgrade
  uint8_t parked_count = 0;
  ReplyKind granted = ReplyKind::kNone;  // what this round brought, already in: a grant, a copy, held
  uint8_t priority = 0;                  // of our own requests
  uint16_t holds_shared = 0;             // transaction-long: the node keeps S or more
  uint16_t holds_exclusive = 0;          // ... keeps M
  uint8_t bar = 0;            // of a writer that had to wait: readers whose priority is lower are refused, and lower it
  bool copy_will_do = false;  // of our own request
  NodeId passed_to;           // the node that got the page from this one last; itself or none: it did not go on
  uint8_t hints = 0;          // followed since this node looked at the word
  bool joins = false;         // our bit is not known to be in the word: the node that grants a share adds it
  NodeId taken_from;          // the dead owner in the word that our posted take-over expects, or none
  uint64_t held_by = 0;       // the transaction of the newest hold; 0: not known
  NodeSet waiting;            // peers whose reply is missing
  // Whose bits our claim expects in the word and leaves there, our take-over expects (ours among them), or our
  // downgrade adds.
  NodeSet sharers;
  PeerRequest serving;             // answered when the posted batch is complete
  PeerRequest parked[kParkedMax];  // in order of arrival, one per peer
  constexpr bool operator==(const LineState&) const = default;
};
static_assert(sizeof(LineState) == 168);

}  // namespace coherence
