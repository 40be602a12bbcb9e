// WaitTable: transactions, and speculations, of other nodes that sessions of this one wait for; and WaitKeeper, the
// node's worker that keeps a tag in the host's lock manager for each of them, so that a wait for it is one of the
// host's own.
//
//   session: i = request(id, me); wake the worker; sleep until state(i) is not kWanted;
//            kHeld: wait for the tag in the lock manager;  leave(i)
//   worker:  tend(), whenever it is woken: takes tags, has the transaction's node wake this one when it ends, releases
//   tags,
//            also those without waiters: the transaction may run for long, and the table has an end
//
// txn.wait-entry-reuse: An entry is reused when it is kFree: no waiter, no tag.
// txn.tag-held-once: kHeld is set only while the worker holds the tag, once.
// txn.wait-entry-unchanged: The worker changes an entry only if it still has the id and the state it was read with: its
//     waiters may have left meanwhile, and others come.
// txn.requester-is-woken: The session that made an entry is woken when the entry leaves kWanted; others that wait with
//     it look again by themselves.
// txn.leaver-wakes-worker: A session that leaves wakes the worker if a tag is held without a waiter now, or if an entry
//     of the same id waits for a tag that this session's wait was in the way of.  It leaves when it has let go the tag.
// txn.one-wait-per-session: A session waits for one id at a time, and the worker frees entries without waiters in each
//     round.  So however many sessions wait, each has an entry: there are twice as many entries as sessions, and if
//     tags of waits that have just ended occupy the rest, the next round frees them.  No wait is hidden from the lock
//     manager or from the search for deadlocks.
//
// Lies in memory that all processes of the node map; zeroed is empty.  All calls are short and never wait but for each
// other.
#pragma once

#include <atomic>
#include <cstdint>

#include "coherence/message/slots.hpp"

namespace engine {

enum class WaitState : uint32_t { kFree, kWanted, kHeld, kEnded };

struct WaitEntry {
  uint64_t id;  // TxnId: a transaction, or a savepoint of one; or a Speculation's wait_id()
  uint32_t waiters;
  uint32_t requester;  // the session that made the entry
  WaitState state;
};

class WaitTable {
 public:
  static constexpr int kEntries = 2 * coherence::kSessionsMax;  // txn.one-wait-per-session

  // An entry for a wait for `id`, shared with sessions that wait for it already; -1: wake the worker, and ask again
  // (txn.one-wait-per-session).
  int request(uint64_t id, uint32_t session) noexcept;
  // True: wake the worker, which has a tag to let go, or to take that this waiter was in the way of.
  bool leave(int index) noexcept;
  WaitState state(int index) noexcept;

  // For the worker.  False: `index` is behind the last entry in use.
  bool read(int index, WaitEntry* to) noexcept;
  // txn.wait-entry-unchanged.  To kFree only without waiters.  *requester: the session to wake.
  bool move(int index, uint64_t id, WaitState from, WaitState to, uint32_t* requester) noexcept;
  // The tags of a former worker went with it.
  void forget_held() noexcept;

 private:
  std::atomic<uint32_t> lock_{0};
  int used_ = 0;  // entries [0, used) may be in use
  WaitEntry entry_[kEntries] = {};
};

// What the worker does to the world.
class WaitTags {
 public:
  virtual ~WaitTags() = default;
  // Takes the tag without waiting; false: a former waiter has it.  A tag that is held already stays held, once.
  virtual bool take(uint64_t id) = 0;
  virtual void let_go(uint64_t id) = 0;
  // Registers to be woken at the transaction's or speculation's end, or the savepoint's rollback; false: it has ended.
  virtual bool watch(uint64_t id) = 0;
  virtual void wake(uint32_t session) = 0;
};

class WaitKeeper {
 public:
  WaitKeeper(WaitTable& table, WaitTags& tags) : table_(table), tags_(tags) {}
  // One round; returns whether it is due again soon: a tag could not be taken, because a former waiter has it.
  bool tend();

 private:
  bool take(int index, uint64_t id);
  void recheck(int index, uint64_t id, bool waited);
  bool move(int index, uint64_t id, WaitState from, WaitState to);

  WaitTable& table_;
  WaitTags& tags_;
};

}  // namespace engine
