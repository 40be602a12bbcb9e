// PoolOutline: what memory node 0's file, in tmpfs or of the durable copy, says of a pool.  For a process that looks
// and is not in it.
#pragma once

#include <cstdint>

#include "coherence/base/ids.hpp"
#include "coherence/base/problem.hpp"
#include "coherence/base/result.hpp"

namespace coherence {

struct PoolOutline {
  uint64_t pool_id;
  uint64_t saves;
  uint32_t memory_nodes;
  uint64_t bytes[kMemoryNodesMax];  // of their files in tmpfs
};
// kNotFound, kIncompatible (of another format), kCorrupt, kSystem.
Result<PoolOutline> outline_pool(const char* path, Problem*);

}  // namespace coherence
