// BufferPool: pages of the shared pool, cached coherently in this node's frames.
//
// One BufferPool per process (or per simulated node in a test), over shared memory that all processes of the node see.
// Every method is safe from any session of the node; a Session is used by one thread of one process.
//
//   Problem problem;
//   BufferPool::create_pool(files, {.pool_bytes = 1 << 30}, &problem);            // once: a tool
//   auto pool = BufferPool::create_node({.files = files, .node = me, .frames = 32768, .sessions_max = 200}, &problem);
//   fork();                                                                        // children inherit the object
//   auto session = (*pool)->attach(SessionId{slot}, interrupts, log);              // per process
//
//   auto page = pool.fix_shared(session, id);                // waits for peers if it must
//   if (auto guard = pool.peek(session, id)) {...}           // optimistic: no shared write on a hit
//
// Each node needs two workers that own a session each: one in coherence().serve(), one in run_provider_once().
#pragma once

#include <cstdint>
#include <memory>

#include "bufmgr/base/page.hpp"
#include "bufmgr/base/provider_call.hpp"
#include "bufmgr/frame/dirty_frames.hpp"
#include "bufmgr/frame/frame_table.hpp"
#include "bufmgr/frame/free_list.hpp"
#include "bufmgr/frame/replacement.hpp"
#include "bufmgr/guards.hpp"
#include "bufmgr/log/log_gate.hpp"
#include "bufmgr/log/log_sink.hpp"
#include "bufmgr/log/redo_ring.hpp"
#include "bufmgr/pool_layout.hpp"
#include "bufmgr/session.hpp"
#include "coherence/base/ids.hpp"
#include "coherence/base/result.hpp"
#include "coherence/member/node.hpp"
#include "coherence/pool/pool.hpp"
#include "coherence/transport/memory.hpp"
#include "coherence/transport/settings.hpp"

namespace bufmgr {

using coherence::Intent;
using coherence::Lsn;
using coherence::MemoryNodeId;
using coherence::NodeId;
using coherence::PoolAddress;
using coherence::Problem;
using coherence::Result;
using coherence::SessionId;
using coherence::Status;

struct RegionSpan {
  PoolAddress at;
  uint64_t bytes;
};

enum class ReplacementKind : uint8_t { kEpochSampling, kSecondChance };

struct NodeOptions {
  coherence::PoolFiles files;
  coherence::TransportSettings transport;  // coherence::open_transport()
  NodeId node;
  uint32_t frames = 4096;
  uint32_t sessions_max = 64;  // session ids are below it
  uint64_t extra_bytes = 0;    // node-shared memory for the layers above; zeroed
  ReplacementKind replacement = ReplacementKind::kEpochSampling;
  coherence::PoolRepair* alone = nullptr;  // of a pool all of whose nodes are dead (repair.alone)
};

// What a page is wanted for (space.housekeeping-kept).
enum class PageUse : uint8_t {
  kData,
  kHousekeeping,  // few pages, for long: heads of relations (TRUNCATE makes new ones), the DDL log, aborted ids
};

struct NodeShared;
struct ArenaPlan;
class SpaceNote;

// All pages of the pool, counted while other sessions work: exact when none does.
struct PoolUse {
  uint64_t pages = 0;
  uint64_t free = 0;  // for data
  uint64_t kept = 0;  // free, for housekeeping only
  uint64_t maps = 0;  // the allocator's own, and what lies beside them
  uint64_t allocated() const { return pages - free - kept - maps; }
};

class BufferPool final : public coherence::FrameDirectory {
 public:
  // --- life --------------------------------------------------------------------------------------------------------
  // Makes a new pool file.  Errors as coherence::LocalPool::create(); kNoSpace also when `sizes` leave no room for
  // pages.
  static Status create_pool(const coherence::PoolFiles&, const PoolSizes&, Problem*);
  // Adds a memory node of that many bytes to a pool that may be in use; every node's next allocations know of it.
  // Errors as coherence::LocalPool::add_memory_node(); kNoSpace also when it has no room for pages.
  static Result<coherence::AddedMemoryNode> add_memory_node(const coherence::PoolFiles&, uint64_t bytes, Problem*);
  // Opens the pool and becomes a node of it, before the node's processes are forked.  Errors as
  // coherence::open_transport(), Transport::open_pool() and Node::join(); kCorrupt: this node's redo ring is not one.
  static Result<std::unique_ptr<BufferPool>> create_node(const NodeOptions&, Problem*);
  ~BufferPool() override;  // without leave() before, the node counts as dead
  BufferPool(const BufferPool&) = delete;

