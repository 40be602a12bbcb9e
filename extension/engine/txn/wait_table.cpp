#include "extension/engine/txn/wait_table.hpp"

#include "coherence/base/os.hpp"

namespace engine {

// A process killed while it holds the lock takes the whole node with it.
using coherence::SpinGuard;

int WaitTable::request(uint64_t id, uint32_t session) noexcept {
  SpinGuard hold(lock_);
  int mine = -1;
  for (int i = 0; i < used_ && mine < 0; ++i) {
    const WaitEntry& e = entry_[i];
    if (e.id == id && (e.state == WaitState::kWanted || e.state == WaitState::kHeld)) mine = i;
  }
  for (int i = 0; i < kEntries && mine < 0; ++i) {
    if (entry_[i].state != WaitState::kFree) continue;
    entry_[i] = {.id = id, .waiters = 0, .requester = session, .state = WaitState::kWanted};
    mine = i;
    if (used_ <= i) used_ = i + 1;
  }
  if (mine >= 0) ++entry_[mine].waiters;
  return mine;
}

bool WaitTable::leave(int index) noexcept {
  SpinGuard hold(lock_);
  WaitEntry& e = entry_[index];
  if (--e.waiters == 0 && e.state == WaitState::kHeld) return true;
  if (e.waiters == 0) e.state = WaitState::kFree;
  for (int i = 0; i < used_; ++i)
    if (entry_[i].id == e.id && entry_[i].state == WaitState::kWanted) return true;
  return false;
}

WaitState WaitTable::state(int index) noexcept {
  SpinGuard hold(lock_);
  return entry_[index].state;
}

bool WaitTable::read(int index, WaitEntry* to) noexcept {
  SpinGuard hold(lock_);
  if (index >= used_) return false;
  *to = entry_[index];
  return true;
}

bool WaitTable::move(int index, uint64_t id, WaitState from, WaitState to, uint32_t* requester) noexcept {
  SpinGuard hold(lock_);
  WaitEntry& e = entry_[index];
  const bool same = e.id == id && e.state == from && (to != WaitState::kFree || e.waiters == 0);
  if (same) e.state = to == WaitState::kEnded && e.waiters == 0 ? WaitState::kFree : to;
  *requester = e.requester;
  while (used_ > 0 && entry_[used_ - 1].state == WaitState::kFree) --used_;
  return same;
}

void WaitTable::forget_held() noexcept {
  SpinGuard hold(lock_);
  for (int i = 0; i < used_; ++i) {
    WaitEntry& e = entry_[i];
    if (e.state == WaitState::kHeld) e.state = e.waiters == 0 ? WaitState::kFree : WaitState::kWanted;
  }
}

bool WaitKeeper::move(int index, uint64_t id, WaitState from, WaitState to) {
  uint32_t requester;
  if (!table_.move(index, id, from, to, &requester)) return false;
  if (from == WaitState::kWanted) tags_.wake(requester);
  return true;
}

// txn.tag-held-once.  The tag comes first, the registration second: a session that sees kHeld waits for a tag that will
// be released.
bool WaitKeeper::take(int index, uint64_t id) {
  if (!tags_.take(id)) return false;  // a former waiter still has it
  if (tags_.watch(id)) {
    if (!move(index, id, WaitState::kWanted, WaitState::kHeld)) tags_.let_go(id);
    return true;
  }
  tags_.let_go(id);
  (void)move(index, id, WaitState::kWanted, WaitState::kEnded);
  return true;
}

void WaitKeeper::recheck(int index, uint64_t id, bool waited) {
  if (!waited && move(index, id, WaitState::kHeld, WaitState::kFree)) return tags_.let_go(id);
  if (tags_.watch(id)) return;
  if (move(index, id, WaitState::kHeld, WaitState::kEnded)) tags_.let_go(id);
}

bool WaitKeeper::tend() {
  bool again = false;
  WaitEntry e;
  for (int i = 0; i < WaitTable::kEntries && table_.read(i, &e); ++i) {
    if (e.state == WaitState::kWanted) again |= !take(i, e.id);
    if (e.state == WaitState::kHeld) recheck(i, e.id, e.waiters > 0);
  }
  return again;
}

}  // namespace engine
