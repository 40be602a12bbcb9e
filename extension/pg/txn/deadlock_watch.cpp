#include "extension/pg/txn/deadlock_watch.hpp"

#include "bufmgr/base/wakeup.hpp"
#include "extension/pg/boundary/monotonic.hpp"
#include "extension/pg/boundary/pg_call.hpp"
#include "extension/pg/boundary/wait_events.hpp"
#include "extension/pg/runtime/ddl_hooks.hpp"
#include "extension/pg/runtime/node.hpp"
#include "extension/pg/runtime/own_wait.hpp"
#include "extension/pg/runtime/raise.hpp"
#include "extension/pg/runtime/wait_tag.hpp"
#include "extension/pg/runtime/waiter.hpp"
#include "extension/pg/txn/wait_export.hpp"

extern "C" {
#include "storage/lock.h"
#include "utils/timestamp.h"
}

namespace gcl {

using coherence::NodeSet;
using engine::WaitKind;
using engine::WaitRecord;
using engine::WaitRegistry;

namespace {

// A cycle that closes right behind a search is found by the next one: within both and two answers, so within a second.
constexpr TimestampTz kPauseUs = 250'000;  // between two searches, however long the last one waited for answers

WaitRegistry registry_of(engine::TxnSystem& txns) {
  bufmgr::BufferPool& pool = txns.pool();
  return {txns.session().unordered_memory(), pool.region(bufmgr::Region::kWaits), pool.nodes_max(), pool.node(),
          pool.coherence_node().incarnation()};
}

void wake_others(bufmgr::BufferPool& pool) {
  NodeWakeupEvents().wake(pool.coherence_node().live().without(pool.node()));
}

constexpr TimestampTz kNever = DT_NOEND;

// Since when the process has waited in a way that may give way, at the earliest; kNever: it does not, and will not
// before the worker is woken.
TimestampTz waits_since(const PGPROC* proc, const OwnWait& own, TimestampTz now) {
  if (own.kind != OwnWaitKind::kNone) return own.since;
  if (own.ddl_transaction == 0 || own.works_for.pid != 0 || own.pid != proc->pid) return kNever;
  if (*const_cast<LOCK* const volatile*>(&proc->waitLock) == nullptr) return now;
  const auto since = TimestampTz(pg_atomic_read_u64(const_cast<pg_atomic_uint64*>(&proc->waitStart)));
  return since != 0 ? since : now;  // it is just beginning
}

// When a wait of this server that may give way will have lasted its deadlock_timeout (pg_txn.waits-timed-from-start).
TimestampTz first_long_wait(TimestampTz now) {
  TimestampTz first = kNever;
  for (uint32_t i = 0; i < own_wait_slots() && i < ProcGlobal->allProcCount; ++i) {
    const OwnWait own = own_wait_of(i);
    const TimestampTz since = waits_since(&ProcGlobal->allProcs[i], own, now);
    const int64_t us = int64_t{own.timeout_ms} * 1000;
    if (since != kNever) first = Min(first, engine::has_lasted(since, now, us) ? now : since + us);
  }
  return first;
}

// The wait and its place in the queue are compared under the lock that guards both (pg_txn.wait-taken-from-queue).
void end_wait_in_queue(PGPROC* proc, const engine::Deadlock& deadlock) {
  const bool remote = deadlock.victim.kind == WaitKind::kRemote;
  LOCK* const lock = *const_cast<LOCK* const volatile*>(&proc->waitLock);
  if (lock == nullptr) return;
  const LOCKTAG tag = remote ? wait_tag(own_wait_of(uint32_t(proc->pgprocno)).remote.id) : lock->tag;
  const uint32 hash = LockTagHashCode(&tag);
  LWLock* partition = LockHashPartitionLock(hash);
  LWLockAcquire(partition, LW_EXCLUSIVE);
  const OwnWait own = own_wait_of(uint32_t(proc->pgprocno));
  const OwnWaitKind kind = remote ? OwnWaitKind::kTag : OwnWaitKind::kNone;
  const LOCKTAG tag_now = remote ? wait_tag(own.remote.id) : tag;
  const bool same = proc->pid == int(deadlock.victim.process) && proc->waitStatus == PROC_WAIT_STATUS_WAITING &&
                    proc->waitLock != nullptr && memcmp(&proc->waitLock->tag, &tag, sizeof tag) == 0 &&
                    memcmp(&tag_now, &tag, sizeof tag) == 0 &&
                    pg_atomic_read_u64(&proc->waitStart) == deadlock.victim.wait;
  if (same && own_wait_condemn(uint32_t(proc->pgprocno), proc->pid, kind, own.sequence, deadlock.detail.c_str())) {
    RemoveFromWaitQueue(proc, hash);
    SetLatch(&proc->procLatch);
  }
  LWLockRelease(partition);
}

OwnWaitKind own_kind(WaitKind kind) {
  return kind == WaitKind::kDdlLock ? OwnWaitKind::kDdlLock : OwnWaitKind::kReplies;
}

void carry_out(const engine::Deadlock& deadlock) {
  const WaitRecord& victim = deadlock.victim;
  if (victim.session >= ProcGlobal->allProcCount) return;
  PGPROC* proc = &ProcGlobal->allProcs[victim.session];
  if (victim.kind == WaitKind::kRemote || victim.kind == WaitKind::kLock) return end_wait_in_queue(proc, deadlock);
  if (own_wait_condemn(victim.session, int(victim.process), own_kind(victim.kind), victim.wait,
                       deadlock.detail.c_str()))
    ddl_wake_waits();
}

}  // namespace

DeadlockWatch::DeadlockWatch(engine::TxnSystem& txns)
    : txns_(txns), pool_(txns.pool()), registry_(registry_of(txns)), detector_(registry_, txns.node()) {
  memory_context_ = AllocSetContextCreate(TopMemoryContext, "gcl waits", ALLOCSET_DEFAULT_SIZES);
  records_ = static_cast<WaitRecord*>(MemoryContextAlloc(TopMemoryContext, registry_.room() * sizeof(WaitRecord)));
  registry_.clear();
}

void DeadlockWatch::answer() {
  const auto asked = registry_.asked();
  if (!asked) return;
  if (asked->ticket != answered_) publish_waits(asked->ticket);
  NodeWakeupEvents().wake(asked->by);  // waitgraph.answers-wake
}

void DeadlockWatch::publish_waits(uint64_t ticket) {
  uint32_t left_out = 0;
  const uint32_t count = pg_call([this, &left_out] {
    MemoryContext caller = MemoryContextSwitchTo(memory_context_);
    const uint32_t collected = collect_waits(txns_, records_, registry_.room(), &left_out);
    MemoryContextSwitchTo(caller);
    MemoryContextReset(memory_context_);
    return collected;
  });
  registry_.publish(ticket, {records_, count}, left_out);
  answered_ = ticket;
}

TimestampTz DeadlockWatch::round() {
  answer();
  const TimestampTz now = GetCurrentTimestamp();
  TimestampTz due = kNever;
  bool asked = false;
  if (detector_.busy()) {
    for (const engine::Deadlock& deadlock : detector_.step(pool_.coherence_node().live(), now, &asked))
      carry_out(deadlock);
    if (!detector_.busy()) next_search_ = now + kPauseUs;
  }
  if (!detector_.busy()) {
    next_search_ = Min(next_search_, now + kPauseUs);  // the clock may have been set back
    due = Max(first_long_wait(now), next_search_);
    if (due <= now) detector_.start(now, &asked);
  }
  if (asked) {
    wake_others(pool_);
    answer();
  }
  return detector_.busy() ? TimestampTz(detector_.patience_ends()) : due;
}

engine::WaitRecord* ask_everybody(engine::TxnSystem& txns, uint32_t ms, uint32_t* count, NodeSet* missing) {
  bufmgr::BufferPool& pool = txns.pool();
  WaitRegistry registry = registry_of(txns);
  const auto ticket = registry.ask();
  if (!ticket) raise(ticket.error(), nullptr);
  NodeWakeupEvents().wake(pool.coherence_node().live());
  const int64_t began = monotonic_us();
  *missing = pool.coherence_node().live();
  return pg_entry([&] {
    std::vector<WaitRecord> all;
    for (;;) {
      pg_call([] { ConditionVariablePrepareToSleep(&node_state()->answers); });
      missing->bits &= pool.coherence_node().live().bits;  // no answer comes from one that has died or left
      for (NodeSet left = *missing; !left.empty(); left = left.without(left.first()))
        if (registry.read(left.first(), *ticket, &all)) *missing = missing->without(left.first());
      if (missing->empty() || monotonic_us() - began > int64_t{ms} * 1000) break;
      pg_call([ms] { (void)ConditionVariableTimedSleep(&node_state()->answers, ms, wait_event(WaitEvent::kViews)); });
    }
    pg_call([] { ConditionVariableCancelSleep(); });
    *count = uint32_t(all.size());
    const size_t bytes = all.size() * sizeof(WaitRecord);
    auto* copy = static_cast<WaitRecord*>(pg_call([=] { return palloc(bytes + 1); }));
    std::copy(all.begin(), all.end(), copy);
    return copy;
  });
}

}  // namespace gcl
