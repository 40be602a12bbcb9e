#include "bufmgr/pool_layout.hpp"

#include <algorithm>
#include <bit>

#include "bufmgr/log/redo_ring.hpp"

namespace bufmgr {
namespace {

using coherence::Errc;
using coherence::kPageSize;

constexpr uint64_t kTxnBytesShared = 96 << 10, kTxnBytesPerNode = 96 << 10;
constexpr uint64_t kDdlBytesMin = 64 << 10, kDdlBytesMax = 1 << 20;
constexpr uint64_t kWaitBytesMin = 16 << 10, kWaitBytesMax = 256 << 10;
constexpr uint64_t kSampleBytes = 4 << 10;
constexpr uint64_t kUserBytes = 4 << 10;
constexpr uint64_t kRingBytesMin = 256 << 10, kRingBytesMax = 16 << 20;
constexpr uint64_t kStatusWordsMin = 8 << 10, kStatusWordsMax = 1 << 20;
constexpr uint64_t kPagesMin = 128;
// For the header, the node table and the rounding of every part of a memory node.
constexpr uint64_t kOverhead = 512 << 10;

constexpr uint64_t up(uint64_t value, uint64_t to) { return (value + to - 1) / to * to; }
// Room is shared by pages and their latch words.
constexpr uint64_t pages_in(uint64_t room) { return room / (kPageSize + sizeof(coherence::LatchWord)); }

}  // namespace

coherence::Status lay_out(const PoolSizes& sizes, coherence::PoolSpec* spec) {
  if (sizes.nodes_max == 0 || sizes.nodes_max > coherence::kNodesMax) return Errc::kIncompatible;
  if (sizes.memory_nodes == 0 || sizes.memory_nodes > coherence::kMemoryNodesMax) return Errc::kIncompatible;
  // Memory node 0 gives a sixteenth of itself each to rings and status logs, within bounds.
  const uint64_t each = sizes.pool_bytes / sizes.memory_nodes;
  const uint64_t share = each / 16 / sizes.nodes_max;
  const uint64_t ring = sizes.ring_bytes ? sizes.ring_bytes : std::clamp(share, kRingBytesMin, kRingBytesMax);
  const uint64_t status = sizes.status_words
                              ? std::bit_ceil(sizes.status_words)
                              : std::clamp(std::bit_floor(share / 8 | 1), kStatusWordsMin, kStatusWordsMax);
  if (ring < kRingBytesLeast) return Errc::kNoSpace;

  spec->nodes_max = sizes.nodes_max;
  spec->repairs_deaths = sizes.repairs_deaths;
  spec->records_deaths = sizes.records_deaths;
  auto& bytes = spec->region_bytes;
  bytes[int(Region::kRings)] = up(ring, 4096) * sizes.nodes_max;
  bytes[int(Region::kTxnWords)] = kTxnBytesShared + kTxnBytesPerNode * sizes.nodes_max;
  bytes[int(Region::kStatusLog)] = up(status * 8, 4096) * sizes.nodes_max;
  bytes[int(Region::kDdl)] = up(std::clamp(each / 64, kDdlBytesMin, kDdlBytesMax), 4096);
  const uint64_t waits = std::clamp(each / 512 / sizes.nodes_max, kWaitBytesMin, kWaitBytesMax);
  bytes[int(Region::kWaits)] = up(waits * sizes.nodes_max, 4096);
  bytes[int(Region::kSamples)] = kSampleBytes * sizes.nodes_max;
  bytes[int(Region::kUserWords)] = kUserBytes;
  uint64_t taken = kOverhead;
  for (int i = int(Region::kRings); i < int(Region::kCount); ++i) taken += bytes[i];
  if (each <= taken || pages_in(each - taken) < kPagesMin) return Errc::kNoSpace;
  bytes[int(Region::kPages)] = pages_in(each - taken) * kPageSize;
  spec->memory_nodes = sizes.memory_nodes;
  spec->further_pages_bytes = sizes.memory_nodes > 1 ? pages_in(each - kOverhead) * kPageSize : 0;
  return {};
}

coherence::Result<uint64_t> further_pages_bytes(uint64_t memory_bytes) {
  if (memory_bytes <= kOverhead || pages_in(memory_bytes - kOverhead) < kPagesMin) return Errc::kNoSpace;
  return pages_in(memory_bytes - kOverhead) * kPageSize;
}

}  // namespace bufmgr
