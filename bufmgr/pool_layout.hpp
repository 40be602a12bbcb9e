// How large the named parts of a new pool are.
//
// bufmgr.layout-remembered: The sizes are computed once, when the pool is created, from its size and its nodes_max.
//     The pool's header remembers the result, so that another version of this code finds the parts where they are.
// bufmgr.equal-node-parts: Per-node parts (status log, ring) are a part divided by nodes_max, the same size for each.
#pragma once

#include <cstdint>

#include "coherence/base/ids.hpp"
#include "coherence/base/result.hpp"
#include "coherence/pool/pool.hpp"

namespace bufmgr {

// Named parts of the pool.  Owned by the layer named; found by BufferPool::region().  All but kPages are words and
// bytes, not pages, and lie in memory node 0.  Every other memory node has latch words and pages of its own.
enum class Region : uint8_t {
  kNodeTable = 0,   // coherence: membership, fence
  kLatchWords = 1,  // coherence: one 64-bit word per page
  kPages = 2,       // bufmgr
  kRings = 3,       // bufmgr: redo ring per node
  kTxnWords = 4,    // engine: clock, horizons, low-water marks, words of every session
  kStatusLog = 5,   // engine: per node, one word per id
  kDdl = 6,         // engine: DDL lock, mailbox, log head
  kWaits = 7,       // engine: waits for transactions of other nodes, per node
  kSamples = 8,     // engine: what each node says of itself every second, for views
  kUserWords = 9,   // bufmgr: of users without an engine (global_memory.hpp)
  kCount = 10,
};

inline constexpr uint32_t kNodesDefault = 8;

struct PoolSizes {
  uint64_t pool_bytes = 0;    // of the whole pool; shared evenly by its memory nodes
  uint32_t memory_nodes = 1;  // 1..64
  uint32_t nodes_max = kNodesDefault;
  // 0: derived from pool_bytes.  Tests set them to make rings wrap and logs run over early.
  uint64_t ring_bytes = 0;                              // per node
  uint64_t status_words = 0;                            // per node; rounded up to a power of two
  bool repairs_deaths = false, records_deaths = false;  // coherence::PoolSpec
};

// Fills in what `spec` says of nodes and sizes.  kNoSpace: too small for that many nodes; kIncompatible: no such number
// of nodes or memory nodes.
coherence::Status lay_out(const PoolSizes& sizes, coherence::PoolSpec* spec);
// Of the pages of a memory node of so many bytes that is added to a pool.  kNoSpace: too small for any.
coherence::Result<uint64_t> further_pages_bytes(uint64_t memory_bytes);

}  // namespace bufmgr
