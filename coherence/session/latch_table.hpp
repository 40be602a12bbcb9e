// LatchTable: the latches of a node's lines, between its processes.  It knows nothing of peers but that one may wait
// (the word's `pending`).
#pragma once

#include <cstdint>

#include "coherence/base/result.hpp"
#include "coherence/latch/next.hpp"
#include "coherence/line/line.hpp"
#include "coherence/line/line_machine.hpp"
#include "coherence/session/session_context.hpp"
#include "coherence/session/waiting.hpp"

namespace coherence {

class LatchTable {
 public:
  LatchTable(const SessionContext& session, const Waiting& waiting) : session_(session), waiting_(waiting) {}

  // --- hits: coherence.hit-one-atomic --------------------------------------------------------------------------------
  static bool hit_shared(Line& line) noexcept {
    return enter_shared_where(line, [](LocalWord w) { return w.admits_shared(); });
  }
  // A hit, also where only a waiter's mark keeps it from being one: at a line that nobody has, a waiter has yet to
  // look again, or has left (an interrupt, a restart).  The process that frees the line then sees to the mark.
  static bool hit_shared_but_for_marks(Line& line) noexcept {
    return enter_shared_where(
        line, [](LocalWord w) { return !is_blocked(w, false) && !w.pending() && w.msi() != MsiState::kInvalid; });
  }
  static bool hit_exclusive(Line& line) noexcept {
    auto& latch = fields(line).latch;
    uint64_t w = latch.load(std::memory_order_relaxed);
    while (LocalWord{w}.admits_exclusive())
      if (latch.compare_exchange_weak(w, LocalWord{w}.with_exclusive().raw, std::memory_order_acquire,
                                      std::memory_order_relaxed))
        return true;
    return false;
  }
  // The word afterwards: if the line is wanted, the caller calls MessageServer::unlocked().
  static LocalWord release_shared(Line& line) noexcept {
    return {fields(line).latch.fetch_sub(LocalWord::kSharedOne, std::memory_order_acq_rel) - LocalWord::kSharedOne};
  }
  static LocalWord release_exclusive(Line& line) noexcept {
    return {fields(line).latch.fetch_add(LocalWord::kUnlockExclusive, std::memory_order_acq_rel) +
            LocalWord::kUnlockExclusive};
  }
  static bool is_wanted(LocalWord w) noexcept { return w.raw & (LocalWord::kPending | LocalWord::kWaiters); }
  // The optimistic copy made since `token` is still good, and now the latch is held exclusively.
  static Status try_upgrade(Line& line, PageId page, uint64_t token) noexcept;
  static bool try_latch(Line& line) noexcept;  // X, from free

  // --- the slow path -------------------------------------------------------------------------------------------------
  enum class Entry : uint8_t {
    kEntered,
    kFetch,    // the latch is X, and the caller's for an operation
    kBlocked,  // by this node's processes, or the node has had its turns
  };
  Entry try_enter(Line& line, bool exclusive, bool may_fetch) noexcept;
  // To wait: begin, look whether there is something else to do, wait.  kInterrupted, kFenced: the caller sees to a line
  // that was left free (a waker may have counted on it).
  uint32_t begin_wait(Line& line, bool exclusive) noexcept;
  Status wait(Line& line, bool exclusive, uint32_t begun);
  // X ends, or changes hands, and the word shows the MSI state.
  void end_latch(Line& line, LatchEnd end, MsiState msi) noexcept;

  // --- turns: coherence.bounded-local-turns --------------------------------------------------------------------------
  Next next_after(Line& line, LocalWord after) const noexcept {
    return who_goes_next(after, lease_of(line).over(turns_of(line)));
  }
  bool take_turn(Line& line, bool exclusive) noexcept;
  // Wakes the waiters, and keeps the line for them for a moment; false: there was none.
  bool promise_turn(Line& line) noexcept;
  bool promised(const Line& line) const noexcept;
  static void end_promise(Line& line) noexcept;
  static int wake(Line& line) noexcept;

 private:
  template <class Admits>
  static bool enter_shared_where(Line& line, Admits admits) noexcept {
    auto& latch = fields(line).latch;
    uint64_t w = latch.load(std::memory_order_relaxed);
    while (admits(LocalWord{w}))
      if (latch.compare_exchange_weak(w, LocalWord{w}.with_shared().raw, std::memory_order_acquire,  // pairs with
                                      std::memory_order_relaxed))                                    // releasing
        return true;
    return false;
  }
  Lease lease_of(const Line& line) const noexcept;
  static Turns turns_of(const Line& line) noexcept { return {fields(line).turns.load(std::memory_order_relaxed)}; }

  const SessionContext& session_;
  const Waiting& waiting_;
};

}  // namespace coherence
