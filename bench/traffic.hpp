// What an operation costs beside time: batches to the pool, messages between nodes, and the bytes of both, as counters
// of a benchmark.
//
//   gcl_bench::Traffic traffic({&node_a, &node_b});
//   for (auto _ : state) ...;
//   traffic.report(state);          // per iteration: batches, messages, bytes
#pragma once

#include <benchmark/benchmark.h>

#include <vector>

#include "coherence/member/node.hpp"
#include "coherence/stats/counters.hpp"

namespace gcl_bench {

class Traffic {
 public:
  explicit Traffic(std::vector<const coherence::Node*> nodes)
      : nodes_(std::move(nodes)), batches_(batches()), messages_(messages()), bytes_(bytes()) {}
  void report(benchmark::State& state) const { report(state, uint64_t(state.iterations())); }
  // Where an iteration is not an operation.
  void report(benchmark::State& state, uint64_t operations) const {
    const auto n = double(operations);
    state.counters["batches"] = double(batches() - batches_) / n;
    state.counters["messages"] = double(messages() - messages_) / n;
    state.counters["bytes"] = double(bytes() - bytes_) / n;
  }

 private:
  static uint64_t sum(const coherence::Node& node, coherence::Counter counter) {
    uint64_t all = 0;
    for (uint32_t s = 0; s < node.sessions_max(); ++s) all += node.counters({uint16_t(s)}).get(counter);
    return all;
  }
  uint64_t sum(coherence::Counter counter) const {
    uint64_t all = 0;
    for (const coherence::Node* node : nodes_) all += sum(*node, counter);
    return all;
  }
  uint64_t batches() const { return sum(coherence::Counter::kBatches); }
  uint64_t messages() const {
    using enum coherence::Counter;
    uint64_t all = 0;
    for (auto counter : {kPeerRdSent, kPeerWrSent, kPeerInvSent, kGrantSSent, kGrantMSent, kCopySent, kHeldSent,
                         kDoneSent, kDroppedSent})
      all += sum(counter);
    return all;
  }
  // Payload: what batches read and write, and the pages that messages carry.
  uint64_t bytes() const {
    using enum coherence::Counter;
    uint64_t pages = sum(kCopySent);
    for (const coherence::Node* node : nodes_)
      if (node->features().has(coherence::Feature::kForwarding))
        pages += sum(*node, kGrantSSent) + sum(*node, kGrantMSent);
    return sum(kBytesRead) + sum(kBytesWritten) + pages * coherence::kPageSize;
  }

  std::vector<const coherence::Node*> nodes_;
  uint64_t batches_, messages_, bytes_;
};

}  // namespace gcl_bench
