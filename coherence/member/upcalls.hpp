// What coherence asks of the layers above it: declared here, implemented in bufmgr (and, behind it, in extension/pg).
#pragma once

#include <cstddef>
#include <span>

#include "coherence/base/ids.hpp"
#include "coherence/base/problem.hpp"
#include "coherence/base/result.hpp"

namespace coherence {

class Line;
class Memory;
class Pool;

// Which line caches a page.  Called by the message worker and by unlockers, never under a line's spinlock.
class FrameDirectory {
 public:
  virtual ~FrameDirectory() = default;
  // The line published for `page`, or null.  It may be stale by the time it is used: coherence looks at line.page()
  // again under the line's own lock.  Must not block on a page latch.
  virtual Line* find(PageId page) noexcept = 0;
  // A peer has taken the line's page: the frame holds nothing any more.  The line is latched.
  virtual void lost(Line&) noexcept {}
};

// How far this node's log is durable: a changed page leaves the node only at or below it.
class LogHorizon {
 public:
  virtual ~LogHorizon() = default;
  virtual Lsn flushed() noexcept = 0;
  // Asks for durability up to `lsn` soon; never waits (the message worker never flushes).
  virtual void request_flush(Lsn lsn) noexcept = 0;
  // Brings the redo that is complete to the pool, which flushed() may wait for, too.  Waits for `memory`, the caller's.
  virtual void push(SessionId, Memory& /* memory */) noexcept {}
};

// Brings a page of a dead node up to date, where deaths are repaired.
class PageRepair {
 public:
  virtual ~PageRepair() = default;
  // `page`: as the pool has it, in the caller's frame.  Applies what the redo of all of `dead` has and the page lacks
  // (repair.all-dead-redo); whether that was something.  Any process of the node, under the line's X latch; `memory` is
  // that of its session.  An error, which says why, fences the pool: the page cannot be had.
  virtual Result<bool> repair(PageId, std::byte* page, NodeSet dead, Memory& memory, Problem*) noexcept = 0;
};

// Repairs what lies in a pool all of whose nodes are dead, but for latch words (repair.alone).
class PoolRepair {
 public:
  struct Dead {
    NodeId node;
    uint64_t incarnation;
  };
  virtual ~PoolRepair() = default;
  // No process is in the pool, and none joins meanwhile.  It may have been begun before, by a process that died.  After
  // an error the pool is as it was, or repaired in part.
  virtual Status repair(Pool&, Memory&, std::span<const Dead>, Problem*) noexcept = 0;
};

// Records deaths while a node leaves (node.leaver-records).
class DeathRecorder {
 public:
  virtual ~DeathRecorder() = default;
  // Those that are to be recorded (Membership::unrecorded()), as far as it can be done now.  It is called again.
  virtual void record() noexcept = 0;
};

// What a session sleeps for.
enum class Wait : uint8_t {
  kNone,
  kPageLatch,  // a process of this node has the page latched, or fetches it
  kPeer,       // another node's answer to a request for a page
  kFrame,      // a free frame
  kRedoRing,   // room in this node's redo ring
};

// Whether the process above wants its waits to end.
class Interrupts {
 public:
  virtual ~Interrupts() = default;
  // Cheap: called every 10 ms of waiting and after each signal.
  virtual bool pending() noexcept = 0;
  // The process is about to sleep; kNone: it no longer sleeps.  For views.
  virtual void waits(Wait) noexcept {}
};

}  // namespace coherence
