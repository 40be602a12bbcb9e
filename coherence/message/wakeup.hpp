// Wakeup: how a process of one node ends the sleep of processes of another one.  The seam behind which shm, sim, tcp
// and verbs fit, beside Memory, Messenger and Membership.
//
// A node's wakeup events lie in its own memory.  Which event means what is said by the layers above.
//
// wakeup.look-again: A wakeup carries nothing: a process that is woken looks again at what it waits for.  All that the
//     waking process had done before, batches that are complete included, is seen by then.
// wakeup.count-look-sleep: A process reads the event's count, looks, and sleeps only while the count is the same: a
//     wakeup between the look and the sleep ends the sleep.  Every sleep has a bound: a wakeup for a node that is just
//     joining or leaving may be lost.
// wakeup.none-is-lost: A wakeup of one node that is in the pool for another one arrives: late, or more than once, or
//     several as one; so the count says that one came, not how many.  Those of one process for one event may come as
//     one only behind what the process had done before the last of them (wakeup.look-again).
// wakeup.workers-look: When members have changed the message workers of all nodes look again: their sleep ends when
//     the change reaches their node, or by ring_workers() of the process that has seen it.
#pragma once

#include <atomic>
#include <cstdint>

#include "coherence/base/ids.hpp"

namespace coherence {

struct WakeupEvent {
  std::atomic<uint32_t> count;     // of wakeups; a futex word
  std::atomic<uint32_t> attended;  // a process here serves what the event tells of
};
inline constexpr int kWakeupEvents = 32;

class Wakeup {
 public:
  virtual ~Wakeup() = default;
  static constexpr uint16_t kNone = kWakeupEvents;
  // Wakes all processes that sleep on that event of that node; if none attends to it there, those that sleep on
  // `otherwise`, too.  A node that is not in the pool has none.  Any thread.
  virtual void wake(NodeId, uint16_t event, uint16_t otherwise = kNone) noexcept = 0;
  // Ends the sleep of the message workers of all other nodes, unless the transport does so by itself when members
  // change: they look at Membership again (wakeup.workers-look).  Any thread.
  virtual void ring_workers() noexcept = 0;
};

}  // namespace coherence
