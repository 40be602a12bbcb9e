// One mapped memory node, on which batches are carried out as on shm.
#pragma once

#include <cstdlib>
#include <vector>

#include "coherence/transport/shm/shm_memory.hpp"

namespace coherence::tcp {

inline constexpr MemoryNodeId kHere{3};

class Region final : public MemoryMap {
 public:
  explicit Region(uint64_t bytes) : words(bytes / 8) { set_base(kHere, reinterpret_cast<std::byte*>(words.data())); }
  std::vector<uint64_t> words;

 private:
  std::byte* map_late(MemoryNodeId) noexcept override { abort(); }
};

}  // namespace coherence::tcp
