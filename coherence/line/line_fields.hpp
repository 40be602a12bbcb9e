// LineFields: what a line consists of, for the roles of a session (coherence/session/), the node, and tests.  Others
// have what Line offers.
#pragma once

#include <atomic>
#include <cstdint>

#include "coherence/line/line_state.hpp"

namespace coherence {

struct LineFields {
  static constexpr uint8_t kHeld = 1, kRefused = 2;  // coherence.refused-writer-noted
  std::atomic<uint64_t> latch;
  std::atomic<uint64_t> page;
  std::atomic<uint64_t> dirty[2];
  std::atomic<uint64_t> lsn;
  std::atomic<uint64_t> first_change;
  std::atomic<uint64_t> turns;         // local turns taken while a request was parked, readers' and writers'
  std::atomic<uint32_t> wake;          // futex word of local waiters
  std::atomic<bool> taken_to_write;    // by Intent::kWrite, and not changed since
  std::atomic<uint8_t> holding;        // kHeld: LineState::holds_shared or holds_exclusive is not 0; kRefused
  std::atomic<uint16_t> passed_on_us;  // when LineState::passed_to got the page: microseconds, wrapped
  // Protocol side, not touched by hits:
  alignas(64) std::atomic<uint32_t> spin;
  uint16_t op_slot;             // request slot of the operation: session * kSlotsPerSession + n
  std::atomic<bool> writing;    // a write-back that keeps M is under way
  std::atomic<bool> all_dirty;  // the whole page is, whatever `dirty` says: set without the latch
  LineState state;
  // Monotonic ns; 0: none.
  std::atomic<uint64_t> stand_back_until;  // a peer's writer goes first until then (coherence.readers-stand-back)
  std::atomic<uint64_t> promised_until;    // a local process that was woken for its turn goes first
};
static_assert(sizeof(LineFields) == 256);

}  // namespace coherence
