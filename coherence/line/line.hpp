// Line: one frame's entry in the node's arena: which page, the local latch, what is dirty, and the protocol state.
//
// L1. Line i belongs to frame i of the arena, for good.  Its page changes only in Session::name() and
//     Session::finish_evict().
// L2. Whoever latches a line looks at page() afterwards: another page means kRestart.
// L3. A hit is one atomic on `latch` and nothing else that is shared is written; an optimistic hit only loads.
// L4. `state` is touched under `spin` only, by step().  dirty, lsn and first_change are written by the holder of X (a
//     stamp under a shared latch may add dirty bits), and cleared when their bytes are in the pool.
#pragma once

#include <atomic>
#include <cstdint>

#include "coherence/base/ids.hpp"
#include "coherence/base/racy_copy.hpp"
#include "coherence/latch/local_latch.hpp"
#include "coherence/line/line_state.hpp"

namespace coherence {

class alignas(64) Line {
 public:
  PageId page() const noexcept { return {page_.load(std::memory_order_relaxed)}; }
  LocalWord word() const noexcept { return {latch_.load(std::memory_order_acquire)}; }
  // The node's ownership as the latch word shows it; stable while a latch of any kind is held.
  MsiState msi() const noexcept { return LocalWord{latch_.load(std::memory_order_relaxed)}.msi(); }

  // Whether a peer's hand-over to us is not complete yet; it can become so only while the line is being fetched.
  bool grant_in_flight() const noexcept { return grant_in_flight_.load(std::memory_order_seq_cst); }

  // --- optimistic: loads only ----------------------------------------------------------------------------------------
  // Whether the page can be read now; `*token` goes to validate().
  bool begin_optimistic(PageId page, uint64_t* token) const noexcept {
    LocalWord w{latch_.load(std::memory_order_acquire)};  // pairs with the release that ended X
    *token = w.version();
    return w.readable() && page_.load(std::memory_order_relaxed) == page.raw;
  }
  // Whether what was read since begin_optimistic() was the page, whole, at this moment.
  bool validate(uint64_t token) const noexcept {
#ifdef __SANITIZE_THREAD__  // knows no fences
    LocalWord w{const_cast<std::atomic<uint64_t>&>(latch_).fetch_add(0, std::memory_order_acq_rel)};
#else
    std::atomic_thread_fence(std::memory_order_acquire);  // the relaxed loads of the bytes come before this load
    LocalWord w{latch_.load(std::memory_order_relaxed)};
#endif
    return w.version() == uint32_t(token) && w.readable();
  }

  // --- changes: REQUIRES exclusive latch, state M -------------------------------------------------------------------
  // Bytes under `mask` (bit i: bytes [64 i, 64 i + 64)) changed; the change is in the log up to `lsn` and in the ring
  // from `ring_position`.
  void note_change(const uint64_t mask[2], Lsn lsn, uint64_t ring_position) noexcept {
    if (first_change() == kNoChange) first_change_.store(ring_position, std::memory_order_relaxed);
    for (int i = 0; i < 2; i++)
      dirty_[i].store(dirty_[i].load(std::memory_order_relaxed) | mask[i], std::memory_order_relaxed);
    lsn_.store(lsn.value, std::memory_order_relaxed);
    if (taken_to_write_.load(std::memory_order_relaxed)) taken_to_write_.store(false, std::memory_order_relaxed);
  }
  // A hint was stored in bytes [offset, offset + 8).  REQUIRES: shared latch, state M.  Neither logged nor ringed.
  void note_stamp(uint32_t offset) noexcept {
    uint32_t bit = offset / 64;
    dirty_[bit / 64].fetch_or(uint64_t{1} << bit % 64, std::memory_order_release);  // pairs with write-back's exchange
  }
  bool is_dirty() const noexcept {
    return (dirty_[0].load(std::memory_order_relaxed) | dirty_[1].load(std::memory_order_relaxed)) != 0;
  }
  Lsn lsn() const noexcept { return {lsn_.load(std::memory_order_relaxed)}; }
  // Ring position of the first logged change that is not yet in the pool; kNoChange if there is none.
  static constexpr uint64_t kNoChange = ~uint64_t{0};
  // Acquire: pairs with the release when a change has reached the pool.  Whoever sees that may let its redo go (T5).
  uint64_t first_change() const noexcept { return first_change_.load(std::memory_order_acquire); }

  // All of it, for who looks from outside without a lock: each field as it is at some moment, not all of one moment.
  struct Sight {
    LocalWord latch;
    PageId page;
    uint64_t dirty[2];
    Lsn lsn;
    uint64_t first_change, turns;
    uint32_t spin;
    uint16_t op_slot;
    bool writing, grant_in_flight;
    LineState state;
  };
  Sight sight() const noexcept {
    const auto now = [](const auto& field) { return field.load(std::memory_order_relaxed); };
    Sight s{.latch = {now(latch_)},
            .page = {now(page_)},
            .dirty = {now(dirty_[0]), now(dirty_[1])},
            .lsn = {now(lsn_)},
            .first_change = now(first_change_),
            .turns = now(turns_),
            .spin = now(spin_),
            .op_slot = op_slot_,
            .writing = now(writing_) != 0,
            .grant_in_flight = now(grant_in_flight_),
            .state = {}};
    racy_copy(&s.state, &state_, sizeof state_);
    return s;
  }

  void initialise() noexcept {  // in fresh, zeroed memory
    page_.store(PageId{}.raw, std::memory_order_relaxed);
    first_change_.store(kNoChange, std::memory_order_relaxed);
    state_ = LineState();
  }

 private:
  friend class Session;
  friend class Node;
  friend struct LineAccess;  // tests

  std::atomic<uint64_t> latch_;
  std::atomic<uint64_t> page_;
  std::atomic<uint64_t> dirty_[2];
  std::atomic<uint64_t> lsn_;
  std::atomic<uint64_t> first_change_;
  static constexpr uint64_t kReaderTurn = 1, kWriterTurn = uint64_t{1} << 32;
  std::atomic<uint64_t> turns_;       // local turns taken while a request was parked, readers' and writers' (I14)
  std::atomic<uint32_t> wake_;        // futex word of local waiters
  std::atomic<bool> taken_to_write_;  // by Intent::kWrite, and not changed since
  // Granted while the giver's batch is on its way; set and cleared by the giver, when the word names us (I20).
  std::atomic<bool> grant_in_flight_;
  std::atomic<uint16_t> passed_on_us_;  // when LineState::passed_to got the page: microseconds, wrapped
  // Protocol side, not touched by hits:
  alignas(64) std::atomic<uint32_t> spin_;
  uint16_t op_slot_;               // request slot of the operation: session * kSlotsPerSession + n
  std::atomic<uint16_t> writing_;  // a write-back that keeps M is under way
  LineState state_;
  // Monotonic ns, 0: nobody waits.
  std::atomic<uint64_t> stand_back_until_;  // a peer's writer goes first until then (I13)
  std::atomic<uint64_t> promised_until_;    // a local process that was woken for its turn does (I14)
};
static_assert(sizeof(Line) == 256);

}  // namespace coherence
