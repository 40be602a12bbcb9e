// Visibility: who sees a row version, and what stands in the way of changing it.  Works on copies of row headers, with
// no guard held, or (judge) under a guard with what is known already.
//
// V1. A fate that is final never changes, so it may be learned before the guard and used under it.
// V2. A hint (kCommitted, kFrozen, kAborted in the creator word) says what the status log says, or would say.
// V3. What is of one's own (the running transaction and its live savepoints) is decided by commands, never by status.
// V4. A rolled back savepoint that had taken the place of its own transaction's row lock leaves the lock to its parent.
#pragma once

#include <cstdint>

#include "extension/engine/heap/outcome.hpp"
#include "extension/engine/txn/transaction.hpp"

namespace engine {

enum class Liveness : uint8_t { kLive, kRecentlyDead, kDead, kInsertRunning, kDeleteRunning };

// Whether the snapshot sees the version.  kDirty: *running is the other transaction that must end before it is known,
// if any.  `mine` of the session that asks.
Result<bool> visible(TxnSystem& txns, const RowHeader& row, const Snapshot& snapshot, TxnId* running);

// What the version is to everybody (PostgreSQL's HeapTupleSatisfiesVacuum), by this node's horizon.
Result<Liveness> liveness(TxnSystem& txns, const RowHeader& row, bool* mine);

// Whether `next` is the version that `row` was updated to, and not a stranger in its place.
Result<bool> is_successor(TxnSystem& txns, const RowHeader& row, const RowHeader& next);

// What a writer has learned about ids while it held no guard.
class Facts {
 public:
  std::optional<Fate> get(const TxnSystem& txns, TxnId id) const;
  Status learn(TxnSystem& txns, TxnId id);
  void forget() { count_ = 0; }  // after a wait: running ones may have ended

 private:
  static constexpr int kMax = 8;
  TxnId id_[kMax];
  Fate fate_[kMax];
  int count_ = 0;
};

struct Verdict {
  enum Kind : uint8_t {
    kGo,        // the row may be changed or locked
    kConflict,  // it may not: see `outcome`
    kWait,      // `id` (running, another's) must end first
    kAsk,       // the fate of `id` must be learned first
  } kind = kGo;
  RowOutcome outcome;
  TxnId id;
  bool lock_only = false;   // kWait: it only locks the row
  bool holds_lock = false;  // kGo: our transaction has a lock on the row that must survive (V4)
  bool has_lock = false;    // kGo: the deleter word is a live lock of our transaction
};

// PostgreSQL's HeapTupleSatisfiesUpdate, for a command of our transaction.  Asks nothing of the pool.
Verdict judge(const TxnSystem& txns, const Facts& facts, const RowHeader& row, Tid tid, uint32_t command);

}  // namespace engine
