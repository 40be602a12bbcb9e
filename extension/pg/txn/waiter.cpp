#include "extension/pg/txn/waiter.hpp"

#include "bufmgr/bell.hpp"
#include "extension/pg/backend.hpp"
#include "extension/pg/boundary/pg_call.hpp"
#include "extension/pg/txn/own_wait.hpp"

namespace gcl {

using coherence::Errc;
using coherence::NodeId;
using coherence::Status;
using engine::TxnId;

namespace {

constexpr uint64_t kBellsAt = 528;  // in Region::kTxnWords, behind the bounds of all nodes

// Runs a wait of PostgreSQL's below the engine; its ERROR passes the engine as kInterrupted.
template <class F>
Status carried(F f) {
  try {
    pg_call(f);
  } catch (const PgError& error) {
    (void)own_wait_explain(error.data);
    carry_error(error);
    return Errc::kInterrupted;
  }
  return {};
}

int claimed = -1;  // the entry that this process waits with

int claim(uint64_t id) {
  WaitTable& table = node_state()->waits;
  int mine = -1;
  SpinLockAcquire(&table.lock);
  for (int i = 0; i < table.used && mine < 0; ++i) {
    const WaitEntry& e = table.entry[i];
    if (e.id == id && (e.state == WaitState::kWanted || e.state == WaitState::kHeld)) mine = i;
  }
  for (int i = 0; i < kWaitEntries && mine < 0; ++i) {
    if (table.entry[i].state != WaitState::kFree) continue;
    table.entry[i] = {id, 0, WaitState::kWanted};
    mine = i;
    if (table.used <= i) table.used = i + 1;
  }
  if (mine >= 0) ++table.entry[mine].waiters;
  SpinLockRelease(&table.lock);
  return mine;
}

void leave(int index) {
  WaitTable& table = node_state()->waits;
  SpinLockAcquire(&table.lock);
  WaitEntry& e = table.entry[index];
  if (--e.waiters == 0 && e.state != WaitState::kHeld) e.state = WaitState::kFree;
  SpinLockRelease(&table.lock);
}

WaitState state_of(int index) {
  WaitTable& table = node_state()->waits;
  SpinLockAcquire(&table.lock);
  const WaitState state = table.entry[index].state;
  SpinLockRelease(&table.lock);
  return state;
}

void wait_for_tag(int index, uint64_t id) {
  while (state_of(index) == WaitState::kWanted) {
    CHECK_FOR_INTERRUPTS();
    if (node_pool()->fenced()) return;
    (void)WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, 1, PG_WAIT_EXTENSION);
    ResetLatch(MyLatch);
  }
  if (state_of(index) != WaitState::kHeld) return;
  const LOCKTAG tag = wait_tag(id);
  (void)LockAcquire(&tag, ShareLock, false, false);
  LockRelease(&tag, ShareLock, false);
}

Status wait_remote(uint64_t id) {
  const int index = claim(id);
  if (index < 0)
    return carried([] {
      pg_usleep(1000);
      CHECK_FOR_INTERRUPTS();
    });
  claimed = index;
  own_wait_begins(OwnWaitKind::kTag);
  bufmgr::ring_bell(member_bell(node_pool()->node()));
  const Status status = carried([=] { wait_for_tag(index, id); });
  stop_waiting();
  if (!status.ok()) return status.error();
  return node_pool()->fenced() ? Status(Errc::kFenced) : Status();
}

}  // namespace

void stop_waiting() noexcept {
  own_wait_ends();
  if (claimed >= 0) leave(std::exchange(claimed, -1));
}

Status BackendWaiter::wait_for(TxnId id, engine::WaitFor) {
  // A row of a dead transaction may lie on a page that is here: only the fence ends the wait for it.
  if (node_pool()->fenced()) return Errc::kFenced;
  auto owner = txns_->owner(id);
  if (!owner) return owner.error();
  if (owner->state == engine::TxnState::kCommitted || owner->state == engine::TxnState::kAborted) return {};
  if (owner->top.node() != txns_->node()) return wait_remote(owner->top.raw);
  const uint32_t xid = txns_->host_xid_of(owner->top);
  if (xid == 0) return pause(1);  // it is just ending
  return carried([=] { XactLockTableWait(xid, nullptr, nullptr, XLTW_None); });
}

