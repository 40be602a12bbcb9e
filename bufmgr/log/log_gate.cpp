#include "bufmgr/log/log_gate.hpp"

#include <algorithm>

#include "bufmgr/base/wakeup.hpp"

namespace bufmgr {

using coherence::Lsn;
using coherence::SessionId;

void LogGate::format(Announcement* announcements, uint32_t count) noexcept {
  for (uint32_t i = 0; i < count; ++i) announcements[i].floor.store(kIdle, std::memory_order_relaxed);
}

void LogGate::enlist(SessionId id) noexcept {
  uint32_t seen = shared_->sessions.load(std::memory_order_relaxed);
  // seq_cst, like the first announcement that follows: a reader that does not see this count has nothing to wait for.
  while (seen <= id.value && !shared_->sessions.compare_exchange_weak(seen, id.value + 1u)) {
  }
}

// All orders are seq_cst: a reader that sees a later record of another session flushed must see this announcement.
// That record took its ring place after this session's, and this session after it announced; the reader loads the
// flushed position first.
void LogGate::announce(SessionId id) noexcept {
  Announcement& mine = announcements_[id.value];
  mine.head.store(ring_->head(), std::memory_order_seq_cst);
  mine.floor.store(shared_->last_lsn.load(std::memory_order_seq_cst), std::memory_order_seq_cst);
}

void LogGate::appended(Lsn lsn) noexcept {
  uint64_t last = shared_->last_lsn.load(std::memory_order_relaxed);
  while (last < lsn.value && !shared_->last_lsn.compare_exchange_weak(last, lsn.value)) {
  }
}

void LogGate::withdraw(SessionId id) noexcept {
  announcements_[id.value].floor.store(kIdle, std::memory_order_seq_cst);  // pairs with ring_complete(), flushed()
  if (shared_->held.load(std::memory_order_seq_cst) == 0) return;
  const uint32_t held = shared_->held.exchange(0, std::memory_order_seq_cst);
  if (held & kWorker) node_->ring();
  if ((held & kCommits) == 0) return;
  shared_->let_go.fetch_add(1, std::memory_order_release);  // pairs with wait_complete()
  signal_wakeup(shared_->let_go);
}

uint64_t LogGate::ring_complete() const noexcept {
  uint64_t complete = ring_->head();
  const uint32_t sessions = shared_->sessions.load();
  for (uint32_t i = 0; i < sessions; ++i) {
    // The head is stored before the floor: a reader that sees the floor sees that head, or a later one of the session.
    if (announcements_[i].floor.load(std::memory_order_seq_cst) == kIdle) continue;
    complete = std::min(complete, announcements_[i].head.load(std::memory_order_seq_cst));
  }
  return complete;
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

uint64_t LogGate::lowest_floor() const noexcept {
  uint64_t lowest = kIdle;
  const uint32_t sessions = shared_->sessions.load();
  for (uint32_t i = 0; i < sessions; ++i) lowest = std::min(lowest, announcements_[i].floor.load());
  return lowest;
}

Lsn LogGate::flushed() noexcept {
  LogSink* const log = sink();
  const uint64_t durable = log != nullptr ? log->flushed().value : 0;
  uint64_t lowest = lowest_floor();
  if (lowest < durable) {
    // A session that withdraws after this sees it and rings; one that withdrew before does not count any more.
    shared_->held.fetch_or(kWorker, std::memory_order_seq_cst);
    lowest = lowest_floor();
  }
  return {std::min(durable, lowest)};
}

void LogGate::request_flush(Lsn lsn) noexcept {
  if (LogSink* const log = sink()) log->request_flush(lsn);
}

}  // namespace bufmgr
