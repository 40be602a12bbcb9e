// ShmMemory: every memory node is mapped; verbs are CPU instructions; a batch is done when post() returns.
#pragma once

#include <cstddef>
#include <span>

#include "coherence/stats/counters.hpp"
#include "coherence/transport/memory.hpp"

namespace coherence {

class ShmMemory final : public Memory {
 public:
  // Memory node i is mapped at bases[i], for as long as this object lives.  `counters` belong to the one session that
  // uses it.
  ShmMemory(std::span<std::byte* const> bases, Counters& counters) : bases_(bases), counters_(counters) {}
  using Memory::post;
  void post(Batch* const* batches, int count) override;
  void poll() override {}

 private:
  void run(Batch& batch);
  std::span<std::byte* const> bases_;
  Counters& counters_;
};

}  // namespace coherence
