// WaitGraph: finds deadlocks that no single primary can see, in the waits of all of them.  Pure.
//
// waitgraph.wait-for-all: A party waits for all of its targets, so every cycle is a deadlock, until one of its waits
//     ends.
// waitgraph.cycle-must-jump: A cycle counts only if it jumps at least once: from a tag to the transaction behind it, or
//     from a proxy to its coordinator.  A cycle without a jump lies within one lock manager, and that server's own
//     deadlock check ends it.
// waitgraph.order-of-giving-way: In a cycle, of the waits that may give way the one that goes_first() does: the
//     shortest deadlock_timeout, then the youngest.  Every primary that sees the cycle names the same wait; a wait is a
//     victim if a cycle goes through it in which none goes first.
//
//   WaitGraph graph(records);
//   for (int i : graph.candidates(me, now_us)) { auto cycle = graph.cycle_through(i); if (!cycle.empty()) ... }
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "extension/engine/waitgraph/wait_record.hpp"

namespace engine {

// Whether what began at `since_us` has lasted so long, by a clock that people set: what began later than now began
// before it was set back.  Nobody knows how long that has lasted, and it counts as long.
constexpr bool has_lasted(int64_t since_us, int64_t now_us, int64_t us) {
  return since_us > now_us || now_us - since_us >= us;
}

// A total order of the waits that may give way.
bool goes_first(const WaitRecord& a, const WaitRecord& b);

class WaitGraph {
 public:
  explicit WaitGraph(std::span<const WaitRecord> records);

  // The waits of `node` that may give way and have lasted their deadlock_timeout, in the order of goes_first().
  std::vector<int> candidates(coherence::NodeId node, int64_t now_us) const;
  // A cycle in which `victim` is the one to give way: its waits in order, the victim's first; empty: there is none.
  // REQUIRES: the record `victim` may give way.
  std::vector<int> cycle_through(int victim) const;
  // As if the wait had ended.
  void remove(int record);

  const WaitRecord& record(int i) const { return records_[size_t(i)]; }
  // One line per wait, as PostgreSQL's detail of a deadlock.
  std::string describe(const std::vector<int>& cycle) const;

 private:
  struct Edge {
    int record;
    int gives_way;  // the record to end when this wait is to end: its own, or the coordinator's; -1: cannot be ended
  };
  struct Key {
    uint64_t key;
    int edge;
  };
  bool usable(const Edge& edge, int victim) const;
  std::vector<int> next_of(const WaitRecord& from) const;
  std::vector<int> cycle_from(int start, int victim) const;

  std::span<const WaitRecord> records_;
  std::vector<Edge> edges_;
  std::vector<Key> by_txn_, by_process_;  // the edges that go out from a transaction, or a party; sorted
  std::vector<bool> removed_;
};

}  // namespace engine
