// The first 64 KB of every memory node's file, in tmpfs and in the durable copy alike.
#pragma once

#include <atomic>
#include <cstdint>

#include "coherence/pool/pool.hpp"

namespace coherence {

inline constexpr uint64_t kPoolMagic = 0x314c4f4f504c4347;  // "GCLPOOL1"
// Of what a durable copy keeps, of all layers: header, regions, pages, latch words at rest.
inline constexpr uint32_t kPoolFormatVersion = 18;
// Of what only nodes that are in the pool at one time must have in common (pool.one-protocol), of all layers: arenas,
// messages, latch words in use, redo rings, words and pages that no node leaves behind.
inline constexpr uint32_t kProtocolVersion = 3;
inline constexpr uint64_t kPoolHeaderBytes = 65536;
inline constexpr uint32_t kCompatibilityMax = 4096;

enum class PoolState : uint32_t {
  kClean = 1,  // no node is in it, everything is written
  kInUse = 2,  // nodes are in it, or died in it
};

struct PoolHeader {
  uint64_t magic;
  uint32_t format_version;
  uint32_t block_size;
  uint32_t nodes_max;
  std::atomic<PoolState> state;  // of the pool; memory node 0's counts
  uint64_t pool_id;
  uint64_t bytes;                      // of this file
  std::atomic<uint32_t> memory_nodes;  // of the pool; memory node 0's counts (pool.counted-last)
  uint32_t memory_node;                // whose file this is
  uint64_t saves;                      // of durable copies; the files of one copy say the same (pool.saves-never-mixed)
  struct {
    uint64_t offset, bytes;
  } region[kRegionsMax];                   // in this file; memory nodes but 0 have latch words and pages only
  uint64_t memory_bytes[kMemoryNodesMax];  // the file sizes of all memory nodes; memory node 0's count
  char compatibility[kCompatibilityMax];
  std::atomic<uint32_t> protocol;  // kProtocolVersion of the nodes in the pool; memory node 0's counts
  // How long a node may be silent over a network; 0: nobody has said.  Memory node 0's counts (tcp/member/patience).
  std::atomic<uint32_t> patience_ms;

  PagePlaces places() const {
    PagePlaces p;
    const MemoryNodeId id{uint8_t(memory_node)};
    p.words_at = PoolAddress::at(id, region[kRegionLatchWords].offset);
    p.pages_at = PoolAddress::at(id, region[kRegionPages].offset);
    p.pages = region[kRegionPages].bytes / kPageSize;
    p.word_rows = PagePlaces::rows_for(p.pages);
    return p;
  }
};
static_assert(sizeof(PoolHeader) <= kPoolHeaderBytes);

}  // namespace coherence
