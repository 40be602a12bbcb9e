// LogSink: where redo goes, declared here and implemented above (PostgreSQL's WAL in extension/pg, memory in tests).
#pragma once

#include <cstdint>
#include <span>

#include "coherence/base/ids.hpp"
#include "coherence/base/result.hpp"

namespace bufmgr {

class LogSink {
 public:
  virtual ~LogSink() = default;
  // Appends one mini-transaction's record; returns the position up to which the log must be flushed before any of its
  // pages may leave the node.  Called under page latches: does not wait for I/O, and does not fail (an
  // implementation that cannot append ends the process, as PostgreSQL does in a critical section).
  virtual coherence::Lsn append(std::span<const std::byte> record) = 0;
  // Appends what a layer above has to say that no page tells, in that layer's own format.  In one process, what was
  // appended first is durable first.  Does not wait, and does not fail, either.
  virtual void note(std::span<const std::byte>) {}
  // Everything that this process has noted is durable when it returns.  Waits for I/O.  REQUIRES: no page latch held.
  virtual void flush_notes() {}
  // The number of this process's transaction that the log's own frame has beside a note; 0: none.
  virtual uint64_t number_beside_note() { return 0; }
  // Everything at or below is durable.  Cheap; any process of the node.
  virtual coherence::Lsn flushed() = 0;
  // Asks that the log become durable up to `lsn` soon; does not wait (rule: the message worker never flushes).
  virtual void request_flush(coherence::Lsn lsn) = 0;
};

}  // namespace bufmgr
