// What the engine asks of the server above it: declared here, implemented in extension/pg and in tests.
#pragma once

#include <cstdint>
#include <span>

#include "coherence/base/result.hpp"
#include "extension/engine/txn/txn_id.hpp"

namespace engine {

enum class WaitFor : uint8_t { kUpdate, kDelete, kLock, kUniqueKey };

class Waiter {
 public:
  virtual ~Waiter() = default;
  // Waits until the transaction that `id` belongs to has ended, through the server's lock manager, so that timeouts,
  // cancel and deadlock checks work.  REQUIRES: no guard held.  kInterrupted: the host must raise what is pending.
  virtual coherence::Status wait_for(TxnId id, WaitFor why) = 0;
};

}  // namespace engine
