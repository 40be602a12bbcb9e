// What the engine asks of the server above it: declared here, implemented in extension/pg and in tests.
#pragma once

#include <cstdint>

#include "coherence/base/ids.hpp"
#include "coherence/base/result.hpp"
#include "extension/engine/txn/speculation.hpp"
#include "extension/engine/txn/txn_id.hpp"

namespace engine {

enum class WaitFor : uint8_t { kUpdate, kDelete, kLock, kUniqueKey, kPage, kHolds };

// A row's queue, and in which mode a session waits in it (Waiter::enter_row_queue).
struct RowQueue {
  uint32_t table = 0;  // the host's name of it
  uint32_t block = 0;
  uint16_t line = 0;
  uint8_t mode = 0;  // RowLock
  bool operator==(const RowQueue&) const = default;
};

// Waiting, through the server's lock manager, so that timeouts, cancel and deadlock checks work.
class Waiter {
 public:
  virtual ~Waiter() = default;
  // Waits until the transaction that `id` belongs to has ended, or (if it can) has rolled back the savepoint `id`.
  // For kHolds, until its holds on pages have: they may be given up before it ends, which is asked for.
  // REQUIRES: no guard held.  It may return early: callers read the row again.  kInterrupted: the host must raise what
  // is pending.
  virtual coherence::Status wait_for(TxnId id, WaitFor why) = 0;
  // Of the sessions of this server that want locks of that row which exclude each other, one at a time waits for the
  // holder; the others wait here, first come, first served.  Returns whether it had to wait; otherwise as wait_for().
  virtual coherence::Result<bool> enter_row_queue(const RowQueue& queue) = 0;
  virtual void leave_row_queue(const RowQueue& queue) noexcept = 0;
  // Waits until that row is kept or taken back; otherwise as wait_for().
  virtual coherence::Status wait_for_speculation(const Speculation& which) = 0;
  // Sleeps about that long; kInterrupted as above.
  virtual coherence::Status pause(uint32_t ms) = 0;
};

// What the server itself says of its former transactions, when it comes back.
class HostCommits {
 public:
  virtual ~HostCommits() = default;
  // Whether the transaction of that number committed in the server.  An error: it cannot be told (any more).
  virtual coherence::Result<bool> committed(uint64_t host_xid) = 0;
  // So it is decided and carried out, in a moment.  An error: the host cannot record that, and nothing is decided.
  virtual coherence::Status about_to_decide(TxnId, bool /* committed */) { return {}; }
  // That transaction was in doubt, and is decided so in the pool, whichever node did it: the host says so where it has
  // decided otherwise.  False: it is not for this host to hear, and is told again.
  virtual bool was_decided(uint64_t host_xid, bool committed) = 0;
};

// Waking other nodes whose sessions wait for a transaction that just ended.
class NodeWaker {
 public:
  virtual ~NodeWaker() = default;
  // Has the wait workers of `nodes` check again what they wait for.  Never fails, never waits; called at the end of a
  // transaction, also of an aborted one.
  virtual void wake(coherence::NodeSet nodes) noexcept = 0;
};

}  // namespace engine
