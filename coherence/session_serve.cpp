// The worker's side of a Session, and a node's orderly end.
#include <cerrno>
#include <cstring>
#include <optional>

#include "coherence/base/os.hpp"
#include "coherence/eviction_window.hpp"
#include "coherence/member/arena.hpp"
#include "coherence/pool/fence.hpp"
#include "coherence/pool/node_table.hpp"
#include "coherence/pool/pool_lock.hpp"
#include "coherence/session.hpp"

namespace coherence {
namespace {

constexpr uint32_t kSleepMsMax = 100;
constexpr uint32_t kWaitingSleepMs = 2;  // while requests are parked: the log may be flushed any moment
constexpr uint64_t kWatchNs = 250'000'000;
constexpr uint64_t kLeaveNs = 20'000'000'000;
constexpr uint32_t kLinesAtOnce = 32;  // are given back between two looks at what peers ask

}  // namespace

Status Session::serve(uint32_t ms) {
  uint64_t end = monotonic_ns() + uint64_t(ms) * 1000000;
  ArenaHeader& arena = *node_.arena_;
  for (;;) {
    watch();
    if (node_.fenced()) return Errc::kFenced;
    uint32_t seen = arena.bell.load(std::memory_order_acquire);
    bool busy = drain_inbox();
    bool waiting = drain_abandoned() | drain_parked(true);  // both look again at every round
    uint64_t now = monotonic_ns();
    if (now >= end || (interrupts_ && interrupts_->pending())) return {};
    if (busy) continue;
    uint32_t left = uint32_t((end - now) / 1000000) + 1;
    uint32_t sleep = left < kSleepMsMax ? left : kSleepMsMax;
    if (waiting && sleep > kWaitingSleepMs) sleep = kWaitingSleepMs;
    arena.sleeping.store(1, std::memory_order_seq_cst);  // pairs with ring()
    bool moved = false;
    if (waiting) drain_abandoned(&moved);  // a reply to one rings who sleeps, and may have come just before
    if (!moved && nothing_to_do(waiting)) futex_wait(arena.bell, seen, sleep);
    arena.sleeping.store(0, std::memory_order_relaxed);
  }
}

// What is parked or abandoned already waits for something else: it does not keep us awake.
bool Session::nothing_to_do(bool waiting) noexcept {
  ArenaHeader& arena = *node_.arena_;
  if (arena.inbox_peers.load(std::memory_order_seq_cst) != 0) return false;
  return waiting || (arena.parked_any.load(std::memory_order_seq_cst) == 0 &&
                     arena.abandoned_any.load(std::memory_order_seq_cst) == 0);
}

bool Session::drain_inbox() noexcept {
  ArenaHeader& arena = *node_.arena_;
  NodeSet peers{arena.inbox_peers.exchange(0, std::memory_order_seq_cst)};
  bool any = !peers.empty();
  for (; !peers.empty(); peers = peers.without(peers.first())) {
    Inbox& inbox = arena.inbox[peers.first().value];
    for (uint64_t words = inbox.words_set.exchange(0, std::memory_order_seq_cst); words; words &= words - 1) {
      int w = std::countr_zero(words);
      for (uint64_t bits = inbox.bits[w].exchange(0, std::memory_order_seq_cst); bits; bits &= bits - 1)
        receive(peers.first(), uint16_t(w * 64 + std::countr_zero(bits)));
    }
  }
  return any;
}

// Answering may free latches, which comes here again.
void Session::help() noexcept {
  if (helping_ || !node_.directory_ || !node_.reach_peers()) return;
  helping_ = true;
  drain_inbox();
  helping_ = false;
}

// Looks after every line where requests are parked; whether some still are.
bool Session::drain_parked(bool worker) noexcept {
  if (node_.arena_->parked_any.exchange(0, std::memory_order_seq_cst) == 0) return false;
  bool remain = false;
  for (uint32_t w = 0; w * 64 < node_.frames(); w++) {
    if (node_.parked_[w].load(std::memory_order_relaxed) == 0) continue;
    for (uint64_t bits = node_.parked_[w].exchange(0, std::memory_order_acq_rel); bits; bits &= bits - 1) {
      Line& line = node_.line(w * 64 + uint32_t(std::countr_zero(bits)));
      if (!promised(line)) serve_parked(line, worker);
      bool still;
      {
        SpinGuard guard(line.spin_, node_.fence_);
        still = line.state_.parked_count > 0;
      }
      if (still) leave_to_worker(line, false);
      remain |= still;
    }
  }
  return remain;
}

void Session::serve_flushed() noexcept {
  if (node_.arena_->parked_any.load(std::memory_order_relaxed) != 0) drain_parked(false);
}

// Goes on with operations whose callers left; whether some still wait, and whether there was a reply to any.
bool Session::drain_abandoned(bool* moved) noexcept {
  ArenaHeader& arena = *node_.arena_;
  if (arena.abandoned_any.exchange(0, std::memory_order_seq_cst) == 0) return false;
  bool remain = false;
  for (uint32_t w = 0; w < uint32_t(kInboxWords); w++) {
    if (arena.abandoned[w].load(std::memory_order_relaxed) == 0) continue;
    for (uint64_t bits = arena.abandoned[w].exchange(0, std::memory_order_acq_rel); bits; bits &= bits - 1) {
      uint32_t i = w * 64 + uint32_t(std::countr_zero(bits));
      RequestSlot& s = node_.session_slots_[i / kSlotsPerSession].slot[i % kSlotsPerSession];
      if (s.state.load(std::memory_order_acquire) != SlotState::kAbandoned) continue;
      Line& line = node_.line(s.line.load(std::memory_order_relaxed));
      while (collect(line) >= Replies::kRefusals && !node_.fenced())
        if (moved) *moved = true;
      if (s.state.load(std::memory_order_acquire) != SlotState::kAbandoned) continue;
      arena.abandoned[w].fetch_or(uint64_t{1} << i % 64, std::memory_order_acq_rel);
      remain = true;
    }
  }
  if (remain) arena.abandoned_any.store(1, std::memory_order_seq_cst);
  return remain;
}

void Session::watch() noexcept {
  uint64_t now = monotonic_ns();
  if (now - watched_ns_ < kWatchNs) return;
  watched_ns_ = now;
  node_.pool_.table().node[node_.id_.value].heartbeat_ns.store(now, std::memory_order_relaxed);
  fence_if_somebody_died(node_.pool_, node_.id_);
  (void)node_.reach_peers();  // N7; who cannot be mapped is met again when it matters
}

void Session::attend() noexcept {
  watch();
  drain_inbox();
  (void)drain_abandoned();
  (void)drain_parked(true);
}

// N6.  Returns how many pages are busy.
uint32_t Node::give_back(Session& session) {
  struct Taker final : FrameTaker {
    explicit Taker(Session& s) : session(s) {}
    void take(Line& line, PageId) noexcept override { session.finish_evict(line); }
    Session& session;
  } taker(session);
  uint32_t busy = 0;
  for (uint32_t next = 0; next < frames_;) {
    Line* lines[kLinesAtOnce];
    PageId pages[kLinesAtOnce];
    uint32_t count = 0;
    for (; next < frames_ && count < kLinesAtOnce; next++) {
      pages[count] = lines_[next].page();
      lines[count] = &lines_[next];
      count += pages[count].valid();
    }
    {
      EvictionWindow window(session, taker);
      busy += count - uint32_t(window.add(lines, pages, int(count)));
    }
    session.attend();
  }
  return busy;
}

Status Node::leave(Session& session, bool* last, Problem* problem) {
  pool_.table().node[id_.value].state.store(Membership::kLeaving, std::memory_order_release);
  uint64_t deadline = monotonic_ns() + kLeaveNs;
  for (;;) {
    uint32_t busy = give_back(session), slots = 0;
    for (uint32_t i = 0; i < sessions_max_ * kSlotsPerSession; i++) {
      SlotState s = session_slots_[i / kSlotsPerSession].slot[i % kSlotsPerSession].state.load();
      slots += s != SlotState::kFree;
    }
    if (!busy && !slots) break;
    Status ok = session.serve(busy ? 1 : 10);
    if (!ok) return problem->set(ok.error(), "%s", fence_reason());
    if (monotonic_ns() > deadline)
      return problem->set(Errc::kBusy, "%u pages are still latched, %u operations still wait", busy, slots);
  }
  std::optional<PoolLock> lock;  // somebody may make his arena under it, for long
  while (!lock.emplace(pool_.path(), PoolLock::kTry).held()) {
    if (errno != EWOULDBLOCK)
      return problem->set(Errc::kSystem, "cannot lock %s.lock: %s", pool_.path(), strerror(errno));
    Status ok = session.serve(1);
    if (!ok) return problem->set(ok.error(), "%s", fence_reason());
    if (monotonic_ns() > deadline) return problem->set(Errc::kBusy, "%s.lock is not free", pool_.path());
  }
  session.drain_inbox();
  Status withdrawn = withdraw(last, problem);
  lock.reset();
  if (left_) give_memory_back(arena_fd_, arena_->layout.shared_until(), arena_->layout.private_at);
  return withdrawn;
}

}  // namespace coherence
