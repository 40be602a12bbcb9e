#include "bufmgr/pool_layout.hpp"

#include <algorithm>
#include <bit>

#include "bufmgr/log/redo_ring.hpp"

namespace bufmgr {
namespace {

using coherence::Errc;
using coherence::kPageSize;

constexpr uint64_t kTxnBytesShared = 64 << 10, kTxnBytesPerNode = 64 << 10;
constexpr uint64_t kDdlBytesMin = 64 << 10, kDdlBytesMax = 1 << 20;
constexpr uint64_t kWaitBytesMin = 8 << 10, kWaitBytesMax = 128 << 10;
constexpr uint64_t kRingBytesMin = 256 << 10, kRingBytesMax = 16 << 20;
constexpr uint64_t kStatusWordsMin = 8 << 10, kStatusWordsMax = 1 << 20;
constexpr uint64_t kPagesMin = 128;
// For the header, the node table and the rounding of every part.
constexpr uint64_t kOverhead = 512 << 10;

constexpr uint64_t up(uint64_t value, uint64_t to) { return (value + to - 1) / to * to; }

}  // namespace

coherence::Status lay_out(const PoolSizes& sizes, coherence::PoolSpec* spec) {
  if (sizes.nodes_max == 0 || sizes.nodes_max > coherence::kNodesMax) return Errc::kIncompatible;
  // A sixteenth of the pool each for rings and status logs, within bounds.
  const uint64_t share = sizes.pool_bytes / 16 / sizes.nodes_max;
  const uint64_t ring = sizes.ring_bytes ? sizes.ring_bytes : std::clamp(share, kRingBytesMin, kRingBytesMax);
  const uint64_t status = sizes.status_words
                              ? std::bit_ceil(sizes.status_words)
                              : std::clamp(std::bit_floor(share / 8 | 1), kStatusWordsMin, kStatusWordsMax);
  if (ring < kRingBytesLeast) return Errc::kNoSpace;

  spec->nodes_max = sizes.nodes_max;
  auto& bytes = spec->region_bytes;
  bytes[int(Region::kRings)] = up(ring, 4096) * sizes.nodes_max;
  bytes[int(Region::kTxnWords)] = kTxnBytesShared + kTxnBytesPerNode * sizes.nodes_max;
  bytes[int(Region::kStatusLog)] = up(status * 8, 4096) * sizes.nodes_max;
  bytes[int(Region::kDdl)] = up(std::clamp(sizes.pool_bytes / 64, kDdlBytesMin, kDdlBytesMax), 4096);
  const uint64_t waits = std::clamp(sizes.pool_bytes / 1024 / sizes.nodes_max, kWaitBytesMin, kWaitBytesMax);
  bytes[int(Region::kWaits)] = up(waits * sizes.nodes_max, 4096);
  uint64_t taken = kOverhead;
  for (int i = int(Region::kRings); i < int(Region::kCount); ++i) taken += bytes[i];
  if (sizes.pool_bytes <= taken) return Errc::kNoSpace;
  // What is left is shared by pages and their latch words.
  const uint64_t pages = (sizes.pool_bytes - taken) / (kPageSize + sizeof(coherence::LatchWord));
  if (pages < kPagesMin) return Errc::kNoSpace;
  bytes[int(Region::kPages)] = pages * kPageSize;
  return {};
}

}  // namespace bufmgr
