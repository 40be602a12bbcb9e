#include "bufmgr/log/log_gate.hpp"

#include <algorithm>
#include <bit>

#include "bufmgr/base/wakeup.hpp"
#include "bufmgr/log/redo_push.hpp"

namespace bufmgr {

using coherence::Lsn;
using coherence::SessionId;

void LogGate::enlist(SessionId id) noexcept {
  uint32_t seen = shared_->sessions.load(std::memory_order_relaxed);
  // seq_cst, like the first announcement that follows: a reader that does not see this count has nothing to wait for.
  while (seen <= id.value && !shared_->sessions.compare_exchange_weak(seen, id.value + 1u)) {
  }
}

// The mark's order is seq_cst: a reader that sees a later record of another session flushed must see this mark.  That
// record took its ring place after this session's, and this session after it marked itself; the reader loads the
// flushed position first.
void LogGate::announce(SessionId id) noexcept {
  Announcement& mine = announcements_[id.value];
  // The floor is loaded first: the records up to there have their places before the head that is loaded then.
  const uint64_t floor = shared_->last_lsn.load(std::memory_order_seq_cst);
  // Both pair with lowest() and begin_push(): a reader that finds an earlier mark and what is said here relies on
  // the records that this session has written before.
  mine.head.store(ring_->head(), std::memory_order_release);
  mine.floor.store(floor, std::memory_order_release);
  shared_->at_work[id.value / kOfOneWord].word.fetch_or(mark_of(id), std::memory_order_seq_cst);  // pairs with lowest()
}

void LogGate::appended(Lsn lsn) noexcept {
  uint64_t last = shared_->last_lsn.load(std::memory_order_relaxed);
  while (last < lsn.value && !shared_->last_lsn.compare_exchange_weak(last, lsn.value)) {
  }
}

void LogGate::withdraw(SessionId id) noexcept {
  shared_->at_work[id.value / kOfOneWord].word.fetch_and(~mark_of(id), std::memory_order_seq_cst);  // as announce()
  if (shared_->held.load(std::memory_order_seq_cst) == 0) return;
  const uint32_t held = shared_->held.exchange(0, std::memory_order_seq_cst);
  if (held & kWorker) node_->ring();
  if ((held & kCommits) == 0) return;
  shared_->let_go.fetch_add(1, std::memory_order_release);  // pairs with wait_complete()
  signal_wakeup(shared_->let_go);
}

// A session that is found at work may have withdrawn since, and announced itself anew: what it says then is higher, and
// what it said before is done.
template <class See>
void LogGate::for_each_at_work(const See& see) const noexcept {
  const uint32_t sessions = shared_->sessions.load(std::memory_order_seq_cst);
  for (uint32_t first = 0; first < sessions; first += kOfOneWord) {
    uint64_t marks = shared_->at_work[first / kOfOneWord].word.load(std::memory_order_seq_cst);
    for (; marks != 0; marks &= marks - 1) see(announcements_[first + uint32_t(std::countr_zero(marks))]);
  }
}

uint64_t LogGate::lowest(std::atomic<uint64_t> Announcement::*what) const noexcept {
  uint64_t lowest = kNone;
  for_each_at_work(
      [&](const Announcement& one) { lowest = std::min(lowest, (one.*what).load(std::memory_order_acquire)); });
  return lowest;
}

uint64_t LogGate::ring_complete() const noexcept {
  const uint64_t head = ring_->head();  // first: a record from there on is not asked for
  return std::min(head, lowest(&Announcement::head));
}

// The order is flushed()'s: a session that withdraws after the second look finds that there is one to be woken.
bool LogGate::wait_complete(uint64_t position, uint32_t ms) noexcept {
  const uint32_t seen = shared_->let_go.load(std::memory_order_acquire);
  if (ring_complete() >= position) return true;
  shared_->held.fetch_or(kCommits, std::memory_order_seq_cst);
  if (ring_complete() >= position) return true;
  wait_for_wakeup(shared_->let_go, seen, ms);
  return false;
}

// Of the records that are in the log up to `lsn`, each has its place below `upto`, and its lines know of it:
// - it took its place before the log had it, so before the highest position was loaded, and the head after that;
// - a session that is at work on it has a lower floor; and the head that one which is at work on another has announced
//   was loaded after its floor.  A floor that is a later announcement's has that one's head beside it, or a higher one.
LogGate::Push LogGate::begin_push(SessionId id, uint64_t known) noexcept {
  announcements_[id.value].pushing.store(ring_->pushed(), std::memory_order_seq_cst);  // pairs with kept_from()
  Push push{.from = ring_->pushed(), .upto = 0, .lsn = shared_->last_lsn.load(std::memory_order_seq_cst)};
  push.upto = ring_->head();
  for_each_at_work([&](const Announcement& one) {
    push.lsn = std::min(push.lsn, one.floor.load(std::memory_order_acquire));  // both: pair with announce()
    push.upto = std::min(push.upto, one.head.load(std::memory_order_acquire));
  });
  push.upto = std::max(push.upto, known);
  return push;
}

void LogGate::arrived(const Push& push) noexcept {
  ring_->pushed_to(push.upto);
  uint64_t seen = shared_->pushed_lsn.load(std::memory_order_relaxed);
  while (seen < push.lsn && !shared_->pushed_lsn.compare_exchange_weak(seen, push.lsn, std::memory_order_release)) {
  }
}

void LogGate::end_push(SessionId id) noexcept { announcements_[id.value].pushing.store(0, std::memory_order_release); }

uint64_t LogGate::kept_from() const noexcept {
  uint64_t kept = ring_->pushed();  // first: a session that says nothing yet begins there, or later
  const uint32_t sessions = shared_->sessions.load(std::memory_order_seq_cst);
  for (uint32_t i = 0; i < sessions; ++i)
    if (const uint64_t from = announcements_[i].pushing.load(std::memory_order_seq_cst); from != 0)
      kept = std::min(kept, from);
  return kept;
}

Lsn LogGate::flushed() noexcept {
  LogSink* const log = sink();
  const uint64_t durable = log != nullptr ? log->flushed().value : 0;
  uint64_t floor = lowest(&Announcement::floor);
  if (floor < durable) {
    // A session that withdraws after this sees it and rings; one that withdrew before does not count any more.
    shared_->held.fetch_or(kWorker, std::memory_order_seq_cst);
    floor = lowest(&Announcement::floor);
  }
  return {std::min({durable, floor, shared_->pushed_lsn.load(std::memory_order_acquire)})};  // pairs with arrived()
}

// A session that waits for a flush asks again behind it.
void LogGate::request_flush(Lsn lsn) noexcept {
  LogSink* const log = sink();
  if (log != nullptr) log->request_flush(lsn);
  if (shared_->pushed_lsn.load(std::memory_order_acquire) >= lsn.value) return;
  if (log != nullptr && log->flushed() < lsn) return;
  shared_->push_wanted.store(1, std::memory_order_seq_cst);  // pairs with BufferPool::wait_for_provider_work()
  provider_.call();
}

void LogGate::push(SessionId id, coherence::Memory& memory) noexcept {
  // A session that pushed a record before the log had it has said nothing of its position there.
  if (ring_->pushed() < ring_->head() ||
      shared_->pushed_lsn.load(std::memory_order_relaxed) < shared_->last_lsn.load(std::memory_order_relaxed))
    (void)RedoPush(*this, *ring_, id, 0).run(memory);
}

}  // namespace bufmgr
