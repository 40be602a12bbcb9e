// MemoryMap: where memory nodes are mapped in this process.  One that came to the pool later is mapped when it is first
// asked for.
//
// Any thread.  What was mapped stays where it is for as long as the object lives.
#pragma once

#include <atomic>
#include <cstddef>

#include "coherence/base/ids.hpp"

namespace coherence {

class MemoryMap {
 public:
  virtual ~MemoryMap() = default;
  MemoryMap(const MemoryMap&) = delete;
  // REQUIRES: the pool has such a memory node.
  std::byte* base(MemoryNodeId n) noexcept {
    std::byte* at = mapped(n);
    return at != nullptr ? at : map_late(n);
  }

 protected:
  MemoryMap() = default;
  // Null: not yet.  REQUIRES: n is below kMemoryNodesMax.
  std::byte* mapped(MemoryNodeId n) const noexcept {
    return base_[n.value].load(std::memory_order_acquire);  // pairs with set_base()
  }
  void set_base(MemoryNodeId n, std::byte* at) noexcept { base_[n.value].store(at, std::memory_order_release); }
  // Maps it.  Ends the process if that fails: a batch cannot be left undone.
  virtual std::byte* map_late(MemoryNodeId n) noexcept = 0;

 private:
  std::atomic<std::byte*> base_[kMemoryNodesMax] = {};
};

}  // namespace coherence
