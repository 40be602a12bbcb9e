// ShmMemory: the pool is mapped; verbs are CPU instructions; a batch is done when post() returns.
#pragma once

#include <cstddef>

#include "coherence/stats/counters.hpp"
#include "coherence/transport/memory.hpp"

namespace coherence {

class ShmMemory final : public Memory {
 public:
  // `counters` belong to the one session that uses this object.
  ShmMemory(std::byte* base, Counters& counters) : base_(base), counters_(counters) {}
  using Memory::post;
  void post(Batch* const* batches, int count) override;
  void poll() override {}

 private:
  void run(Batch& batch);
  std::byte* base_;
  Counters& counters_;
};

}  // namespace coherence
