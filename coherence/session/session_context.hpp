// SessionContext: what the roles of one session share.  One thread.
#pragma once

#include <algorithm>
#include <cstdint>

#include "coherence/base/ids.hpp"
#include "coherence/member/flight_recorder.hpp"
#include "coherence/member/node_parts.hpp"
#include "coherence/message/messenger.hpp"
#include "coherence/message/slots.hpp"
#include "coherence/stats/counters.hpp"
#include "coherence/transport/memory.hpp"

namespace coherence {

struct SessionContext {
  NodeParts& node;
  SessionId id;
  Interrupts* interrupts;  // may be null
  Counters& counters;
  SessionSlot& slot;
  Memory& memory;
  Messenger& messenger;
  FlightRecorder& flight;
  uint64_t moved = 0;             // pages fetched, evicted or written back
  uint64_t round_trip_ns = 1000;  // of a batch, on average
  bool word_is_near = true;       // batches are complete when post() returns: a look costs less than a message
  int most_under_way = 0;         // transitions whose batches were under way at once

  bool has(Feature feature) const { return node.features.has(feature); }
  // A running process answers peers sooner than a sleeping worker: on busy CPUs by milliseconds.  One load.
  bool peers_asked() const noexcept { return node.arena->inbox_peers.load(std::memory_order_relaxed) != 0; }
  void note_under_way(int count) noexcept {
    if (count > 1) counters.add(Counter::kOverlapped);
    most_under_way = std::max(most_under_way, count);
  }
  // A batch took so long; what a process that lost the CPU sees counts little.
  void note_round_trip(uint64_t ns) noexcept {
    round_trip_ns = round_trip_ns - round_trip_ns / 8 + std::min(ns, 4 * round_trip_ns) / 8 + 1;
  }
};

}  // namespace coherence
