// What the rest of the simulator knows of seams.cpp.
#pragma once

#include <cstdint>

#include "coherence/line/line_machine.hpp"

namespace coherence {
struct Op;
}

namespace sim {

inline constexpr int32_t kFirstPid = 1 << 24;  // of the simulated servers: node n is process kFirstPid + n

// Knows whose verbs and lines they are.
class Observer {
 public:
  virtual ~Observer() = default;
  virtual void about_to(const coherence::Op&) = 0;
  virtual int page_of(const coherence::LineState&) const = 0;  // -1: none
  virtual void settle(const coherence::LineState&) {}          // the grant to that line counts as settled
};
extern Observer* observer;

// What is known of a run's batches.
struct Batches {
  int at_once = 0;                 // most that one session had under way
  uint64_t asked_for_leaving = 0;  // requests of peers for a page whose eviction was under way, beside another batch
};
extern Batches batches;
void forget_batches();
void note_request(coherence::NodeId self, const coherence::LineState&);

// Frees the files' locks of a dead node's fibers.
void free_locks_of(int node);

// Says on stdout what happens; off unless asked for.
extern bool tracing;
[[gnu::format(printf, 1, 2)]] void trace(const char* format, ...);
void trace_step(coherence::LineState before, coherence::NodeId self, const coherence::Event&,
                const coherence::LineState& after);

}  // namespace sim