Status BackendWaiter::pause(uint32_t ms) {
  if (node_pool()->fenced()) return Errc::kFenced;
  return carried([=] {
    (void)WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, long(ms), PG_WAIT_EXTENSION);
    ResetLatch(MyLatch);
    CHECK_FOR_INTERRUPTS();
  });
}

std::atomic<uint32_t>& member_bell(NodeId node) noexcept {
  bufmgr::BufferPool& pool = *node_pool();
  const coherence::PoolAddress at = pool.region(bufmgr::Region::kTxnWords).at + (kBellsAt + node.value * 4u);
  return *reinterpret_cast<std::atomic<uint32_t>*>(pool.coherence_pool().at(at));
}

void NodeBells::ring(coherence::NodeSet nodes) noexcept {
  for (; !nodes.empty(); nodes = nodes.without(nodes.first())) bufmgr::ring_bell(member_bell(nodes.first()));
}

namespace {

// W3.  False: the entry's waiters have gone since it was read, and it may be another transaction's.
bool set_state(int index, uint64_t id, WaitState from, WaitState to) {
  WaitTable& table = node_state()->waits;
  SpinLockAcquire(&table.lock);
  WaitEntry& e = table.entry[index];
  const bool same = e.id == id && e.state == from;
  if (same) e.state = to == WaitState::kEnded && e.waiters == 0 ? WaitState::kFree : to;
  while (table.used > 0 && table.entry[table.used - 1].state == WaitState::kFree) --table.used;
  SpinLockRelease(&table.lock);
  return same;
}

// W2.  The lock comes first, the registration second: whoever sees kHeld waits for a lock that will be let go.
void take(engine::TxnSystem& txns, int index, uint64_t id) {
  const LOCKTAG tag = wait_tag(id);
  const LockAcquireResult got = LockAcquire(&tag, ExclusiveLock, true, true);
  if (got == LOCKACQUIRE_NOT_AVAIL) return;                                     // a former waiter still has it
  if (got == LOCKACQUIRE_ALREADY_HELD) LockRelease(&tag, ExclusiveLock, true);  // it is let go once
  auto running = txns.watch(TxnId{id});
  if (running.ok() && *running) {
    if (!set_state(index, id, WaitState::kWanted, WaitState::kHeld)) LockRelease(&tag, ExclusiveLock, true);
    return;
  }
  LockRelease(&tag, ExclusiveLock, true);
  (void)set_state(index, id, WaitState::kWanted, WaitState::kEnded);
}

void look_again(engine::TxnSystem& txns, int index, uint64_t id) {
  auto running = txns.watch(TxnId{id});
  if (running.ok() && *running) return;
  if (!set_state(index, id, WaitState::kHeld, WaitState::kEnded)) return;
  const LOCKTAG tag = wait_tag(id);
  LockRelease(&tag, ExclusiveLock, true);
}

}  // namespace

void forget_held_waits() {
  WaitTable& table = node_state()->waits;
  SpinLockAcquire(&table.lock);
  for (int i = 0; i < table.used; ++i) {
    WaitEntry& e = table.entry[i];
    if (e.state == WaitState::kHeld) e.state = e.waiters == 0 ? WaitState::kFree : WaitState::kWanted;
  }
  SpinLockRelease(&table.lock);
}

bool tend_waits(engine::TxnSystem& txns) {
  WaitTable& table = node_state()->waits;
  bool some = false;
  for (int i = 0; i < kWaitEntries; ++i) {
    SpinLockAcquire(&table.lock);
    const bool end = i >= table.used;
    const WaitEntry e = table.entry[i];
    SpinLockRelease(&table.lock);
    if (end) break;
    if (e.state == WaitState::kWanted) take(txns, i, e.id);
    if (e.state == WaitState::kHeld) look_again(txns, i, e.id);
    some |= e.state != WaitState::kFree;
  }
  return some;
}

}  // namespace gcl
