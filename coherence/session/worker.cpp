// The worker's part of a MessageServer: all that waits, again and again.
#include <algorithm>
#include <bit>
#include <utility>

#include "coherence/base/os.hpp"
#include "coherence/session/message_server.hpp"

namespace coherence {
namespace {

constexpr uint32_t kWaitingSleepMs = 2;  // while requests are parked: the log may be flushed any moment
constexpr uint64_t kWatchNs = 250'000'000;

}  // namespace

// A batch under way keeps no request waiting: they are looked at in turn, as long as there is either
// (coherence.never-waits-in-post).
Status MessageServer::serve_for(uint32_t ms) {
  uint64_t end = monotonic_ns() + uint64_t(ms) * 1000000;
  ArenaHeader& arena = *session_.node.arena;
  for (bool began = true;; began = false) {
    const bool watched = watch();
    if (session_.node.fenced()) return Errc::kFenced;
    uint32_t seen = arena.wakeup.load(std::memory_order_acquire);
    bool busy = drain_inbox();
    busy |= reap();
    bool waiting = drain_abandoned() | drain_parked(true) | look_after_dead();  // all look again at every round
    uint64_t now = monotonic_ns();
    if (const uint64_t view = session_.node.members->view(); std::exchange(told_view_, view) != view) return {};
    if (watched && !began) return {};  // else the caller's round and this one would each end a sleep
    if (now >= end || (session_.interrupts && session_.interrupts->pending())) return {};
    if (busy || poll()) continue;
    const uint64_t until = std::min(end, std::max(now, watched_ns_ + kWatchNs));
    uint32_t sleep = uint32_t((until - now) / 1000000) + 1;
    if (waiting && sleep > kWaitingSleepMs) sleep = kWaitingSleepMs;
    arena.sleeping.store(1, std::memory_order_seq_cst);  // pairs with ring()
    bool moved = false;
    if (waiting) drain_abandoned(&moved);  // a reply rings only a sleeper, and may have come just before
    if (!moved && nothing_to_do(waiting)) futex_wait(arena.wakeup, seen, sleep);
    arena.sleeping.store(0, std::memory_order_relaxed);
  }
}

void MessageServer::attend() noexcept {
  (void)watch();
  drain_inbox();
  (void)drain_abandoned();
  (void)drain_parked(true);
  (void)look_after_dead();
  finish();
}

// What is parked or abandoned already waits for something else: it does not keep the worker awake.
bool MessageServer::nothing_to_do(bool waiting) noexcept {
  ArenaHeader& arena = *session_.node.arena;
  if (arena.inbox_peers.load(std::memory_order_seq_cst) != 0) return false;
  if (session_.node.members->view() != told_view_) return false;  // wakeup.workers-look
  return waiting || (arena.parked_any.load(std::memory_order_seq_cst) == 0 &&
                     arena.abandoned_any.load(std::memory_order_seq_cst) == 0);
}

// Looks after every line where requests are parked; whether some still are.
bool MessageServer::drain_parked(bool worker) noexcept {
  NodeParts& node = session_.node;
  if (node.arena->parked_any.exchange(0, std::memory_order_seq_cst) == 0) return false;
  bool remain = false;
  for (uint32_t w = 0; w * 64 < node.frames; w++) {
    if (node.parked[w].load(std::memory_order_relaxed) == 0) continue;
    for (uint64_t bits = node.parked[w].exchange(0, std::memory_order_acq_rel); bits; bits &= bits - 1) {
      Line& line = node.line(w * 64 + uint32_t(std::countr_zero(bits)));
      if (!latches_.promised(line)) serve_parked(line, worker);
      bool still;
      {
        SpinGuard guard(fields(line).spin, node.fence);
        still = fields(line).state.parked_count > 0;
      }
      if (still) leave_to_worker(line, false);
      remain |= still;
    }
  }
  return remain;
}

// Goes on with operations whose callers left; whether some still wait, and whether there was a reply to any.
bool MessageServer::drain_abandoned(bool* moved) noexcept {
  NodeParts& node = session_.node;
  ArenaHeader& arena = *node.arena;
  if (arena.abandoned_any.exchange(0, std::memory_order_seq_cst) == 0) return false;
  bool remain = false;
  for (uint32_t w = 0; w < uint32_t(kInboxWords); w++) {
    if (arena.abandoned[w].load(std::memory_order_relaxed) == 0) continue;
    for (uint64_t bits = arena.abandoned[w].exchange(0, std::memory_order_acq_rel); bits; bits &= bits - 1) {
      uint32_t i = w * 64 + uint32_t(std::countr_zero(bits));
      RequestSlot& s = node.slot(uint16_t(i));
      if (s.state.load(std::memory_order_acquire) != SlotState::kAbandoned) continue;
      Line& line = node.line(s.line.load(std::memory_order_relaxed));
      for (;;) {
        const auto [replies, left] = driver_.collect(line);
        after(line, left);
        if (replies < ProtocolDriver::Replies::kRefusals || node.fenced()) break;
        if (moved) *moved = true;
      }
      if (s.state.load(std::memory_order_acquire) != SlotState::kAbandoned) continue;
      arena.abandoned[w].fetch_or(uint64_t{1} << i % 64, std::memory_order_acq_rel);
      remain = true;
    }
  }
  if (remain) arena.abandoned_any.store(1, std::memory_order_seq_cst);
  return remain;
}

bool MessageServer::watch() noexcept {
  uint64_t now = monotonic_ns();
  if (now - watched_ns_ < kWatchNs) return false;
  watched_ns_ = now;
  if (session_.node.members->watch(now)) session_.node.wakeup->ring_workers();
  (void)session_.messenger.reach_all();  // a peer that cannot be mapped is met again when it matters
  return true;
}

}  // namespace coherence
