// What coherence asks of the layers above it: declared here, implemented in bufmgr (and, behind it, in extension/pg).
#pragma once

#include "coherence/base/ids.hpp"

namespace coherence {

class Line;

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
