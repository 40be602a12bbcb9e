// Holder: one session of the node, as the others see it: which transaction of it holds pages, and whether they may be
// taken away from it.
//
//     58..2 transaction | 1..0 state
//
//                    begin            keep
//             kNone -------> kHolds --------> kKeeps        the owner's steps; kNone again when nothing is held
//                              |
//                              | take
//                              v
//                          kGivenUp                         anybody's step
//
// serializable.kept-or-taken: A transaction commits what it has written only from kKeeps, and its holds are taken away
//     only in kGivenUp.  Both are left to one CAS from kHolds: one of the two comes first, and the other never comes.
#pragma once

#include <atomic>
#include <cstdint>

#include "extension/engine/txn/txn_id.hpp"

namespace engine {

enum class HolderState : uint8_t { kNone, kHolds, kKeeps, kGivenUp };

struct HolderWord {
  uint64_t raw = 0;
  static_assert(TxnId::kBits + 2 <= 64);
  static constexpr HolderWord of(TxnId by, HolderState state) { return {by.raw << 2 | uint64_t(state)}; }
  constexpr TxnId by() const { return {raw >> 2}; }
  constexpr HolderState state() const { return HolderState(raw & 3); }
  constexpr bool operator==(const HolderWord&) const = default;
};

inline constexpr int32_t kPatienceForever = -1;

// In memory that all processes of the node map; zeroed is kNone.
class alignas(64) Holder {
 public:
  HolderWord word() const noexcept { return {word_.load(std::memory_order_acquire)}; }

  // --- the session itself ---
  // `patience_ms`: how long it may be idle while others wait for its pages; kPatienceForever.
  void begin(TxnId by, int32_t patience_ms) noexcept {
    patience_ms_.store(patience_ms, std::memory_order_relaxed);
    idle_ms_.store(0, std::memory_order_relaxed);
    wanted_.store(false, std::memory_order_relaxed);
    given_parts_.store(false, std::memory_order_relaxed);
    upgrades_.store(0, std::memory_order_relaxed);
    word_.store(HolderWord::of(by, HolderState::kHolds).raw, std::memory_order_release);
  }
  // From now on nothing is taken away.  False: it has been.
  bool keep(TxnId by) noexcept {
    return step(by, HolderState::kKeeps) || word() == HolderWord::of(by, HolderState::kKeeps);
  }
  void end() noexcept { word_.store(0, std::memory_order_release); }
  // It asks for a page, and waits for none.
  void note_request() noexcept {
    requests_.store(requests_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    ends_upgrade();
  }
  void ends_upgrade() noexcept {
    if (upgrades_.load(std::memory_order_relaxed) != 0) upgrades_.store(0, std::memory_order_relaxed);
  }

  // Whether it was given parts of pages since it asked last (serializable.given-parts-noted).
  bool take_given_parts() noexcept { return given_parts_.exchange(false, std::memory_order_relaxed); }

  // --- others ---
  // False: it is another transaction by now, or keeps them.
  bool take(TxnId by, uint32_t idle_ms) noexcept {
    idle_ms_.store(idle_ms, std::memory_order_relaxed);  // told by the session after it has seen kGivenUp
    return step(by, HolderState::kGivenUp);
  }
  // Somebody waits for what it holds: said by the node's worker, and a hint (serializable.readers-stand-behind).
  void note_wanted() noexcept { wanted_.store(true, std::memory_order_relaxed); }
  // REQUIRES: the lock of a bucket that has an entry of it.  That orders the note, too.
  void note_given_parts() noexcept { given_parts_.store(true, std::memory_order_relaxed); }
  // It has read that page, and is about to wait until it may write it (serializable.one-upgrader).  REQUIRES, of both:
  // the lock of the page's bucket.
  void note_upgrade(uint64_t page) noexcept { upgrades_.store(page, std::memory_order_relaxed); }
  bool upgrades(TxnId by, uint64_t page) const noexcept {
    return upgrades_.load(std::memory_order_relaxed) == page && word() == HolderWord::of(by, HolderState::kHolds);
  }
  bool wanted() const noexcept { return wanted_.load(std::memory_order_relaxed); }
  int32_t patience_ms() const noexcept { return patience_ms_.load(std::memory_order_relaxed); }
  uint32_t idle_ms() const noexcept { return idle_ms_.load(std::memory_order_relaxed); }
  // Changes whenever the transaction asks for a page.
  uint32_t requests() const noexcept { return requests_.load(std::memory_order_relaxed); }

 private:
  // Acquire and release: what the owner has entered is seen by the process that takes it, and the owner that is told so
  // sees why.
  bool step(TxnId by, HolderState to) noexcept {
    uint64_t from = HolderWord::of(by, HolderState::kHolds).raw;
    return word_.compare_exchange_strong(from, HolderWord::of(by, to).raw, std::memory_order_acq_rel);
  }
  std::atomic<uint64_t> word_{0}, upgrades_{0};  // a page, or none
  std::atomic<int32_t> patience_ms_{0};
  std::atomic<uint32_t> idle_ms_{0}, requests_{0};
  std::atomic<bool> wanted_{false}, given_parts_{false};
};

}  // namespace engine
