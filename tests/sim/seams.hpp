// What the rest of the simulator knows of seams.cpp.
#pragma once

#include <cstdint>

#include "coherence/line/line_machine.hpp"
#include "fault_points.hpp"

namespace coherence {
class Batch;
class Memory;
struct Op;
}  // namespace coherence

namespace sim {

inline constexpr int32_t kFirstPid = 1 << 24;  // of the simulated servers: node n is process kFirstPid + n

// Knows whose verbs and lines they are.
class Observer {
 public:
  virtual ~Observer() = default;
  virtual void about_to(const coherence::Op&) = 0;
  virtual int page_of(const coherence::LineState&) const = 0;  // -1: none
  virtual void confirm(const coherence::LineState&) {}         // the grant to that line counts as confirmed
  // What a fiber is about to do.
  virtual FaultPoint point_of(const volatile void*) const { return FaultPoint::kElsewhere; }
  virtual FaultPoint point_of(const coherence::Batch&, int) const { return FaultPoint::kElsewhere; }
  virtual Phases phases() const { return only(Phase::kWork); }
};
extern Observer* observer;

// What is known of a run's batches.
struct Batches {
  int at_once = 0;                 // most that one session had under way
  int of_window = 0;               // most while it had an eviction window
  uint64_t asked_for_leaving = 0;  // requests of peers for a page whose eviction was under way, beside another batch
};
extern Batches batches;

// What is known of the nodes that died in a run.
struct Deaths {
  uint64_t nodes = 0, in_repair = 0, rejoined = 0;  // in_repair: in the middle of a take-over
  uint64_t answers_delayed = 0;                     // FarTransport's
};

// What is known of far members: tables that were overtaken by newer ones before they set out; joins that waited until a
// peer had heard of them; sayings of incarnations that were over; calls without a known outcome; wakeups that told of
// something; nodes that were cut off.
struct Members {
  uint64_t skipped = 0, joins_waited = 0, former_sayings = 0, calls_broken = 0, woken = 0, cut_off = 0;
};
void forget_batches();
void unmap_all();  // of what was unmapped in a run; outside fibers
// In its life all that the session posts is its eviction window's.
class InWindow {
 public:
  explicit InWindow(const coherence::Memory& of);
  ~InWindow();
  InWindow(const InWindow&) = delete;

 private:
  const coherence::Memory& memory_;
};
void note_request(coherence::NodeId self, const coherence::LineState&);

// Whose are the locks that are taken outside of a fiber.
extern int joining_node;
// Frees the files' locks of a dead node.
void free_locks_of(int node);

// Says on stdout what happens; off unless asked for.
extern bool tracing;
[[gnu::format(printf, 1, 2)]] void trace(const char* format, ...);
void trace_step(coherence::LineState before, coherence::NodeId self, const coherence::Event&,
                const coherence::LineState& after);

}  // namespace sim
