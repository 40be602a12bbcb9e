#include "coherence/session/latch_table.hpp"

#include "coherence/base/os.hpp"

namespace coherence {

Status LatchTable::try_upgrade(Line& line, PageId page, uint64_t token) noexcept {
  auto& latch = fields(line).latch;
  uint64_t raw = latch.load(std::memory_order_relaxed);
  do {
    LocalWord w{raw};
    if (w.version() != uint32_t(token) || line.page() != page) return Errc::kRestart;
    if (!w.admits_exclusive()) return Errc::kWouldBlock;
  } while (!latch.compare_exchange_weak(raw, LocalWord{raw}.with_exclusive().raw, std::memory_order_acquire,
                                        std::memory_order_relaxed));
  return {};
}

bool LatchTable::try_latch(Line& line) noexcept {
  auto& latch = fields(line).latch;
  uint64_t raw = latch.load(std::memory_order_relaxed);
  while (LocalWord{raw}.free())
    if (latch.compare_exchange_weak(raw, LocalWord{raw}.with_exclusive().raw, std::memory_order_acquire,
                                    std::memory_order_relaxed))
      return true;
  return false;
}

LatchTable::Entry LatchTable::try_enter(Line& line, bool exclusive, bool may_fetch) noexcept {
  auto& latch = fields(line).latch;
  uint64_t raw = latch.load(std::memory_order_relaxed);
  bool turn = false;
  for (;;) {
    LocalWord w{raw};
    bool hit = exclusive ? w.msi() == MsiState::kModified : w.msi() != MsiState::kInvalid;
    if (is_blocked(w, exclusive) || (!hit && !may_fetch)) return Entry::kBlocked;
    if (w.pending() && !turn) {
      if (!take_turn(line, exclusive)) return Entry::kBlocked;
      turn = true;
    }
    LocalWord next = hit && !exclusive ? w.with_shared() : w.with_exclusive();
    if (latch.compare_exchange_weak(raw, next.raw, std::memory_order_acquire,  // pairs with releasing
                                    std::memory_order_relaxed)) {
      end_promise(line);
      return hit ? Entry::kEntered : Entry::kFetch;
    }
  }
}

uint32_t LatchTable::begin_wait(Line& line, bool exclusive) noexcept {
  LineFields& f = fields(line);
  const uint32_t seen = f.wake.load(std::memory_order_acquire);  // before the bit: a wake after it changes the word
  f.latch.fetch_or(exclusive ? LocalWord::kExclusiveWaiters : LocalWord::kSharedWaiters, std::memory_order_acq_rel);
  return seen;
}

Status LatchTable::wait(Line& line, bool exclusive, uint32_t begun) {
  const LocalWord w = line.word();
  if (is_blocked(w, exclusive) || (w.pending() && lease_of(line).over(turns_of(line)))) {
    session_.counters.add(Counter::kLocalWaits);
    waiting_.sleep_on(fields(line).wake, begun, Wait::kPageLatch);
  }
  return waiting_.pause(0);
}

void LatchTable::end_latch(Line& line, LatchEnd end, MsiState msi) noexcept {
  auto& latch = fields(line).latch;
  uint64_t raw = latch.load(std::memory_order_relaxed);
  LocalWord next;
  do {
    LocalWord w = LocalWord{raw}.with_msi(msi);
    next = end == LatchEnd::kRelease ? w.without_exclusive() : end == LatchEnd::kToShared ? w.exclusive_to_shared() : w;
  } while (!latch.compare_exchange_weak(raw, next.raw, std::memory_order_acq_rel, std::memory_order_relaxed));
  if (end != LatchEnd::kToCaller && next.has_waiters()) wake(line);
}

// Turns are counted, but no process is kept from a line that could not leave for the peer yet
// (coherence.early-grant-bound).
Lease LatchTable::lease_of(const Line& line) const noexcept {
  const NodeParts& node = session_.node;
  return {.gamma = node.lease_turns,
          .sessions = node.arena->sessions.load(std::memory_order_relaxed),
          .without_end = node.grant_in_flight(line) || !session_.has(Feature::kLease)};
}

bool LatchTable::take_turn(Line& line, bool exclusive) noexcept {
  const Turns before{fields(line).turns.fetch_add(Turns::of(exclusive), std::memory_order_relaxed)};
  return !lease_of(line).over(before);
}

bool LatchTable::promise_turn(Line& line) noexcept {
  fields(line).promised_until.store(monotonic_ns() + session_.node.come_ns, std::memory_order_relaxed);
  if (wake(line) > 0) return true;
  end_promise(line);
  return false;
}

bool LatchTable::promised(const Line& line) const noexcept {
  const uint64_t until = fields(line).promised_until.load(std::memory_order_relaxed);
  return until != 0 && is_promised(until, monotonic_ns(), lease_of(line).over(turns_of(line)));
}

// The woken waiter took the latch, or gave up.
void LatchTable::end_promise(Line& line) noexcept {
  auto& until = fields(line).promised_until;
  if (until.load(std::memory_order_relaxed) != 0) until.store(0, std::memory_order_relaxed);
}

int LatchTable::wake(Line& line) noexcept {
  LineFields& f = fields(line);
  f.latch.fetch_and(~LocalWord::kWaiters, std::memory_order_acq_rel);
  f.wake.fetch_add(1, std::memory_order_acq_rel);
  return futex_wake(f.wake, 1 << 30);
}

}  // namespace coherence
