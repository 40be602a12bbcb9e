#include "extension/pg/runtime/waiter.hpp"

#include "extension/pg/boundary/pg_call.hpp"
#include "extension/pg/boundary/wait_events.hpp"
#include "extension/pg/runtime/backend.hpp"
#include "extension/pg/runtime/node_events.hpp"
#include "extension/pg/runtime/own_wait.hpp"
#include "extension/pg/runtime/wait_tag.hpp"

namespace gcl {

using coherence::Errc;
using coherence::NodeId;
using coherence::Result;
using coherence::Status;
using engine::Speculation;
using engine::TxnId;
using engine::WaitState;

namespace {

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

void wake_member(NodeId node) noexcept { node_pool()->coherence_node().wake(node, kMemberEvent); }

int entry_waited_for = -1;  // of the wait table, by this process

engine::WaitTable& table() { return node_state()->waits; }

void wait_for_tag(int index, uint64_t id) {
  while (table().state(index) == WaitState::kWanted) {
    CHECK_FOR_INTERRUPTS();
    if (node_pool()->fenced()) return;
    (void)WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, 1, wait_event(WaitEvent::kRowOwner));
    ResetLatch(MyLatch);
  }
  if (table().state(index) != WaitState::kHeld) return;
  const LOCKTAG tag = wait_tag(id);
  (void)LockAcquire(&tag, ShareLock, false, false);
  LockRelease(&tag, ShareLock, false);
}

Status pause_for(uint32_t ms) {
  return carried([=] {
    (void)WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, long(ms),
                    wait_event(WaitEvent::kOldOnes));
    ResetLatch(MyLatch);
    CHECK_FOR_INTERRUPTS();
  });
}

Status wait_remote(uint64_t id, uint64_t top) {
  const int index = table().request(id, uint32_t(MyProc->pgprocno));
  if (index < 0) {  // txn.one-wait-per-session: until the worker has made its round
    wake_member(node_pool()->node());
    return pause_for(1);
  }
  entry_waited_for = index;
  own_wait_begins(OwnWaitKind::kTag, {}, {.id = id, .top = top});
  wake_member(node_pool()->node());
  const Status status = carried([=] { wait_for_tag(index, id); });
  stop_waiting();
  if (!status.ok()) return status.error();
  return node_pool()->fenced() ? Status(Errc::kFenced) : Status();
}

LOCKTAG tuple_tag(const engine::RowQueue& queue) {
  LOCKTAG tag;
  SET_LOCKTAG_TUPLE(tag, MyDatabaseId, queue.table, queue.block, queue.line);
  return tag;
}

// Sessions that may hold the row together do not wait for each other's turn.
LOCKMODE tuple_lock(const engine::RowQueue& queue) {
  constexpr LOCKMODE kModes[] = {AccessShareLock, RowShareLock, ExclusiveLock, AccessExclusiveLock};
  return kModes[queue.mode];
}

}  // namespace

void stop_waiting() noexcept {
  own_wait_ends();
  if (entry_waited_for >= 0 && table().leave(std::exchange(entry_waited_for, -1))) wake_member(node_pool()->node());
}

Status BackendWaiter::wait_for(TxnId id, engine::WaitFor why) {
  // A row of a dead transaction may lie on a page that is here: only the fence ends the wait for it.
  if (node_pool()->fenced()) return Errc::kFenced;
  auto owner = txns_->owner(id);
  if (!owner) return owner.error();
  if (owner->state == engine::TxnState::kCommitted || owner->state == engine::TxnState::kAborted) return {};
  if (why == engine::WaitFor::kHolds) return wait_remote(hold_wait(id), owner->top.raw);
  if (owner->top.node() != txns_->node()) return wait_remote(id.raw, owner->top.raw);
  const uint32_t xid = txns_->host_xid_of(id, owner->top);
  if (xid == 0) return pause(1);  // it is just ending
  return carried([=] { XactLockTableWait(xid, nullptr, nullptr, XLTW_None); });
}

// As heap's sessions do: the lock manager's lock of the tuple, shown as such in pg_locks.
Result<bool> BackendWaiter::enter_row_queue(const engine::RowQueue& queue) {
  if (node_pool()->fenced()) return Errc::kFenced;
  bool waited = false;
  const Status status = carried([&] {
    const LOCKTAG tag = tuple_tag(queue);
    if (LockAcquire(&tag, tuple_lock(queue), false, true) != LOCKACQUIRE_NOT_AVAIL) return;
    (void)LockAcquire(&tag, tuple_lock(queue), false, false);
    waited = true;
  });
  if (!status.ok()) return status.error();
  return waited;
}

void BackendWaiter::leave_row_queue(const engine::RowQueue& queue) noexcept {
  const LOCKTAG tag = tuple_tag(queue);
  LockRelease(&tag, tuple_lock(queue), false);
}

Status BackendWaiter::wait_for_speculation(const Speculation& speculation) {
  if (node_pool()->fenced()) return Errc::kFenced;
  if (speculation.node != txns_->node()) return wait_remote(speculation.wait_id(), speculation.top.raw);
  auto lock = txns_->host_lock_of(speculation);
  if (!lock) return lock.error();
  if (*lock == 0) return {};
  return carried([held = speculation_lock(*lock)] { SpeculativeInsertionWait(held.xid, held.token); });
}

Status BackendWaiter::pause(uint32_t ms) {
  if (node_pool()->fenced()) return Errc::kFenced;
  return pause_for(ms);
}

void NodeWakeupEvents::wake(coherence::NodeSet nodes) noexcept {
  for (; !nodes.empty(); nodes = nodes.without(nodes.first())) wake_member(nodes.first());
}

namespace {

class ServerTags final : public engine::WaitTags {
 public:
  explicit ServerTags(engine::TxnSystem& txns) : txns_(txns) {}
  bool take(uint64_t id) override {
    const LOCKTAG tag = wait_tag(id);
    const LockAcquireResult got = LockAcquire(&tag, ExclusiveLock, true, true);
    if (got == LOCKACQUIRE_ALREADY_HELD) LockRelease(&tag, ExclusiveLock, true);  // it is let go once
    return got != LOCKACQUIRE_NOT_AVAIL;
  }
  void let_go(uint64_t id) override {
    const LOCKTAG tag = wait_tag(id);
    LockRelease(&tag, ExclusiveLock, true);
  }
  bool watch(uint64_t id) override {
    auto running = Speculation::is_wait_id(id) ? txns_.watch(Speculation::of_wait_id(id))
                   : is_hold_wait(id)          ? txns_.want_holds(hold_waited_for(id))
                                               : txns_.watch(TxnId{id});
    return running.ok() && *running;
  }
  void wake(uint32_t session) override { SetLatch(&ProcGlobal->allProcs[session].procLatch); }

 private:
  engine::TxnSystem& txns_;
};

}  // namespace

void forget_held_waits() { table().forget_held(); }

bool tend_waits(engine::TxnSystem& txns) {
  ServerTags tags(txns);
  return engine::WaitKeeper(table(), tags).tend();
}

}  // namespace gcl
