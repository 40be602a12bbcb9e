// DeadlockDetector: a node's search for deadlocks across nodes, in steps that never wait.
//
// waitgraph.two-tickets: A cycle is acted upon when all its waits stood under two tickets, the second taken when the
//     first list had been read: then all of them stood at that moment, and the cycle was a deadlock.
// waitgraph.own-waits-only: A node ends only waits of its own, and only those that every node would end
//     (waitgraph.order-of-giving-way).  So a cycle has one victim, though no node holds a lock.
// waitgraph.silent-nodes-out: Nodes that do not answer in time are left out: their waits may be outdated.
//
//   DeadlockDetector detector(registry, me);
//   if (!detector.busy() && a wait here has lasted long) detector.start(now), wake the others;
//   for (Deadlock& deadlock : detector.step(live, now_us)) end the wait deadlock.victim, telling deadlock.detail;
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "extension/engine/waitgraph/wait_graph.hpp"
#include "extension/engine/waitgraph/wait_registry.hpp"

namespace engine {

struct Deadlock {
  WaitRecord victim;
  std::string detail;
};

class DeadlockDetector {
 public:
  DeadlockDetector(WaitRegistry& registry, coherence::NodeId self) : registry_(registry), self_(self) {}

  bool busy() const { return phase_ != Phase::kIdle; }
  // When step() goes on without the nodes that have not answered by then.  REQUIRES: busy().
  int64_t patience_ends() const { return asked_us_ + kAnswerUs; }
  // *asked is set when a ticket was taken: then the other nodes are to be woken.
  void start(int64_t now_us, bool* asked);
  std::vector<Deadlock> step(coherence::NodeSet live, int64_t now_us, bool* asked);

 private:
  static constexpr int64_t kAnswerUs = 300'000;  // a living node answers as soon as its worker is woken
  enum class Phase { kIdle, kFirst, kSecond };
  bool gather(coherence::NodeSet live, int64_t now_us, std::vector<WaitRecord>* records);
  void ask(Phase phase, int64_t now_us, bool* asked);

  WaitRegistry& registry_;
  coherence::NodeId self_;
  Phase phase_ = Phase::kIdle;
  uint64_t ticket_ = 0;
  int64_t asked_us_ = 0;
  std::vector<WaitRecord> first_;
};

}  // namespace engine
