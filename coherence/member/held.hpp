// What a node's processes hold at a moment: latches, requests, operations.  When no process is at work all of it is
// zero; what stays is a leak.
#pragma once

#include <cstdint>

namespace coherence {

struct Held {
  uint32_t sessions = 0;       // session slots in use
  uint32_t pages = 0;          // lines that have a page
  uint32_t shared = 0;         // shared latches
  uint32_t exclusive = 0;      // exclusive latches
  uint32_t operations = 0;     // lines with an operation under way
  uint32_t parked = 0;         // requests of peers that wait for a line
  uint32_t holds = 0;          // transaction-long holds
  uint32_t request_slots = 0;  // in use, abandoned ones included
};

}  // namespace coherence
