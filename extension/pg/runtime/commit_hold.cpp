#include "extension/pg/runtime/commit_hold.hpp"

#include <time.h>

#include <algorithm>
#include <utility>

#include "extension/pg/boundary/wait_events.hpp"
#include "extension/pg/runtime/backend.hpp"

extern "C" {
#include "access/twophase.h"
#include "miscadmin.h"
#include "storage/condition_variable.h"
#include "storage/ipc.h"
#include "storage/proc.h"
#include "storage/spin.h"
}

namespace gcl {

namespace {

constexpr uint64_t kUnlimited = ~uint64_t{0};

struct alignas(64) Committer {
  std::atomic<uint32_t> inside;
};

struct Hold {
  alignas(64) std::atomic<uint64_t> until_us;  // of the monotonic clock; 0: none
  std::atomic<uint64_t> limit;                 // of what counts as flushed
  std::atomic<int> holder;                     // pid
  alignas(64) slock_t lock;                    // to change these three together
  ConditionVariable left, ended;
  uint32_t slots;
  Committer committer[FLEXIBLE_ARRAY_MEMBER];  // by pgprocno
};

Hold* hold = nullptr;
bool inside_commit = false;
uint64_t own_until = 0;  // of this session's hold; 0: none

uint64_t now_us() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return uint64_t(now.tv_sec) * 1'000'000 + uint64_t(now.tv_nsec) / 1000;
}

long ms_until(uint64_t moment) {
  const uint64_t now = now_us();
  return moment <= now ? 0 : long((moment - now) / 1000 + 1);
}

std::atomic<uint32_t>& own_word() { return hold->committer[MyProc->pgprocno].inside; }

bool take_hold(uint64_t until) {
  SpinLockAcquire(&hold->lock);
  const bool free = hold->until_us.load(std::memory_order_relaxed) <= now_us();
  if (free) {
    hold->limit.store(kUnlimited, std::memory_order_seq_cst);
    hold->holder.store(MyProcPid, std::memory_order_relaxed);
    hold->until_us.store(until, std::memory_order_seq_cst);  // pairs with enter_commit(), leave_commit()
  }
  SpinLockRelease(&hold->lock);
  return free;
}

// Of the hold with that deadline, if it is still there.
void end_hold(uint64_t until) noexcept {
  SpinLockAcquire(&hold->lock);
  const bool there = hold->until_us.load(std::memory_order_relaxed) == until;
  if (there) {
    hold->limit.store(kUnlimited, std::memory_order_seq_cst);
    hold->holder.store(0, std::memory_order_relaxed);
    hold->until_us.store(0, std::memory_order_seq_cst);
  }
  SpinLockRelease(&hold->lock);
  if (!there) return;
  ConditionVariableBroadcast(&hold->ended);
  if (node_pool() != nullptr) node_pool()->coherence_node().ring();  // pages that wait to leave
}

void end_own_hold(int, Datum) {
  if (own_until != 0) end_hold(std::exchange(own_until, 0));
}

void leave() noexcept {
  own_word().store(0, std::memory_order_seq_cst);
  if (hold->until_us.load(std::memory_order_seq_cst) != 0) ConditionVariableBroadcast(&hold->left);
}

void wait_until_released(uint64_t until) {
  ConditionVariablePrepareToSleep(&hold->ended);
  while (hold->until_us.load(std::memory_order_seq_cst) == until) {
    const long ms = ms_until(until);
    if (ms == 0) break;
    (void)ConditionVariableTimedSleep(&hold->ended, ms, wait_event(WaitEvent::kHeldCommit));
  }
  ConditionVariableCancelSleep();
  if (ms_until(until) == 0) end_hold(until);
}

// The process of a session that is inside; 0: none is.
int who_is_inside() {
  for (uint32_t slot = 0; slot < hold->slots; ++slot)
    if (hold->committer[slot].inside.load(std::memory_order_seq_cst) != 0)
      return std::max(ProcGlobal->allProcs[slot].pid, 1);
  return 0;
}

void wait_until_all_left(uint64_t until) {
  ConditionVariablePrepareToSleep(&hold->left);
  while (const int inside = who_is_inside()) {
    const long ms = ms_until(until);
    if (ms == 0)
      ereport(ERROR, errcode(ERRCODE_LOCK_NOT_AVAILABLE),
              errmsg("a commit that is under way on this primary has not ended in time"),
              errdetail("Process %d has begun to commit, and has not ended.", inside),
              errhint("pg_stat_activity shows what it waits for; synchronous replication is one such thing."));
    (void)ConditionVariableTimedSleep(&hold->left, ms, wait_event(WaitEvent::kCommit));
  }
  ConditionVariableCancelSleep();
}

// (hold.pages-stay) A process that found no limit has read how far the log is flushed before the limit was there, so
// that is before the record which is written behind it.
XLogRecPtr limit_log(uint64_t until) {
  const XLogRecPtr so_far = GetXLogInsertRecPtr();
  SpinLockAcquire(&hold->lock);
  if (hold->until_us.load(std::memory_order_relaxed) == until)
    hold->limit.store(so_far, std::memory_order_seq_cst);  // pairs with held_back()
  SpinLockRelease(&hold->lock);
  return flush_with_record();
}

void require_commits_that_enter() {
  if (node_pool() == nullptr || !node_state()->ready.load(std::memory_order_acquire) || node_pool()->fenced())
    ereport(ERROR, errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE), errmsg("this server is not in the gcl pool"),
            errdetail("A cut goes through the logs of all primaries that are in the pool."));
  if (max_prepared_xacts > 0)
    ereport(ERROR, errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
            errmsg("commits cannot be held on a server with max_prepared_transactions > 0"),
            errdetail("The end of a transaction that is PREPAREd passes no place where it could wait."),
            errhint("Set max_prepared_transactions = 0."));
}

}  // namespace

