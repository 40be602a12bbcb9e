// Session: what one process (or test thread) of a node needs to touch pages.  Created after fork, used by one thread.
// Holds the transport, the request slots, the ledger of guards, and per-process counters (nothing shared is counted on
// the path of a hit).
#pragma once

#include <cstdint>

#include "coherence/base/ids.hpp"

namespace bufmgr {

// What the process above answers; implemented in extension/pg and in tests.
class Interrupts {
 public:
  virtual ~Interrupts() = default;
  // Whether waits should end with kInterrupted now.  Cheap: called every 10 ms of waiting and after each signal.
  virtual bool pending() noexcept = 0;
};

}  // namespace bufmgr
