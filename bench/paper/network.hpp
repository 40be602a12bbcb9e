// Network: nodes' NICs and processors as resources in virtual time (rules.md).  A fiber that sends something
// travels with it: the call returns when it has arrived.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "bench/paper/costs.hpp"
#include "tests/sim/scheduler.hpp"

namespace paper {

// One server, first come, first served.  The caller waits as long as it says.
class Queue {
 public:
  uint64_t take(uint64_t from, uint64_t ns) { return free_at_ = (free_at_ > from ? free_at_ : from) + ns; }
  bool operator<(const Queue& other) const { return free_at_ < other.free_at_; }

 private:
  uint64_t free_at_ = 0;
};

struct Traffic {
  uint64_t round_trips = 0, bytes = 0, messages = 0;
};

struct Nic {
  Queue out, in, issue, respond, atomic;
};

// The nodes: compute nodes are 0 .. compute - 1, memory nodes follow.
class Network {
 public:
  struct Verb {
    bool atomic;
    uint64_t sent, received;  // bytes beside headers
  };

  Network(const Costs& costs, int compute, int memory, uint32_t gcl, uint64_t remote_cores, bool stranded);

  // One batch, from compute node `from` to memory node `to`; `effect` happens when its last verb is through.
  void batch(int from, int to, const std::vector<Verb>& verbs, const std::function<void()>& effect);
  // A message, or a page, one way.
  void travel(int from, int to, uint64_t bytes);
  // A second one of the same fiber while the first is in flight: only what it adds.
  void travel_along(int from, int to, uint64_t bytes);
  // More bytes of what is in flight.
  void carry(int from, int to, uint64_t bytes);
  // The node's processor handles a message.
  void handle(int node) { handle(node, costs_.message_ns); }
  void handle(int node, uint64_t ns);

  uint64_t page_bytes(uint64_t bytes) const { return bytes < gcl_ ? bytes : gcl_; }
  uint64_t gcl() const { return gcl_; }
  int memory_node(uint64_t page) const { return compute_ + int(page % uint64_t(memory_)); }
  int memory() const { return memory_; }
  int compute() const { return compute_; }
  const Costs& costs() const { return costs_; }
  Traffic traffic;

 private:
  struct Station {
    Nic nic;
    std::vector<Queue> cores;
    uint64_t share = 100;
  };
  uint64_t ns(uint64_t bytes) const { return (bytes + costs_.header_bytes) * 1000 / costs_.bytes_per_us; }

  const Costs costs_;
  const int compute_, memory_;
  const uint32_t gcl_;
  std::vector<Station> stations_;
};

// Lets time pass until `ns`; for fibers.
inline void wait_until(uint64_t ns) {
  sim::Scheduler& s = *sim::scheduler();
  if (ns > s.now()) s.spin(ns - s.now());
}
inline void pass(uint64_t ns) {
  if (ns > 0) sim::scheduler()->spin(ns);
}

// Fibers that do background work, each one thing at a time; as many as are needed at once.
class Crew {
 public:
  explicit Crew(int node) : node_(node) {}
  void run(std::function<void()> task);

 private:
  struct Hand {
    uint32_t wakeup = 0;
    std::function<void()> task;
  };
  void work(Hand& hand);
  const int node_;
  std::vector<std::unique_ptr<Hand>> hands_;
  std::vector<Hand*> idle_;
};

}  // namespace paper
