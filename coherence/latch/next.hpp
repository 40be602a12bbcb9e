// Who goes next at a line that processes of this node want and a peer has asked for: pure functions of the local word
// and of the turns taken (coherence.bounded-local-turns).
#pragma once

#include <cstdint>

#include "coherence/latch/local_latch.hpp"

namespace coherence {

// Turns that processes of this node have taken since the peer's request was parked: readers' in the lower half,
// writers' in the upper half.
struct Turns {
  static constexpr uint64_t kReader = 1, kWriter = uint64_t{1} << 32;
  uint64_t raw = 0;
  static constexpr uint64_t of(bool exclusive) { return exclusive ? kWriter : kReader; }
  constexpr uint64_t reads() const { return raw % kWriter; }
  constexpr uint64_t writes() const { return raw / kWriter; }
};

// The node's claim to go on: R / P + W reaches gamma when it is over, computed without the division.
struct Lease {
  uint64_t gamma = 0;
  uint64_t sessions = 1;     // P, of the node
  bool without_end = false;  // the line could not leave yet (coherence.early-grant-bound), or leases are switched off
  constexpr bool over(Turns turns) const {
    return !without_end && turns.reads() + turns.writes() * sessions >= gamma * sessions;
  }
};

// Whether a newcomer has to wait for others of this node, turns aside.
constexpr bool is_blocked(LocalWord w, bool exclusive) {
  if (w.exclusive()) return true;
  if (!exclusive && w.msi() != MsiState::kInvalid) return w.shared() && (w.raw & LocalWord::kExclusiveWaiters);
  return w.shared() != 0;
}

enum class Next : uint8_t {
  kNobody,  // or the sessions that have it now: the last one out sees to the others
  kWaiter,  // of this node: woken, with the line promised to it while a peer waits too
  kPeer,    // the parked request, and after it the waiters
};
// `w`: after the unlock.
constexpr Next who_goes_next(LocalWord w, bool lease_over) {
  if (!w.free()) return Next::kNobody;
  if (w.has_waiters() && !(w.pending() && lease_over)) return Next::kWaiter;
  return w.pending() ? Next::kPeer : Next::kNobody;
}

// Whether a free line is kept for the waiter that was woken for its turn, and takes microseconds to come.
// `promised_until_ns`: 0: no process was woken.
constexpr bool is_promised(uint64_t promised_until_ns, uint64_t now_ns, bool lease_over) {
  return promised_until_ns != 0 && !lease_over && now_ns < promised_until_ns;
}

}  // namespace coherence
