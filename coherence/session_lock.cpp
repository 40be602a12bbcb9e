// The local side of a Session: latches between the processes of one node, and waiting for the line's operation.
#include <algorithm>

#include "coherence/base/os.hpp"
#include "coherence/member/arena.hpp"
#include "coherence/session.hpp"

namespace coherence {
namespace {

// After so many refusals an operation pauses between rounds: whoever is asked is stopped, or waits for a dead node.
// Where the word is near he may just have lost the CPU, to us.  Over a network who comes too late each time, as the
// page moves on, must not be slowed down.
constexpr uint32_t kRoundsWithoutPause = 16, kRoundsOverNetwork = 1'000;
constexpr uint32_t kSliceMs = 10;  // the longest sleep without a look at interrupts and the fence
// I13: how long a writer that was refused once goes first; doubled with each refusal, up to 6.4 ms.
constexpr uint64_t kStandBackNs = 50'000;
constexpr int kDoublingsMax = 7;
constexpr uint64_t kStandBackSliceNs = 200'000;
constexpr uint64_t kGrantSliceNs = 5'000;
// The time between a refusal and the next request: C * RTT / refusals (SELCC, 5.1.2).  What is shorter than a sleep
// would be is spun.
constexpr uint64_t kResendRoundTrips = 4;
constexpr uint64_t kResendNsMax = 1'000'000, kResendSpinNs = 20'000;

// Whether a newcomer would have to wait, turns aside.
bool blocks(LocalWord w, bool exclusive) {
  if (w.exclusive()) return true;
  if (!exclusive && w.msi() != MsiState::kInvalid) return w.shared() && (w.raw & LocalWord::kExclusiveWaiters);
  return w.shared() != 0;
}

}  // namespace

Session::Session(Node& node, SessionId id, Interrupts* interrupts)
    : node_(node),
      id_(id),
      interrupts_(interrupts),
      counters_(node.session_slots_[id.value].counters),
      memory_(node.pool(), counters_),
      slot_(node.session_slots_[id.value]),
      inbox_peers_(node.arena_->inbox_peers),
      flight_(node, id) {
  VERIFY(id.value < node.sessions_max());
  slot_.in_use.store(1, std::memory_order_release);
  node_.arena_->sessions.fetch_add(1, std::memory_order_relaxed);
  node_.sessions_here_.fetch_add(1, std::memory_order_acq_rel);
}

Session::~Session() {
  node_.sessions_here_.fetch_sub(1, std::memory_order_acq_rel);
  node_.arena_->sessions.fetch_sub(1, std::memory_order_relaxed);
  slot_.in_use.store(0, std::memory_order_release);
}

Status Session::lock_slow(Line& line, PageId page, Want want, Intent intent, Look* how) {
  const bool exclusive = want == Want::kExclusive;
  if (how) *how = Look::kShared;
  for (;;) {
    if (line.page() != page) return Errc::kRestart;
    if (node_.fenced()) return Errc::kFenced;
    if (!node_.reach_peers()) return Errc::kNoMemory;
    if (line.stand_back_until_.load(std::memory_order_relaxed) != 0) GCL_TRY(stand_back(line));
    switch (try_enter(line, exclusive, true)) {
      case Entry::kEntered:
        if (line.page() == page) return {};
        return exclusive ? wrong_page_exclusive(line) : wrong_page_shared(line);
      case Entry::kFetch: {
        if (line.grant_in_flight()) {  // a share: who grants it is not done with the word
          end_latch(line, LatchEnd::kRelease, line.msi());
          serve_if_free(line);
          GCL_TRY(await_grant(line));
          break;
        }
        RequestSlot* slot = line.page() == page ? take_slot() : nullptr;
        if (slot) {
          // A reader's intent counts if it came true when he last had the page for it.
          const bool intends =
              intent == Intent::kWrite && !line.taken_to_write_.exchange(true, std::memory_order_relaxed);
          const bool own = exclusive || intends;
          start(line, *slot,
                own                   ? Event::Kind::kFetchExclusive
                : want == Want::kLook ? Event::Kind::kFetchCopy
                                      : Event::Kind::kFetchShared);
          Outcome outcome;
          GCL_TRY(await(line, *slot, &outcome));
          if (outcome == Outcome::kHeld && own == exclusive) return Errc::kHeld;
          if (outcome == Outcome::kHeld) {  // to read it is allowed, perhaps
            intent = Intent::kRead;
            break;
          }
          if (outcome == Outcome::kCopied) {
            VERIFY(how != nullptr);  // who did not ask for a copy gets none
            *how = Look::kCopied;
          }
          if (own && !exclusive) downgrade(line);
          return {};
        }
        end_latch(line, LatchEnd::kRelease, line.msi());
        serve_if_free(line);
        if (line.page() == page) GCL_TRY(pause(1));
        break;
      }
      case Entry::kBlocked:
        GCL_TRY(wait_local(line, exclusive));
        break;
    }
  }
}

Status Session::try_slow(Line& line, PageId page, bool exclusive) {
  if (line.page() != page) return Errc::kRestart;
  if (try_enter(line, exclusive, false) != Entry::kEntered) return Errc::kWouldBlock;
  if (line.page() == page) return {};
  return exclusive ? wrong_page_exclusive(line) : wrong_page_shared(line);
}

// kFetch: the latch is X, and ours for an operation.
Session::Entry Session::try_enter(Line& line, bool exclusive, bool may_fetch) noexcept {
  uint64_t raw = line.latch_.load(std::memory_order_relaxed);
  bool turn = false;
  for (;;) {
    LocalWord w{raw};
    bool hit = exclusive ? w.msi() == MsiState::kModified : w.msi() != MsiState::kInvalid;
    if (blocks(w, exclusive) || (!hit && !may_fetch)) return Entry::kBlocked;
    if (w.pending() && !turn) {
      if (!take_turn(line, exclusive)) return Entry::kBlocked;
      turn = true;
    }
    LocalWord next = hit && !exclusive ? w.with_shared() : w.with_exclusive();
    if (line.latch_.compare_exchange_weak(raw, next.raw,
                                          std::memory_order_acquire,  // pairs with the release of unlocks
                                          std::memory_order_relaxed)) {
      end_promise(line);
      return hit ? Entry::kEntered : Entry::kFetch;
    }
  }
}

// I14: R / P + W against gamma, without the division.  Turns are counted, but nobody is kept from a line that could not
// leave for him yet (I20).
bool Session::lease_over(const Line& line, uint64_t turns) const noexcept {
  if (line.grant_in_flight() || !node_.features_.has(Feature::kLease)) return false;
  const uint64_t threads = node_.arena_->sessions.load(std::memory_order_relaxed);
  const uint64_t reads = turns % Line::kWriterTurn, writes = turns / Line::kWriterTurn;
  return reads + writes * threads >= node_.lease_turns_ * threads;
}

// While a peer waits, so many local turns and no more.
bool Session::take_turn(Line& line, bool exclusive) noexcept {
  const uint64_t turn = exclusive ? Line::kWriterTurn : Line::kReaderTurn;
  return !lease_over(line, line.turns_.fetch_add(turn, std::memory_order_relaxed));
}

// A free line with somebody woken for his turn is his, though a peer wants it: he takes microseconds to come.
bool Session::promise_turn(Line& line) noexcept {
  line.promised_until_.store(monotonic_ns() + node_.come_ns_, std::memory_order_relaxed);
  if (wake_local(line) > 0) return true;
  end_promise(line);
  return false;
}

bool Session::promised(const Line& line) const noexcept {
  const uint64_t until = line.promised_until_.load(std::memory_order_relaxed);
  return until != 0 && !lease_over(line, line.turns_.load(std::memory_order_relaxed)) && monotonic_ns() < until;
}

// He came, or will not.
void Session::end_promise(Line& line) noexcept {
  if (line.promised_until_.load(std::memory_order_relaxed) != 0)
    line.promised_until_.store(0, std::memory_order_relaxed);
}

Status Session::wait_local(Line& line, bool exclusive) {
  uint32_t seen = line.wake_.load(std::memory_order_acquire);  // before the bit: a wake after it changes the word
  uint64_t bit = exclusive ? LocalWord::kExclusiveWaiters : LocalWord::kSharedWaiters;
  LocalWord w{line.latch_.fetch_or(bit, std::memory_order_acq_rel)};
  bool out_of_turns = w.pending() && lease_over(line, line.turns_.load(std::memory_order_relaxed));
  if (peers_asked()) help();
  if (blocks(w, exclusive) || out_of_turns) {
    counters_.add(Counter::kLocalWaits);
    sleep_on(line.wake_, seen, Wait::kPageLatch);
  }
  Status ok = pause(0);
  if (!ok) {  // the one who woke us may count on us to take the latch, and free it again
    end_promise(line);
    serve_if_free(line);
  }
  return ok;
}

void Session::make_way(Line& line) noexcept {
  const int refused = line.state_.serving.priority;
  if (line.state_.serving.kind == RequestKind::kPeerClaim) return;  // he has the word
  if (refused == 0 || !node_.features_.has(Feature::kStandBack)) return;
  const uint64_t ns = kStandBackNs << (refused - 1 < kDoublingsMax ? refused - 1 : kDoublingsMax);
  line.stand_back_until_.store(monotonic_ns() + ns, std::memory_order_relaxed);
}

// I13: until the word has a holder, whom we then ask, or the time is over.  Only a miss waits.
Status Session::stand_back(Line& line) {
  const uint64_t until = line.stand_back_until_.load(std::memory_order_relaxed);
  const PageId page = line.page();
  if (!page.valid()) return Errc::kRestart;
  bool waited = false;
  for (uint64_t now = monotonic_ns(); now < until; now = monotonic_ns()) {
    if (line.word().msi() != MsiState::kInvalid || line.word().exclusive()) return {};
    if (LatchWord{memory_.load(node_.pool_.latch_address(page))}.has_holder()) break;
    if (!waited) counters_.add(Counter::kStoodBack);
    waited = true;
    if (peers_asked()) help();
    nap(std::min(until - now, kStandBackSliceNs));
    GCL_TRY(pause(0));
  }
  uint64_t over = until;  // unless somebody makes way again
  line.stand_back_until_.compare_exchange_strong(over, 0, std::memory_order_relaxed);
  return {};
}

// I20: until the giver's batch is complete, some microseconds.
Status Session::await_grant(Line& line) {
  while (line.grant_in_flight()) {
    if (peers_asked()) help();
    nap(kGrantSliceNs);
    GCL_TRY(pause(0));
  }
  return {};
}

void Session::sleep_on(const std::atomic<uint32_t>& word, uint32_t seen, Wait what) noexcept {
  if (interrupts_) interrupts_->waits(what);
  futex_wait(word, seen, kSliceMs);
  if (interrupts_) interrupts_->waits(Wait::kNone);
}

Status Session::pause(uint32_t ms) {
  if (ms > 0) {
    std::atomic<uint32_t> nothing{0};
    futex_wait(nothing, 0, ms);
  }
  if (node_.fenced()) return Errc::kFenced;
  if (interrupts_ && interrupts_->pending()) return Errc::kInterrupted;
  return {};
}

RequestSlot* Session::take_slot() noexcept {
  for (RequestSlot& s : slot_.slot)
    if (s.state.load(std::memory_order_acquire) == SlotState::kFree) return &s;  // pairs with finish()
  return nullptr;
}

// Waits for the operation that start() began; afterwards the latch is ours (I3), unless we leave it to the worker (C5).
Status Session::await(Line& line, RequestSlot& slot, Outcome* outcome) {
  for (uint32_t rounds = 0;;) {
    uint32_t seen = slot.bell.load(std::memory_order_acquire);
    if (slot.state.load(std::memory_order_acquire) == SlotState::kFinished) break;  // pairs with finish()
    const Replies moved = collect(line);
    const bool tired =
        moved == Replies::kRefusals && ++rounds > (word_is_near_ ? kRoundsWithoutPause : kRoundsOverNetwork);
    Status ok = pause(tired && !line.word().pending() ? 1 : 0);
    if (ok && moved == Replies::kTooEarly) {
      wait_to_resend(slot);
      continue;
    }
    if (ok && moved != Replies::kNone) continue;
    if (ok && peers_asked()) {
      help();
      continue;
    }
    if (!ok) {
      SlotState waiting = SlotState::kWaiting;
      if (!slot.state.compare_exchange_strong(waiting, SlotState::kAbandoned, std::memory_order_seq_cst)) break;
      counters_.add(Counter::kAbandoned);
      uint32_t index = uint32_t(id_.value) * kSlotsPerSession + uint32_t(&slot - slot_.slot);
      node_.arena_->abandoned[index / 64].fetch_or(uint64_t{1} << index % 64, std::memory_order_seq_cst);
      node_.arena_->abandoned_any.store(1, std::memory_order_seq_cst);
      node_.ring();
      return ok;
    }
    slot.sleeping.store(1, std::memory_order_seq_cst);  // pairs with the load in reply(): one sees the other (S5)
    if (slot.bell.load(std::memory_order_seq_cst) == seen) {
      counters_.add(Counter::kPeerWaits);
      sleep_on(slot.bell, seen, Wait::kPeer);
    }
    slot.sleeping.store(0, std::memory_order_relaxed);
  }
  *outcome = slot.outcome.load(std::memory_order_relaxed);
  if (*outcome == Outcome::kHeld)
    holder_ = {NodeId{slot.held_at.load(std::memory_order_relaxed)}, slot.held.load(std::memory_order_relaxed)};
  slot.state.store(SlotState::kFree, std::memory_order_relaxed);
  return {};
}

// Whether a round that was refused must wait before the next: if it was refused for now, or again and again by whoever
// was asked (one of them waits for a dead node).  Not if somebody waits for the round to end.  REQUIRES: the line's
// spinlock.
bool Session::too_early(const Line& line, RequestSlot& slot, bool not_now) noexcept {
  if (line.state_.parked_count > 0) return false;
  // Nobody naps over an abandoned one: the worker looks when it is rung, and would come late.  But it does not spin.
  const bool abandoned = slot.state.load(std::memory_order_acquire) == SlotState::kAbandoned;
  if (!abandoned && !(not_now && node_.features_.has(Feature::kResendInterval))) return false;
  const uint64_t now = monotonic_ns();
  uint64_t at = slot.resend_at.load(std::memory_order_relaxed);
  if (at == 0) {
    const uint32_t refusals = slot.refusals.load(std::memory_order_relaxed) + 1u;
    slot.refusals.store(refusals, std::memory_order_relaxed);
    if (abandoned && refusals <= kRoundsWithoutPause) return false;
    at = now + (abandoned ? kResendNsMax : std::min(kResendRoundTrips * round_trip_ns_ / refusals, kResendNsMax));
    counters_.add(Counter::kResendWaits);
  }
  const bool early = now < at;
  slot.resend_at.store(early ? at : 0, std::memory_order_relaxed);
  return early;
}

void Session::wait_to_resend(const RequestSlot& slot) noexcept {
  if (peers_asked()) help();
  const uint64_t at = slot.resend_at.load(std::memory_order_relaxed), now = monotonic_ns();
  if (at > now + kResendSpinNs) nap(at - now);
}

// A batch took so long; what a process that lost the CPU sees counts little.
void Session::note_round_trip(uint64_t ns) noexcept {
  round_trip_ns_ = round_trip_ns_ - round_trip_ns_ / 8 + std::min(ns, 4 * round_trip_ns_) / 8 + 1;
}

void Session::unlocked_slow(Line& line, LocalWord after) noexcept {
  if (!after.free()) return;  // the last one out sees to it
  bool turns_left = !lease_over(line, line.turns_.load(std::memory_order_relaxed));
  if (after.has_waiters() && turns_left && promise_turn(line)) return;  // one of them frees the latch again
  if (after.pending()) serve_parked(line, false);
  if (line.word().has_waiters()) wake_local(line);
}

int Session::wake_local(Line& line) noexcept {
  line.latch_.fetch_and(~LocalWord::kWaiters, std::memory_order_acq_rel);
  line.wake_.fetch_add(1, std::memory_order_acq_rel);
  return futex_wake(line.wake_, 1 << 30);
}

bool Session::try_latch(Line& line) noexcept {
  uint64_t raw = line.latch_.load(std::memory_order_relaxed);
  while (LocalWord{raw}.free())
    if (line.latch_.compare_exchange_weak(raw, LocalWord{raw}.with_exclusive().raw, std::memory_order_acquire,
                                          std::memory_order_relaxed))
      return true;
  return false;
}

// X ends, or changes hands, and the word shows the MSI state.
void Session::end_latch(Line& line, LatchEnd end, MsiState msi) noexcept {
  uint64_t raw = line.latch_.load(std::memory_order_relaxed);
  LocalWord next;
  do {
    LocalWord w = LocalWord{raw}.with_msi(msi);
    next = end == LatchEnd::kRelease ? w.without_exclusive() : end == LatchEnd::kToShared ? w.exclusive_to_shared() : w;
  } while (!line.latch_.compare_exchange_weak(raw, next.raw, std::memory_order_acq_rel, std::memory_order_relaxed));
  if (end != LatchEnd::kToCaller && next.has_waiters()) wake_local(line);
}

// Whoever leaves a line free with a request parked serves it.
void Session::serve_if_free(Line& line) noexcept {
  LocalWord w = line.word();
  if (w.pending() && w.free()) serve_parked(line, false);
}

void Session::downgrade(Line& line) noexcept { end_latch(line, LatchEnd::kToShared, line.msi()); }

Status Session::try_upgrade(Line& line, PageId page, uint64_t token) {
  uint64_t raw = line.latch_.load(std::memory_order_relaxed);
  do {
    LocalWord w{raw};
    if (w.version() != uint32_t(token) || line.page() != page) return Errc::kRestart;
    if (!w.admits_exclusive()) return Errc::kWouldBlock;
  } while (!line.latch_.compare_exchange_weak(raw, LocalWord{raw}.with_exclusive().raw, std::memory_order_acquire,
                                              std::memory_order_relaxed));
  return {};
}

void Session::end_look(Line& line, Look how) noexcept {
  if (how == Look::kShared) return unlock_shared(line);
  unlock_exclusive(line);
}

void Session::hold(Line& line, bool exclusive, uint64_t by) {
  SpinGuard guard(line.spin_, node_.fence_);
  auto& count = exclusive ? line.state_.holds_exclusive : line.state_.holds_shared;
  VERIFY(line.state_.msi == MsiState::kModified || (!exclusive && line.state_.msi == MsiState::kShared));
  VERIFY(++count != 0 && by >> kHolderBits == 0);
  line.state_.held_by = by;
}

void Session::drop_hold(Line& line, bool exclusive, uint64_t by) {
  {
    SpinGuard guard(line.spin_, node_.fence_);
    auto& count = exclusive ? line.state_.holds_exclusive : line.state_.holds_shared;
    VERIFY(count-- != 0);
    if (line.state_.held_by == by) line.state_.held_by = 0;
  }
  serve_if_free(line);
}

}  // namespace coherence
