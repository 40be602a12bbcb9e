// The member worker's part in ending deadlocks across primaries: it answers other primaries what this server waits for,
// searches when a process here has waited for long, and ends the waits that are to give way.
//
// pg_txn.wait-taken-from-queue: A wait is ended by taking it from its lock's queue, under the lock's partition lock, if
//     it still is the very wait that was condemned: PostgreSQL then raises 40P01 in the waiter, as for a deadlock of
//     its own.  No signal is sent, so no cancel and no timeout can be mistaken for it, nor it for them.
// pg_txn.waits-timed-from-start: The worker wakes when the first wait has lasted its deadlock_timeout, not before: a
//     process that waits for a tag or a DDL lock, or begins a DDL transaction as its coordinator, wakes the worker.  A
//     coordinator that does not wait now cannot have waited its timeout before that has passed from now on.
// pg_txn.queueless-waiter-looks: A process that is in no queue (a coordinator of DDL that waits for answers) looks at
//     its slot by itself.
#pragma once

#include "extension/engine/txn/transaction.hpp"
#include "extension/engine/waitgraph/deadlock_detector.hpp"
#include "extension/pg/boundary/pg.hpp"

namespace gcl {

class DeadlockWatch {
 public:
  explicit DeadlockWatch(engine::TxnSystem& txns);
  // Before the pool is left: no process waits here any more.
  void leave() { registry_.clear(); }
  // One round; never waits.  Returns when the next is due if no wakeup comes.
  TimestampTz round();

 private:
  void answer();
  void publish_waits(uint64_t ticket);

  engine::TxnSystem& txns_;
  bufmgr::BufferPool& pool_;
  engine::WaitRegistry registry_;
  engine::DeadlockDetector detector_;
  MemoryContext memory_context_;
  engine::WaitRecord* records_;
  uint64_t answered_ = 0;
  TimestampTz next_search_ = 0;
};

// Asks every live primary what it waits for, and waits for the answers, at most `ms`.  The member worker here passes
// the wakeups of those that answer on to the sessions that ask.  Palloc'd; *missing: primaries that did not answer.
engine::WaitRecord* ask_everybody(engine::TxnSystem& txns, uint32_t ms, uint32_t* count, coherence::NodeSet* missing);

}  // namespace gcl