size_t commit_hold_bytes(uint32_t slots) { return offsetof(Hold, committer) + slots * sizeof(Committer) + 64; }

void commit_hold_init(void* memory, uint32_t slots) {
  memset(memory, 0, commit_hold_bytes(slots));
  hold = reinterpret_cast<Hold*>((reinterpret_cast<uintptr_t>(memory) + 63) & ~uintptr_t{63});
  hold->limit.store(kUnlimited);
  hold->slots = slots;
  SpinLockInit(&hold->lock);
  ConditionVariableInit(&hold->left);
  ConditionVariableInit(&hold->ended);
}

void enter_commit() {
  for (;;) {
    own_word().store(1, std::memory_order_seq_cst);  // pairs with take_hold(): one of the two is seen
    const uint64_t until = hold->until_us.load(std::memory_order_seq_cst);
    if (until == 0) break;
    leave();
    wait_until_released(until);
  }
  inside_commit = true;
}

void leave_commit() noexcept {
  if (std::exchange(inside_commit, false)) leave();
}

XLogRecPtr hold_commits(int ms) {
  static bool registered = false;
  require_commits_that_enter();
  if (!registered) before_shmem_exit(end_own_hold, 0);
  registered = true;
  end_own_hold(0, 0);
  const uint64_t until = now_us() + uint64_t(ms) * 1000;
  if (!take_hold(until))
    ereport(ERROR, errcode(ERRCODE_OBJECT_IN_USE), errmsg("another session holds the commits of this primary"),
            errdetail("Process %d holds them.", hold->holder.load()), errhint("It is a backup, and over in a moment."));
  own_until = until;
  XLogRecPtr position = InvalidXLogRecPtr;
  PG_TRY();
  {
    wait_until_all_left(until);
    position = limit_log(until);
    wake_worker(Worker::kFlusher);  // it looks after the deadline
  }
  PG_CATCH();
  {
    end_own_hold(0, 0);
    PG_RE_THROW();
  }
  PG_END_TRY();
  return position;
}

bool release_commits() {
  const uint64_t until = own_until;
  const bool in_time = until != 0 && hold->until_us.load(std::memory_order_seq_cst) == until && ms_until(until) > 0;
  end_own_hold(0, 0);
  return in_time;
}

XLogRecPtr held_back(XLogRecPtr flushed) noexcept {
  const uint64_t limit = hold->limit.load(std::memory_order_seq_cst);  // pairs with limit_log()
  if (limit == kUnlimited || ms_until(hold->until_us.load(std::memory_order_seq_cst)) == 0) return flushed;
  return std::min(flushed, XLogRecPtr{limit});
}

long end_hold_in_time() noexcept {
  const uint64_t until = hold->until_us.load(std::memory_order_seq_cst);
  if (until == 0) return -1;
  const long ms = ms_until(until);
  if (ms > 0) return ms;
  end_hold(until);
  return -1;
}

}  // namespace gcl
