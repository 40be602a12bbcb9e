#include "bufmgr/log/log_gate.hpp"

#include <algorithm>
#include <bit>

#include "bufmgr/base/wakeup.hpp"

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
  mine.head.store(ring_->head(), std::memory_order_relaxed);  // both: published by the mark
  mine.floor.store(shared_->last_lsn.load(std::memory_order_seq_cst), std::memory_order_relaxed);
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
uint64_t LogGate::lowest(std::atomic<uint64_t> Announcement::*what) const noexcept {
  uint64_t lowest = kNone;
  const uint32_t sessions = shared_->sessions.load(std::memory_order_seq_cst);
  for (uint32_t first = 0; first < sessions; first += kOfOneWord) {
    uint64_t marks = shared_->at_work[first / kOfOneWord].word.load(std::memory_order_seq_cst);
    for (; marks != 0; marks &= marks - 1) {
      const Announcement& one = announcements_[first + uint32_t(std::countr_zero(marks))];
      lowest = std::min(lowest, (one.*what).load(std::memory_order_relaxed));
    }
  }
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

Lsn LogGate::flushed() noexcept {
  LogSink* const log = sink();
  const uint64_t durable = log != nullptr ? log->flushed().value : 0;
  uint64_t floor = lowest(&Announcement::floor);
  if (floor < durable) {
    // A session that withdraws after this sees it and rings; one that withdrew before does not count any more.
    shared_->held.fetch_or(kWorker, std::memory_order_seq_cst);
    floor = lowest(&Announcement::floor);
  }
  return {std::min(durable, floor)};
}

void LogGate::request_flush(Lsn lsn) noexcept {
  if (LogSink* const log = sink()) log->request_flush(lsn);
}

}  // namespace bufmgr
