// Costs: what things take on the paper's hardware, in virtual time.  Each has its source in rules.md, "Constants",
// under the same name; all protocols pay the same.  Committed before any ratio was computed.
#pragma once

#include <cstdint>

namespace paper {

struct Costs {
  // --- network: each node, compute or memory, has one ConnectX-3 ---------------------------------------------------
  uint64_t round_trip_ns = 13'800;  // one batch of verbs, unloaded, beside units and bytes below; a message: half
  uint64_t atomic_ns = 370;         // CAS, FAA at the responder; one at a time per NIC, whatever the address
  uint64_t respond_ns = 38;         // any verb at the responder's engine
  uint64_t issue_ns = 160;          // any verb at the requester's engine
  uint64_t bytes_per_us = 6'000;    // each direction of each NIC
  uint64_t header_bytes = 30;       // of a verb, on the wire
  uint64_t message_bytes = 64;      // a request, or a reply without a page

  // --- processors --------------------------------------------------------------------------------------------------
  uint64_t message_ns = 1'930;        // to handle one message, on whichever core does it
  uint64_t message_cores = 8;         // for that, on a compute node
  uint64_t remote_share = 50;         // percent of a memory node's only core that handling messages gets
  uint64_t stranded_share = 3;        // percent, when the node's cores are all taken
  uint64_t local_access_ns = 200;     // look-up, latch and 8 bytes of a page that is here
  uint64_t section_ns = 100;          // of it, the part under the latch
  uint64_t local_hand_over_ns = 100;  // of a latch, to a waiter on the same node
  uint64_t serial_queue_ns = 1'500;   // GAM: one operation in its node's only queue
};

}  // namespace paper
