// Visibility: which snapshot sees a row version, and what forbids or delays a change of it.  Works on copies of row
// headers, with no guard held, or (judge) under a guard with what is known already.
//
// heap.learn-before-guard: A status that is final never changes, so it may be learned before the guard and used under
//     it.
// heap.hint-equals-status: A hint (kCommitted, kFrozen, kAborted in the creator word) says what the status log says, or
//     would say.
// heap.own-by-commands: What the running transaction and its live savepoints have done is decided by commands, never by
//     status.  Which command a row names, and where the other one is: heap.word-has-one-use, heap.note-of-this-version.
// heap.lock-falls-to-parent: A rolled back savepoint that had taken the place of its own transaction's row lock leaves
//     the lock to the transaction.
// heap.word-or-lock-page: A version is locked by what its deleter word says and, if it is flagged (kHasLockers), by
//     what its block's lock pages say; each of those locks counts while the status of its id is not final.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "extension/engine/heap/outcome.hpp"
#include "extension/engine/heap/row_lock.hpp"
#include "extension/engine/txn/transaction.hpp"

namespace engine {

enum class Liveness : uint8_t { kLive, kRecentlyDead, kDead, kInsertRunning, kDeleteRunning };

// Whether the version was made by this session's transaction.
inline bool is_own(const Transaction& me, const RowHeader& row) {
  return row.creator.kind() == RowTxnKind::kInserted && me.is_mine(row.creator.id());
}
// The commands that made and ended the version at `at`, each as far as it was one of this session's transaction.
Commands combo_commands(const Transaction& me, const RowHeader& row, RowPlace at);

// Whether the snapshot sees the version at `at`.  kDirty: *running is the other transaction that must end before it is
// known, if any.
Result<bool> visible(TxnSystem& txns, const RowHeader& row, RowPlace at, const Snapshot& snapshot, TxnId* running);

// What the version is to all (PostgreSQL's HeapTupleSatisfiesVacuum), by this node's horizon.  `mine`: of the session
// that asks.  `never_made`: it is dead because its maker was rolled back, and not because it was ended.
Result<Liveness> liveness(TxnSystem& txns, const RowHeader& row, bool* mine, bool* never_made = nullptr);

// What the version is to a session that counts rows as of a snapshot, each once, whatever changes meanwhile.
enum class AsOf : uint8_t { kThere, kGone, kToCome };
Result<AsOf> as_of(TxnSystem& txns, const RowHeader& row, RowPlace at, const Snapshot& snapshot);

// Whether `next` is the version that `row` was updated to, and not a stranger in its place.
Result<bool> is_successor(TxnSystem& txns, const RowHeader& row, const RowHeader& next);

// What a writer has learned about ids while it held no guard.
class Facts {
 public:
  std::optional<TxnStatus> get(const TxnSystem& txns, TxnId id) const;
  Status learn(TxnSystem& txns, TxnId id);
  void forget() {  // after a wait: running ones may have ended
    count_ = 0;
    more_.clear();
  }

 private:
  struct Fact {
    TxnId id;
    TxnStatus status;
  };
  static constexpr int kFew = 4;
  Fact few_[kFew];
  int count_ = 0;
  std::vector<Fact> more_;  // a row may have many holders
};

// The lock of a row that a command wants.
struct WantedLock {
  uint32_t command;
  RowLock mode;
  bool newer = false;  // follows an update that is under way: the version counts although its creator still runs
};

struct UpdateCheck {
  enum Kind : uint8_t {
    kGo,        // the row may be changed or locked; see the Holders
    kConflict,  // it may not: see `outcome`
    kWait,      // `id` (running, another's) must end first
    kAsk,       // the status of `id` (and of RecordedLocks::unknown) must be learned first
    kNewer,     // to be locked, but the versions that follow must be locked first
    kCells,     // the block's lock pages must be found, or have room for `entries`
  } kind = kGo;
  RowOutcome outcome;
  TxnId id;
  uint32_t block = 0;    // kCells
  uint32_t entries = 0;  // kCells
};

// PostgreSQL's HeapTupleSatisfiesUpdate, by creator and deleter word, for a command of our transaction.  Asks nothing
// of the pool.  kGo: fills what the words say into *holders; lock cells are left to judge_recorded().
UpdateCheck judge(const TxnSystem& txns, const Facts& facts, const RowHeader& row, PageId page, Tid tid,
                  const WantedLock& wanted, Holders* holders);
// The same for the locks recorded in lock cells, after kGo of judge().
UpdateCheck judge_recorded(const TxnSystem& txns, const Facts& facts, const RowHeader& row, Tid tid,
                           const WantedLock& wanted, std::span<const Locker> recorded, Holders* holders);

}  // namespace engine
