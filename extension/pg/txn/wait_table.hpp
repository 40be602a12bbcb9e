// WaitTable: transactions of other primaries that backends of this one wait for.
//
// A backend claims an entry and wakes the member worker; the worker takes a session lock on the transaction's tag and
// registers with the transaction's node to be rung; then the backend waits for the tag in PostgreSQL's lock manager,
// so lock_timeout, cancel, pg_locks and pg_blocking_pids work.  The worker lets the tag go when the transaction ended.
//
// W1. An entry is reused when it is kFree: no waiter, no lock held.
// W2. kHeld is set only while the worker's session holds the tag's lock, once.
// W3. The worker changes an entry only if it still has the id and the state it was read with: its waiters may have left
//     meanwhile, and others come.
#pragma once

#include "extension/pg/boundary/pg.hpp"

extern "C" {
#include "storage/lock.h"
#include "storage/spin.h"
}

namespace gcl {

enum class WaitState : uint32_t { kFree, kWanted, kHeld, kEnded };

struct WaitEntry {
  uint64_t id;  // TxnId of the top-level transaction
  uint32_t waiters;
  WaitState state;
};

inline constexpr int kWaitEntries = 1024;

struct WaitTable {
  slock_t lock;
  int used;  // entries [0, used) may be in use
  WaitEntry entry[kWaitEntries];
};

// The tag that stands for a remote transaction: an advisory lock of a class of its own.
inline LOCKTAG wait_tag(uint64_t id) {
  LOCKTAG tag;
  SET_LOCKTAG_ADVISORY(tag, InvalidOid, uint32(id >> 32), uint32(id), 3);
  return tag;
}

}  // namespace gcl
