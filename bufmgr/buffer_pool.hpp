// BufferPool: pages of the shared pool, cached coherently in this node's frames.
//
// One BufferPool per process (or per simulated node in a test), over shared memory that all processes of the node see.
// Every method is safe from any session of the node; a Session is used by one thread of one process.
//
//   auto page = pool.fix_shared(session, id);                // waits for peers if it must
//   if (auto look = pool.peek(session, id)) {...}            // optimistic: no shared write on a hit
#pragma once

#include <cstdint>

#include "bufmgr/guards.hpp"
#include "bufmgr/log_sink.hpp"
#include "bufmgr/page.hpp"
#include "coherence/base/ids.hpp"
#include "coherence/base/result.hpp"
#include "coherence/transport/memory.hpp"

namespace bufmgr {

using coherence::Lsn;
using coherence::NodeId;
using coherence::PoolAddress;
using coherence::Result;
using coherence::Status;

// Named parts of the pool that are words, not pages.  Owned by the layer named; laid out at pool creation; found by
// BufferPool::region().  All of a region lies in memory node 0.
enum class Region : uint8_t {
  kNodeTable = 0,    // coherence: membership, fence
  kLatchWords = 1,   // coherence: one 64-bit word per page
  kPages = 2,        // bufmgr
  kRings = 3,        // bufmgr: redo ring per node
  kTxnWords = 4,     // engine: clock, horizons, low-water marks, watch words
  kStatusLog = 5,    // engine: per node, one word per id
  kDdl = 6,          // engine: DDL lock, mailbox, log head
  kCount = 8,
};
struct RegionSpan {
  PoolAddress at;
  uint64_t bytes;
};

class BufferPool {
 public:
  // --- pages -------------------------------------------------------------------------------------------------------
  // Wait for peers as long as it takes: bounded by the fence, interrupted by the session's host.
  Result<SharedGuard> fix_shared(Session&, PageId);
  Result<ExclusiveGuard> fix_exclusive(Session&, PageId);
  // Never wait: kWouldBlock if the page is not here in the right mode or is latched (G3).
  Result<ExclusiveGuard> try_exclusive(Session&, PageId);
  Result<SharedGuard> try_shared(Session&, PageId);
  // The optimistic way: an empty guard if the page is not cached here, readable and unlatched.
  OptimisticGuard peek(Session&, PageId) noexcept;
  // Brings the page here, then peeks; loops until it succeeds (a writer's turn is awaited).
  Result<OptimisticGuard> fix_optimistic(Session&, PageId);
  // Copies a whole valid page into `to` (8-aligned, kPageSize bytes), optimistically first, under a shared guard
  // otherwise.
  Status copy_page(Session&, PageId, void* to);
  // Exclusive, if nothing changed since the optimistic guard was made; kRestart otherwise.
  Result<ExclusiveGuard> upgrade(Session&, const OptimisticGuard&);

  // --- space -------------------------------------------------------------------------------------------------------
  // `count` (1 or 64) consecutive pages, zeroed but for their versions, of type kUnused.  kNoSpace when the pool is
  // full.  REQUIRES: no guard held.  Durable at once (its own mini-transaction); a crash in between leaks, never
  // shares.
  Result<PageId> allocate(Session&, uint32_t count);
  Status free(Session&, PageId first, uint32_t count);

  // --- words -------------------------------------------------------------------------------------------------------
  coherence::Memory& memory(Session&);
  RegionSpan region(Region) const;

  // --- the node ----------------------------------------------------------------------------------------------------
  NodeId node() const;
  uint32_t nodes_max() const;  // nodes the pool was laid out for; ids are below it
  bool fenced() const noexcept;
  LogSink& log();
};

}  // namespace bufmgr
