// Batches of random operations on a region, as a session might make them.
#pragma once

#include <cstdint>
#include <random>

#include "coherence/transport/memory.hpp"

namespace gcl_test {

// Of `count` operations on bytes below `region`.  `local(bytes)`: where a READ or WRITE of so many bytes is to have
// them.
template <class Random, class Local>
void add_random(coherence::Batch& batch, int count, uint64_t region, uint32_t bytes_max, Random& random, Local local) {
  using coherence::OnlyIf;
  using coherence::PoolAddress;
  using coherence::Verb;
  for (int i = 0; i < count; i++) {
    const uint64_t word = random() % (region / 8) * 8;
    const PoolAddress at = PoolAddress::at(batch.to(), word);
    const uint32_t bytes = random() % 4 == 0 ? 8 : uint32_t(random() % (bytes_max + 1));
    const PoolAddress any = PoolAddress::at(batch.to(), random() % (region - bytes + 1));
    auto condition = [&] {
      if (i == 0) return OnlyIf::kAlways;
      const Verb first = batch.op(0).verb;
      if (first == Verb::kCas && random() % 2) return OnlyIf::kCasSucceeded;
      const bool atomic = first == Verb::kCas || first == Verb::kFaa || first == Verb::kLoad;
      return atomic && random() % 2 ? OnlyIf::kNoOwner : OnlyIf::kAlways;
    };
    switch (random() % 5) {
      case 0:
        batch.read(any, local(bytes), bytes, condition());
        break;
      case 1:
        batch.write(any, local(bytes), bytes);
        break;
      case 2:
        batch.cas(at, random() % 2 ? 0 : random(), random());
        break;
      case 3:
        batch.faa(at, random());
        break;
      default:
        batch.load(at);
    }
  }
}

}  // namespace gcl_test
