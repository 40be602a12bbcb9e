// RingRepair: a dead node's page, made out of what the rings of all dead nodes have of it.
//
//   recovery::RingRepair redo(pool);                       // in each process of the node, or inherited over fork
//   pool.coherence_node().set_repair(&redo);
//
// recovery.ring-read-once: A process reads a dead node's ring once, when it first needs it, and keeps what it found in
//     its own memory until the node is absent.  What it keeps is of one incarnation.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <span>

#include "bufmgr/buffer_pool.hpp"
#include "coherence/member/upcalls.hpp"
#include "recovery/ring_index.hpp"

namespace recovery {

// A page, and the newest version of it that a ring has.
struct PageVersion {
  bufmgr::PageId page;
  uint64_t version;
};

class RingRepair final : public coherence::PageRepair {
 public:
  explicit RingRepair(bufmgr::BufferPool& pool) : pool_(pool) {}

  // kNotFound: a record is missing (recovery.gap-is-error); kCorrupt, kIncompatible: one cannot be read; kNoMemory.
  coherence::Result<bool> repair(coherence::PageId, std::byte* page, coherence::NodeSet dead, coherence::Memory&,
                                 coherence::Problem*) noexcept override;

  // Pages that the dead node's ring has, from `from` on, in order; returns how many, and fewer than there is room for
  // only at the end.  None, if the node is not dead, or another incarnation of it is.  Errors as repair().
  coherence::Result<size_t> pages(coherence::NodeId dead, uint64_t incarnation, coherence::PageId from,
                                  std::span<PageVersion> to, coherence::Memory&, coherence::Problem*) noexcept;
  // Gives back what was read of nodes that are dead no longer; repair() does so, too.
  void forget_absent() noexcept;

 private:
  struct Ring {
    uint64_t incarnation = 0;
    std::unique_ptr<RingIndex> index;
  };
  bool is_dead(coherence::NodeId, uint64_t incarnation) const noexcept;
  void forget_absent_locked() noexcept;
  coherence::Result<const RingIndex*> index_of(coherence::NodeId, coherence::Memory&, coherence::Problem*) noexcept;

  bufmgr::BufferPool& pool_;
  // For the threads of this process: one that comes while the ring is read waits until it has been.
  std::atomic<uint32_t> lock_{0};
  Ring ring_[coherence::kNodesMax];
};

}  // namespace recovery
