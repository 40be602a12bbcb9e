// FlightRecorder: keeps a session's last protocol events (trace/flight_ring.hpp), and tells of them and of the last
// line when an invariant of its thread is broken (base/failure_report.hpp).
//
// FR1 to FR3 (rules.md).  It is on the path of a step(), never of a hit; it allocates nothing, takes no lock and makes
// no system call.
#pragma once

#include "coherence/base/failure_report.hpp"
#include "coherence/base/ids.hpp"
#include "coherence/trace/flight_ring.hpp"

namespace coherence {

class Line;
class Node;

class FlightRecorder final : public FailureReport {
 public:
  FlightRecorder(Node& node, SessionId session) noexcept;
  ~FlightRecorder();

  // REQUIRES: the line's spinlock; `after`, its state, as the step has left it.  `near`: batches are complete when they
  // have been posted.
  void note(const Line& line, uint16_t op_slot, const BeforeStep& before, const LineState& after, const Event& event,
            const Actions& actions, bool near) noexcept;

 private:
  void tell(Out&) const noexcept override;
  Node& node_;
  SessionId session_;
  FlightRing* ring_;  // null: there was no memory for one
  uint64_t now_ = 0;  // ticks of the last event
};

// The page's latch word in the pool, and all that the node's line says of it.
void tell_line(FailureReport::Out& out, Node& node, const Line& line) noexcept;

}  // namespace coherence