  // In the process (or thread) that will use it.  `id` is unique among the node's living sessions.  All sinks of a
  // process lead to one log.  Interrupts and sink outlive the session.
  std::unique_ptr<Session> attach(SessionId id, Interrupts&, LogSink&);

  // Ends the node in order: writes everything back, empties the ring, leaves the pool.  Waits for the log to be
  // flushed.  REQUIRES: no other session works.  *last: no node is left, the pool was saved.  As Node::leave().
  Status leave(Session&, bool* last, Problem*, coherence::DeathRecorder* = nullptr);

  // Node-shared memory of the layers above: NodeOptions::extra_bytes, 4096-aligned, zeroed at create_node().
  std::byte* extra_memory() const { return extra_; }
  uint64_t extra_bytes() const { return extra_bytes_; }

  // --- workers -----------------------------------------------------------------------------------------------------
  // One round of the page provider: refills the free list, writes back what the ring has held for long.  Never waits.
  // Returns whether it did something.
  bool run_provider_once(Session&);
  // Sleeps until a session runs short of frames or ring space, at most `ms`.
  void wait_for_provider_work(uint32_t ms) noexcept;
  // One pass of the message worker: see coherence::Session::serve().
  Status serve(Session& session, uint32_t ms) {
    if (gate_.take_push_request()) (void)session.push_redo();  // should no provider be there any more
    return session.coherence().serve(ms);
  }

  // --- pages -------------------------------------------------------------------------------------------------------
  // Wait for peers as long as it takes: bounded by the fence, interrupted by the session's host.  kNotFound: the pool
  // has no such page (bufmgr.unknown-page-not-found).  kHeld: a transaction of another node keeps the page until its
  // end, or fix_exclusive()'s of this node; session.held_by() says which (coherence.held-until-end,
  // holds.checked-when-latched).  kNoMemory: this process has
  // no memory or descriptor left to reach a peer that has joined (coherence.peers-reached-first). `intent`: whether the
  // page is about to be written (what a miss brings; coherence/session.hpp).
  Result<SharedGuard> fix_shared(Session&, PageId, Intent intent = Intent::kRead);
  // `others`: holds.parts-of-a-page.
  Result<ExclusiveGuard> fix_exclusive(Session&, PageId, Others others = Others::kNone);
  // Never wait: kWouldBlock if the page is not here in the right mode or is latched (guards.ordered-waits).  kHeld.
  Result<ExclusiveGuard> try_exclusive(Session&, PageId);
  Result<SharedGuard> try_shared(Session&, PageId);
  // The optimistic way: an empty guard if the page is not cached here, readable and unlatched.
  OptimisticGuard peek(Session&, PageId) noexcept;
  // Brings the page here, then peeks; loops until it succeeds (waits for a writer's turn).
  Result<OptimisticGuard> fix_optimistic(Session&, PageId, Intent intent = Intent::kRead);
  // Copies a whole valid page into `to` (8-aligned, kPageSize bytes), optimistically first, under a shared guard
  // otherwise.  Never kHeld (bufmgr.held-page-copied).
  Status copy_page(Session&, PageId, void* to);
  // The same without what lies between `lower` and `upper`, which stays as it was in `to`; of an unused page, the
  // header.
  Status copy_parts(Session&, PageId, std::byte* to, Intent intent = Intent::kRead);
  // Exclusive, if nothing changed since the optimistic guard was made; kRestart otherwise.
  Result<ExclusiveGuard> upgrade(Session&, const OptimisticGuard&);

