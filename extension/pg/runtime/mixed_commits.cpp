#include "extension/pg/runtime/mixed_commits.hpp"

#include "extension/pg/boundary/wait_events.hpp"

extern "C" {
#include "executor/instrument.h"
#include "replication/logicalworker.h"
#include "storage/condition_variable.h"
}

namespace gcl {

namespace {

struct Registry {
  alignas(64) std::atomic<uint32_t> entered;  // how many of `xid` are set
  std::atomic<uint64_t> last_end;             // (runtime.ends-counted-before-publishing)
  alignas(64) ConditionVariable ended;
  uint32_t slots;
  std::atomic<uint32_t> xid[FLEXIBLE_ARRAY_MEMBER];  // by pgprocno; 0: none
};

Registry* registry = nullptr;

int64 own_records = 0;    // that this process has written to the WAL
int64 others_before = 0;  // records that are not ours, when the last transaction had ended
bool unlogged_changed = false;
bool entered = false;

int64 others() { return pgWalUsage.wal_records - own_records; }

// Changes that are replicated come past the executor, be it to unlogged tables (runtime.one-kind-is-free).
bool changed_this_server() { return others() != others_before || unlogged_changed || IsLogicalWorker(); }

uint64_t transactions_ended() { return *const_cast<const volatile uint64*>(&ShmemVariableCache->xactCompletionCount); }

void wait_for_end(uint32_t slot, uint32_t xid) {
  ConditionVariablePrepareToSleep(&registry->ended);
  while (registry->xid[slot].load(std::memory_order_acquire) == xid)  // pairs with mixed_commit_ends()
    (void)ConditionVariableTimedSleep(&registry->ended, 1000, wait_event(WaitEvent::kCommit));
  ConditionVariableCancelSleep();
}

}  // namespace

size_t mixed_commits_bytes(uint32_t slots) { return offsetof(Registry, xid) + slots * sizeof(std::atomic<uint32_t>); }

void mixed_commits_init(void* memory, uint32_t slots) {
  memset(memory, 0, mixed_commits_bytes(slots));
  registry = static_cast<Registry*>(memory);
  registry->slots = slots;
  ConditionVariableInit(&registry->ended);
}

void count_own_record() noexcept { ++own_records; }
void note_unlogged_change() noexcept { unlogged_changed = true; }

uint64_t mixed_commit_xid() {
  return changed_this_server() ? U64FromFullTransactionId(GetTopFullTransactionIdIfAny()) : 0;
}

void mixed_commit_begins() {
  if (!changed_this_server()) return;
  entered = true;
  // A snapshot that sees the transaction is taken later, under the lock under which it leaves the server's list.
  registry->xid[MyProc->pgprocno].store(GetTopTransactionIdIfAny(), std::memory_order_relaxed);
  registry->entered.fetch_add(1, std::memory_order_seq_cst);
}

void mixed_commit_publishes() noexcept {
  if (!entered) return;
  const uint64_t now = transactions_ended();
  uint64_t seen = registry->last_end.load(std::memory_order_relaxed);
  while (seen < now && !registry->last_end.compare_exchange_weak(seen, now, std::memory_order_seq_cst)) {
  }
}

void mixed_commit_ends() noexcept {
  if (!entered) return;
  entered = false;
  registry->xid[MyProc->pgprocno].store(0, std::memory_order_release);
  registry->entered.fetch_sub(1, std::memory_order_release);  // pairs with wait_until_published()
  ConditionVariableBroadcast(&registry->ended);
}

void forget_local_changes() noexcept {
  others_before = others();
  unlogged_changed = false;
}

bool mixed_commits_seen() noexcept {
  return registry->last_end.load(std::memory_order_relaxed) != 0 ||
         registry->entered.load(std::memory_order_relaxed) != 0;
}

void wait_until_published(Snapshot snapshot) {
  if (registry->entered.load(std::memory_order_acquire) == 0) return;
  for (uint32_t slot = 0; slot < registry->slots; ++slot) {
    const uint32_t xid = registry->xid[slot].load(std::memory_order_acquire);
    if (xid != 0 && !XidInMVCCSnapshot(xid, snapshot)) wait_for_end(slot, xid);
  }
}

bool ended_since(Snapshot snapshot, Ended what) noexcept {
  // Behind the timestamp; pairs with runtime.ends-counted-before-publishing, and with the server's count.
  std::atomic_thread_fence(std::memory_order_acquire);
  const uint64_t last = what == Ended::kAny ? transactions_ended() : registry->last_end.load(std::memory_order_seq_cst);
  return last > snapshot->snapXactCompletionCount;
}

}  // namespace gcl
