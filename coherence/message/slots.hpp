// The message area of a node's arena: a requester writes only its own slots; the node that answers writes one word and
// the landing frame.  No rings with several producers: what was not published by its bit was never sent.
//
// A request: fill a slot; set its bit in the receiver's inbox; signal the receiver's wakeup event.  The process that
// gets the bit takes the request, once, before it does anything about it; a bit for a request that was taken or is over
// is outdated (coherence.request-taken-once).
//
// A reply: write the page into the landing frame (grants); store the slot's reply word for this peer; signal its wakeup
// event.
#pragma once

#include <atomic>
#include <cstdint>

#include "coherence/base/ids.hpp"
#include "coherence/line/line_state.hpp"
#include "coherence/stats/counters.hpp"

namespace coherence {

inline constexpr int kSlotsPerSession = 4;  // an abandoned operation keeps its slot until its replies are in

// What a peer makes of a request, in one word.  A reply: kind (8 bits), round (16), and with kHeld the transaction that
// holds the page (40), with kDropped the node that got it (its number + 1).  Before that, whether the request was
// taken; for which incarnation of the peer it is (16 bits: no node joins 65,536 times meanwhile); and its serial number
// (40), so that no other request can be taken for it.
inline constexpr int kHolderBits = 40;
struct ReplyWord {
  static constexpr uint8_t kAsked = 0xfe, kTaken = 0xff;

  uint64_t raw = 0;
  static constexpr ReplyWord asked(uint64_t serial, uint64_t incarnation) {
    return {serial << 24 | (incarnation & 0xffff) << 8 | kAsked};
  }
  constexpr ReplyWord taken() const { return {(raw & ~uint64_t{0xff}) | kTaken}; }
  static constexpr ReplyWord of(uint16_t round, ReplyKind kind, uint64_t more = 0) {
    return {more << 24 | uint64_t(round) << 8 | uint64_t(kind)};
  }
  constexpr bool is_open() const { return (raw & 0xff) == kAsked; }
  constexpr bool is_taken() const { return (raw & 0xff) == kTaken; }
  constexpr bool is_reply() const { return raw != 0 && (raw & 0xff) < kAsked; }
  // Asked, or taken:
  constexpr uint64_t serial() const { return raw >> 24; }
  constexpr bool is_for(uint64_t incarnation) const { return uint16_t(raw >> 8) == uint16_t(incarnation); }
  constexpr ReplyKind kind() const { return ReplyKind(raw & 0xff); }
  constexpr uint16_t round() const { return uint16_t(raw >> 8); }
  constexpr uint64_t held_by() const { return raw >> 24; }
  constexpr NodeId passed_to() const { return raw >> 24 ? NodeId{uint8_t((raw >> 24) - 1)} : NodeId(); }
};

enum class SlotState : uint32_t {
  kFree = 0,
  kWaiting,    // its session waits for the operation
  kAbandoned,  // its session left; the process that ends the operation releases latch and slot
  kFinished,   // the operation is over, the latch is the session's
};

struct alignas(64) RequestSlot {
  std::atomic<SlotState> state;
  std::atomic<uint32_t> wakeup;    // futex word; grows with every reply and at the end
  std::atomic<uint64_t> page;      // asked for; written, as all that is asked, before the words in `reply`
  std::atomic<uint32_t> line;      // index of the asking line: the landing frame
  std::atomic<uint32_t> sleeping;  // the session sleeps on the wakeup word
  std::atomic<uint64_t> serial;    // of the round; grows; its lowest 16 bits, the round, are echoed in replies
  std::atomic<RequestKind> kind;
  std::atomic<uint8_t> priority;
  std::atomic<uint64_t> resend_at;         // the round was refused: not before; monotonic ns, 0: not refused
  std::atomic<uint32_t> refusals;          // of this operation
  std::atomic<Outcome> outcome;            // once it is over
  std::atomic<uint64_t> held;              // the transaction that holds the page, and
  std::atomic<uint8_t> held_at;            // its node
  std::atomic<uint64_t> reply[kNodesMax];  // per peer: see ReplyWord; 0: never asked
};

// One per process (or test thread) of the node.
struct alignas(64) SessionSlot {
  std::atomic<uint32_t> in_use;  // 0, or 1
  std::atomic<int32_t> pid;
  Counters counters;
  RequestSlot slot[kSlotsPerSession];
};

// Requests of one peer, one bit per slot of that peer; sized for sessions_max of *any* arena of the pool.
inline constexpr int kSessionsMax = 1024;
inline constexpr int kInboxWords = kSessionsMax * kSlotsPerSession / 64;
struct Inbox {
  std::atomic<uint64_t> words_set;  // bit w: word w may have bits
  std::atomic<uint64_t> bits[kInboxWords];
};
static_assert(kInboxWords == 64);

}  // namespace coherence
