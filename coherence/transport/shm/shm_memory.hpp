// ShmMemory: every memory node is mapped; verbs are CPU instructions; a batch is done when post() returns.
#pragma once

#include "coherence/stats/counters.hpp"
#include "coherence/transport/memory.hpp"
#include "coherence/transport/shm/memory_map.hpp"

namespace coherence {

class ShmMemory final : public Memory {
 public:
  // `map` outlives it.  `counters` belong to the one session that uses it.
  ShmMemory(MemoryMap& map, Counters& counters) : map_(map), counters_(counters) {}
  using Memory::post;
  void post(Batch* const* batches, int count) override;
  void poll() override;

 private:
  void run(Batch& batch);
  MemoryMap& map_;
  Counters& counters_;
};

}  // namespace coherence