  // --- space -------------------------------------------------------------------------------------------------------
  // `count` (1 or 64) consecutive pages, zeroed but for their versions, of type kUnused; 64 begin at a multiple of 64.
  // Memory nodes take turns; kNoSpace when all are full, and no room comes (Interrupts).  REQUIRES: no guard held.
  // Durable at once (its own mini-transaction, of which `note` may be part: space.noted-in-same-change); a
  // crash in between leaks, never shares.
  Result<PageId> allocate(Session&, uint32_t count, PageUse use = PageUse::kData, SpaceNote* note = nullptr);
  // Zeroes and gives back, together with `note`.  After kInterrupted, call again: what was done stays done.  kCorrupt:
  // not allocated.
  Status free(Session&, PageId first, uint32_t count, SpaceNote* note = nullptr);
  // The first page at or behind `from` that is allocated; invalid: there is none.  What is allocated or freed meanwhile
  // may be missed.
  Result<PageId> next_allocated(Session&, PageId from);
  // Pages that allocate() could still hand out for data, counted now; for views and tests.
  Result<uint64_t> free_pages(Session&);
  Result<uint64_t> free_pages(Session&, MemoryNodeId);
  Result<PoolUse> use(Session&);
  uint64_t pages() const { return pool_->pages(); }  // of all memory nodes
  uint32_t memory_nodes() const { return pool_->memory_nodes(); }

  // --- words -------------------------------------------------------------------------------------------------------
  coherence::Memory& memory(Session& session) { return session.memory(); }
  RegionSpan region(Region) const;
  RegionSpan ring_of(NodeId node) const { return ring_of(*pool_, node); }  // its part of Region::kRings
  static RegionSpan ring_of(const coherence::Pool&, NodeId);

  // --- the node ----------------------------------------------------------------------------------------------------
  NodeId node() const { return node_->id(); }
  uint64_t first_sequence() const { return ring_.first(); }  // of its redo records
  uint32_t nodes_max() const { return nodes_max_; }          // nodes the pool was laid out for; ids are below it
  bool fenced() const noexcept { return node_->fenced(); }
  LogSink& log() { return *gate_.sink(); }
  coherence::Node& coherence_node() { return *node_; }
  coherence::Pool& coherence_pool() { return *pool_; }

  // --- for views and tests -----------------------------------------------------------------------------------------
  uint32_t frames() const { return node_->frames(); }
  uint32_t free_frames() const { return free_.count(); }
  const BufferCounts& counts(SessionId) const;
  const RedoRing& ring() const { return ring_; }

  // --- FrameDirectory ----------------------------------------------------------------------------------------------
  coherence::Line* find(PageId) noexcept override;
  void lost(coherence::Line& line) noexcept override { marks_.lose(node_->index_of(line)); }

 private:
  friend class Session;
  friend class MiniTransaction;
  friend class PageProvider;

  BufferPool(std::unique_ptr<coherence::Transport>, std::unique_ptr<coherence::Pool>, std::unique_ptr<coherence::Node>,
             const NodeOptions&, const ArenaPlan&);
  template <class Guard, class Lock>
  Result<Guard> fix(Session&, PageId, const Lock&, bool exclusive, Others others);
  template <class Copy>
  Status copy_with(Session&, PageId, Intent, const Copy&);
  template <class Copy>
  Status copy_held(Session&, PageId, const Copy&);
  Result<coherence::Line*> line_of(Session&, PageId);
  Result<coherence::Line*> bring_line(Session&, PageId);
  Result<uint32_t> take_frame(Session&);
  Result<PageId> allocate_now(Session&, uint32_t count, PageUse, SpaceNote*);
  Result<PageId> allocate_on(Session&, MemoryNodeId, uint32_t count, PageUse, SpaceNote*);
  template <class Guard>
  Guard make_guard(Session&, coherence::Line&, PageId, bool exclusive);
  void call_provider() noexcept { call_.call(); }

  std::unique_ptr<coherence::Transport> transport_;
  std::unique_ptr<coherence::Pool> pool_;
  std::unique_ptr<coherence::Node> node_;
  NodeShared* shared_;
  BufferCounts* counts_;
  FrameTable table_;
  FreeList free_;
  FrameMarks marks_;
  DirtyFrames dirty_;
  RedoRing ring_;
  ProviderCall call_;
  LogGate gate_;
  std::byte* extra_;
  uint64_t extra_bytes_;
  uint32_t nodes_max_;
  ReplacementKind replacement_;
};

}  // namespace bufmgr
