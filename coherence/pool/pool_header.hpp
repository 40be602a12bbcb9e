// The first 64 KB of a pool, in tmpfs and in the durable file alike.
#pragma once

#include <atomic>
#include <cstdint>

#include "coherence/pool/pool.hpp"

namespace coherence {

inline constexpr uint64_t kPoolMagic = 0x314c4f4f504c4347;  // "GCLPOOL1"
inline constexpr uint32_t kPoolFormatVersion = 2;
inline constexpr uint64_t kPoolHeaderBytes = 65536;
inline constexpr uint32_t kIdentityMax = 4096;

enum class PoolState : uint32_t {
  kClean = 1,  // nobody is in it, everything is written
  kInUse = 2,  // nodes are in it, or died in it
};

struct PoolHeader {
  uint64_t magic;
  uint32_t format_version;
  uint32_t block_size;
  uint32_t nodes_max;
  std::atomic<PoolState> state;
  uint64_t pool_id;
  uint64_t bytes;  // of the whole file
  struct {
    uint64_t offset, bytes;
  } region[kRegionsMax];
  char identity[kIdentityMax];
};
static_assert(sizeof(PoolHeader) <= kPoolHeaderBytes);

}  // namespace coherence
