// FlightView: the flight recorders of a node, read by a process that is not in the pool (inspect.*: pool_view.hpp),
// while its processes write them and after their end.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "coherence/base/ids.hpp"
#include "coherence/base/problem.hpp"
#include "coherence/base/result.hpp"
#include "coherence/region/memory_file.hpp"
#include "coherence/trace/flight_file.hpp"

namespace coherence {

class PoolView;

class FlightView {
 public:
  // Errors as ArenaView::open().
  static Result<std::unique_ptr<FlightView>> open(const PoolView& pool, NodeId node, Problem*);
  // Of a file by itself; for tests.
  static Result<std::unique_ptr<FlightView>> open(const char* path, Problem*);

  uint32_t sessions() const { return header_.sessions; }

  // What one session slot has recorded, the oldest first.
  struct Recording {
    int32_t pid = 0;       // of its last session
    bool ended = false;    // which has ended in order
    uint64_t written = 0;  // events, ever, of all sessions of the slot
    uint64_t began = 0;    // of them, before its last session
    uint64_t first = 0;    // number of the first event here
    std::vector<FlightEvent> events;
    // By the system's monotonic clock.
    uint64_t ns_of(const FlightEvent& event) const { return now.ns - ns_before(now, then, event.ticks); }
    Moment then, now;
  };
  // False: the slot was never used.
  bool recording(uint32_t session, Recording* to) const;

 private:
  explicit FlightView(int fd) : file_(fd) {}
  File file_;
  FlightHeader header_{};
};

}  // namespace coherence
