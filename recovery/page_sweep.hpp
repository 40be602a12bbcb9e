// PageSweep: what one survivor does with the pages of dead nodes, in steps, until the nodes count as swept.
//
//   recovery::PageSweep sweep(pool, redo);                     // of a worker that may wait for pages
//   for (;;) {
//     const auto step = sweep.step(session, &problem);
//     if (!step || *step != PageSweep::Step::kWorked) wait_a_little();
//   }
//
// Of each dead node that is repairable, in this order:
//   1. What else is to be over says that it is (DeadNodeEnd).
//   2. No latch word names the node: bits are dropped, pages that it owned are fetched, which repairs them.
//   3. The pool has all pages that are in the node's ring, as new as the ring says (repair.swept-means-written): each
//      survivor writes back those that it owns.
//   4. The node counts as swept.
//
// recovery.sweep-again: All survivors may sweep at once, and each begins again after a death of its own: what is done
//     already is found done.
// recovery.sweep-in-steps: A step looks at a bounded number of words or pages, and waits for a bounded number of pages.
//     It holds no guard when it returns.
// recovery.recording-ends-waits: Where one worker records deaths (repair.recorded-first) and sweeps, its waits in
//     the sweep end (kInterrupted) when another death is to be recorded: a page of the first dead node may be one
//     that a session of this node has asked the second one for, and nobody asks anew before that one is repairable.
// recovery.owner-writes: In 3 no page is taken from a living owner, which may hold it for long: its own sweep writes
// it.
#pragma once

#include <cstdint>
#include <span>

#include "bufmgr/buffer_pool.hpp"
#include "recovery/ring_repair.hpp"

namespace recovery {

// What layers above pages do for a dead node.
class DeadNodeEnd {
 public:
  virtual ~DeadNodeEnd() = default;
  // A bounded amount of work; whether all is done.  Called again until it is, and perhaps later, too.
  virtual coherence::Result<bool> end(coherence::NodeId dead, uint64_t incarnation) noexcept = 0;
};

// What the Interrupts of that worker's session say, beside what they say anyway (recovery.recording-ends-waits).
inline bool is_to_record(bufmgr::BufferPool& pool) noexcept { return !pool.coherence_node().unrecorded().empty(); }

class PageSweep {
 public:
  enum class Step : uint8_t {
    kIdle,    // no dead node is repairable
    kWorked,  // more may be to do at once
    kWaits,   // for other nodes, or for the log: to be tried again a moment later
  };
  PageSweep(bufmgr::BufferPool& pool, RingRepair& redo, DeadNodeEnd* others = nullptr)
      : pool_(pool), redo_(redo), others_(others) {}

  // kFenced, kInterrupted, kNoMemory; as RingRepair::repair().  After an error it goes on where it was.  REQUIRES: the
  // session holds no guard.
  coherence::Result<Step> step(bufmgr::Session&, coherence::Problem*) noexcept;

 private:
  enum class Phase : uint8_t { kOthers, kWords, kPages, kSwept };
  struct Progress {
    uint64_t incarnation = 0;  // 0: not begun
    Phase phase = Phase::kOthers;
    coherence::MemoryNodeId memory_node;  // kWords: the next one to look at
    uint64_t word = 0;
    bufmgr::PageId page;   // kPages: likewise
    bool missing = false;  // pages of this pass that the pool lacks
  };
  coherence::Result<Step> step_for(bufmgr::Session&, coherence::NodeId dead, Progress&, coherence::Problem*) noexcept;
  coherence::Result<Step> words(bufmgr::Session&, coherence::NodeId dead, Progress&) noexcept;
  coherence::Result<Step> pages(bufmgr::Session&, coherence::NodeId dead, Progress&, coherence::Problem*) noexcept;
  coherence::Result<bool> let_go(bufmgr::Session&, bufmgr::PageId, coherence::NodeId dead) noexcept;
  coherence::Result<bool> written(bufmgr::Session&, std::span<const PageVersion>) noexcept;

  bufmgr::BufferPool& pool_;
  RingRepair& redo_;
  DeadNodeEnd* others_;
  Progress of_[coherence::kNodesMax];
};

}  // namespace recovery
