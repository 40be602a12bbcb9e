// RedoPush: brings a node's redo from its memory into its ring in the pool: all that is complete, of all sessions of
// the node, in the batch of the session that needs it there.  Several sessions may push the same bytes at once.
//
//   Batch batch(pool.ring_of(node).at.node());
//   RedoPush push = session.begin_push();
//   GCL_TRY(push.add_to(memory, batch));     // the redo; behind it, what must not be seen without it
//   batch.cas(...);
//   GCL_TRY(memory.run(batch));
//   push.arrived();
//
// log.push-ends-at-record: What counts as pushed ends where a record ends: a push that takes several batches counts
//     when the last of them has arrived.
#pragma once

#include "bufmgr/log/log_gate.hpp"
#include "bufmgr/log/redo_ring.hpp"
#include "coherence/base/ids.hpp"
#include "coherence/base/result.hpp"
#include "coherence/transport/memory.hpp"

namespace bufmgr {

class RedoPush {
 public:
  // `known`: below it the ring is known to be complete.
  RedoPush(LogGate& gate, RedoRing& ring, coherence::SessionId id, uint64_t known) noexcept
      : gate_(gate), ring_(ring), id_(id), push_(gate.begin_push(id, known)), at_(push_.from) {}
  ~RedoPush() { gate_.end_push(id_); }
  RedoPush(const RedoPush&) = delete;
  RedoPush& operator=(const RedoPush&) = delete;

  bool any() const noexcept { return at_ < push_.upto; }
  // Adds what is left to `batch`; what is too much for one goes before, in batches of its own.  kFenced:
  // transport.unknown-cuts-off.
  coherence::Status add_to(coherence::Memory& memory, coherence::Batch& batch) noexcept;
  // REQUIRES: add_to(), and the batch is known to be complete.
  void arrived() noexcept { gate_.arrived(push_); }
  // All of it, in batches of its own.
  coherence::Status run(coherence::Memory& memory) noexcept;

 private:
  LogGate& gate_;
  RedoRing& ring_;
  const coherence::SessionId id_;
  const LogGate::Push push_;
  uint64_t at_;  // what lies before has arrived, or was added
};

}  // namespace bufmgr
