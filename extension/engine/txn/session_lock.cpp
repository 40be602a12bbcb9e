// Session locks: a word per session that says what it is about to do alone, and dies with the session
// (txn.session-lock-token).
#include <cstring>

#include "bufmgr/mini_transaction.hpp"
#include "extension/engine/txn/transaction.hpp"

namespace engine {

using coherence::Batch;

// The token is a value of the clock, so that no two locks are ever equal, not even of one session.
Result<SessionLock> TxnSystem::take_session_lock() {
  VERIFY(!session_locked_);
  Batch tick(words_.clock().node());
  int faa = tick.faa(words_.clock(), 1);
  GCL_TRY(run(tick));
  SessionLock lock = SessionLock::of(tick.op(faa).old, node_, session_.id());
  Batch batch(words_.clock().node());
  batch.write(words_.session_lock(node_, session_.id()), &lock.token, sizeof lock.token);
  GCL_TRY(run(batch));
  session_locked_ = true;
  return lock;
}

void TxnSystem::release_session_lock() noexcept {
  if (!session_locked_) return;
  session_locked_ = false;
  uint64_t none = 0;
  Batch batch(words_.clock().node());
  batch.write(words_.session_lock(node_, session_.id()), &none, sizeof none);
  (void)run(batch);  // without a pool there is no session to keep out
}

Result<bool> TxnSystem::is_held(SessionLock lock) {
  if (lock.token == 0 || lock.node().value >= words_.nodes() || lock.session().value >= words_.sessions()) return false;
  Batch batch(words_.clock().node());
  int now = batch.load(words_.session_lock(lock.node(), lock.session()));
  GCL_TRY(run(batch));
  return batch.op(now).old == lock.token;
}

// The session's own word is set before the page's lock is read.
Result<bool> TxnSystem::take_session_lock_on(PageId page, bufmgr::PageType type, uint32_t offset) {
  auto mine = take_session_lock();
  if (!mine) return mine.error();
  auto taken = write_session_lock(*mine, page, type, offset);
  if (!taken || !*taken) release_session_lock();
  return taken;
}

Result<bool> TxnSystem::write_session_lock(SessionLock mine, PageId page, bufmgr::PageType type, uint32_t offset) {
  for (;;) {
    auto optimistic = pool_.fix_optimistic(session_, page);
    if (!optimistic) return optimistic.error();
    const auto found = optimistic->get<bufmgr::PageHeader>(0).type;
    const auto last = optimistic->get<SessionLock>(offset);
    if (!optimistic->validate()) continue;
    if (found != type) return Errc::kNotFound;
    auto standing = is_held(last);
    if (!standing) return standing.error();
    if (*standing) return false;
    bufmgr::MiniTransaction change(pool_, session_);
    GCL_TRY(change.reserve(64));
    auto guard = pool_.fix_exclusive(session_, page);
    if (!guard) return guard.error();
    SessionLock now;
    std::memcpy(&now, guard->bytes() + offset, sizeof now);
    if (guard->header().type != type || now != last) continue;  // another session was faster
    change.join(*guard);
    change.set(*guard, offset, mine);
    change.commit();
    return true;
  }
}

}  // namespace engine
