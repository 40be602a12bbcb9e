// Damage: what is bad in the durable copy of a pool, for the administrator: how much, and the first of it.
#pragma once

#include <cstdint>

#include "coherence/base/problem.hpp"
#include "coherence/base/result.hpp"
#include "coherence/base/text.hpp"

namespace coherence {

struct Damage {
  struct Block {
    uint32_t memory_node;
    uint64_t number;  // of the block in the memory node's file
    uint32_t calculated, expected;
    const char* part;  // of the file; null: page `page`
    uint64_t page;
    void add_to(Text&) const noexcept;  // "page 7 of memory node 1"
  };
  static constexpr uint64_t kNamedMax = 16;

  uint64_t checked = 0;    // blocks, those of checksums, too
  uint64_t unchecked = 0;  // blocks whose checksums are bad
  uint64_t bad = 0;
  Block first[kNamedMax];

  void add(const Block&) noexcept;
  // The sentence, of the file with the first bad block; kCorrupt.  REQUIRES: bad > 0.
  Errc tell(const char* durable_path, Problem*) const noexcept;
};

}  // namespace coherence
