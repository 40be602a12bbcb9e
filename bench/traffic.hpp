// What an operation costs beside time: batches to the pool and messages between nodes, as counters of a benchmark.
//
//   gcl_bench::Traffic traffic({&node_a, &node_b});
//   for (auto _ : state) ...;
//   traffic.report(state);          // per iteration: batches, messages
#pragma once

#include <benchmark/benchmark.h>

#include <vector>

#include "coherence/node.hpp"
#include "coherence/stats/counters.hpp"

namespace gcl_bench {

class Traffic {
 public:
  explicit Traffic(std::vector<const coherence::Node*> nodes)
      : nodes_(std::move(nodes)), batches_(batches()), messages_(messages()) {}
  void report(benchmark::State& state) const {
    using benchmark::Counter;
    state.counters["batches"] = Counter(double(batches() - batches_), Counter::kAvgIterations);
    state.counters["messages"] = Counter(double(messages() - messages_), Counter::kAvgIterations);
  }

 private:
  uint64_t sum(coherence::Counter counter) const {
    uint64_t all = 0;
    for (const coherence::Node* node : nodes_)
      for (uint32_t s = 0; s < node->sessions_max(); ++s) all += node->counters({uint16_t(s)}).get(counter);
    return all;
  }
  uint64_t batches() const { return sum(coherence::Counter::kBatches); }
  uint64_t messages() const {
    using enum coherence::Counter;
    uint64_t all = 0;
    for (auto counter : {kPeerRdSent, kPeerWrSent, kPeerInvSent, kGrantSSent, kGrantMSent, kDoneSent, kDroppedSent})
      all += sum(counter);
    return all;
  }

  std::vector<const coherence::Node*> nodes_;
  uint64_t batches_, messages_;
};

}  // namespace gcl_bench
