// Line: one frame's entry in the node's arena: which page, the local latch, what is dirty, and the protocol state.
//
// line.one-frame: line i belongs to frame i of the arena, for good.  Its page changes only in Session::name() and
// Session::finish_evict().
// line.page-checked-afterwards: a session that has latched a line looks at page(): another page means kRestart.
// line.dirty-under-latch: dirty, lsn and first_change are written by the process that has X (hint bits, set under a
// shared latch, may add to `dirty`), and cleared when their bytes are in the pool.
#pragma once

#include <atomic>
#include <cstdint>

#include "coherence/base/ids.hpp"
#include "coherence/base/racy_copy.hpp"
#include "coherence/latch/local_latch.hpp"
#include "coherence/line/line_fields.hpp"

namespace coherence {

class alignas(64) Line {
 public:
  PageId page() const noexcept { return {fields_.page.load(std::memory_order_relaxed)}; }
  LocalWord word() const noexcept { return {fields_.latch.load(std::memory_order_acquire)}; }
  // The node's ownership as the latch word shows it; stable while a latch of any kind is held.
  MsiState msi() const noexcept { return LocalWord{fields_.latch.load(std::memory_order_relaxed)}.msi(); }

  // Whether a transaction of this node holds the page (coherence.held-until-end).  Under an exclusive latch it may only
  // become false: a hold is begun under a latch.
  bool held() const noexcept { return (fields_.holding.load(std::memory_order_relaxed) & LineFields::kHeld) != 0; }
  // Whether a writer was told that the page is held, and nobody has had it exclusively since
  // (coherence.refused-writer-noted).
  bool refused_writer() const noexcept {
    return (fields_.holding.load(std::memory_order_relaxed) & LineFields::kRefused) != 0;
  }
  // Neither of both.
  bool free_of_holds() const noexcept { return fields_.holding.load(std::memory_order_relaxed) == 0; }
  void note_refused_writer() noexcept { fields_.holding.fetch_or(LineFields::kRefused, std::memory_order_relaxed); }
  void forget_refused_writer() noexcept {
    fields_.holding.fetch_and(uint8_t(~LineFields::kRefused), std::memory_order_relaxed);
  }

  // --- optimistic: loads only ----------------------------------------------------------------------------------------
  // Whether the page can be read now; `*token` goes to validate().
  bool begin_optimistic(PageId page, uint64_t* token) const noexcept {
    LocalWord w{fields_.latch.load(std::memory_order_acquire)};  // pairs with the release that ended X
    *token = w.version();
    return w.readable() && fields_.page.load(std::memory_order_relaxed) == page.raw;
  }
  // Whether what was read since begin_optimistic() was the page, whole, at this moment.
  bool validate(uint64_t token) const noexcept {
#ifdef __SANITIZE_THREAD__  // knows no fences
    LocalWord w{const_cast<std::atomic<uint64_t>&>(fields_.latch).fetch_add(0, std::memory_order_acq_rel)};
#else
    std::atomic_thread_fence(std::memory_order_acquire);  // the relaxed loads of the bytes come before this load
    LocalWord w{fields_.latch.load(std::memory_order_relaxed)};
#endif
    return w.version() == uint32_t(token) && w.readable();
  }

  // --- changes: REQUIRES exclusive latch, state M -------------------------------------------------------------------
  // Bytes under `mask` (bit i: bytes [64 i, 64 i + 64)) changed; the change is in the log up to `lsn` and in the ring
  // from `ring_position`.
  void note_change(const uint64_t mask[2], Lsn lsn, uint64_t ring_position) noexcept {
    if (first_change() == kNoChange) fields_.first_change.store(ring_position, std::memory_order_relaxed);
    for (int i = 0; i < 2; i++)
      fields_.dirty[i].store(fields_.dirty[i].load(std::memory_order_relaxed) | mask[i], std::memory_order_relaxed);
    fields_.lsn.store(lsn.value, std::memory_order_relaxed);
    if (fields_.taken_to_write.load(std::memory_order_relaxed))
      fields_.taken_to_write.store(false, std::memory_order_relaxed);
  }
  // A hint was stored in bytes [offset, offset + 8).  REQUIRES: shared latch, state M.  Neither logged nor ringed.
  void note_hint(uint32_t offset) noexcept {
    uint32_t bit = offset / 64;
    fields_.dirty[bit / 64].fetch_or(uint64_t{1} << bit % 64,
                                     std::memory_order_release);  // pairs with write-back's exchange
  }
  bool is_dirty() const noexcept {
    return (fields_.dirty[0].load(std::memory_order_relaxed) | fields_.dirty[1].load(std::memory_order_relaxed)) != 0 ||
           fields_.all_dirty.load(std::memory_order_relaxed);
  }
  Lsn lsn() const noexcept { return {fields_.lsn.load(std::memory_order_relaxed)}; }
  // Ring position of the first logged change that is not yet in the pool; kNoChange if there is none.
  static constexpr uint64_t kNoChange = ~uint64_t{0};
  // Acquire: pairs with the release when a change has reached the pool.  A session that sees that may let the redo go
  // (transport.seen-in-order).
  uint64_t first_change() const noexcept { return fields_.first_change.load(std::memory_order_acquire); }

  // All of it, for a process that looks from outside without a lock: each field as it is at some moment, not all of one
  // moment.
  struct Sight {
    LocalWord latch;
    PageId page;
    uint64_t dirty[2];
    Lsn lsn;
    uint64_t first_change, turns;
    uint32_t spin;
    uint16_t op_slot;
    bool writing;
    LineState state;
  };
  Sight sight() const noexcept {
    const auto now = [](const auto& field) { return field.load(std::memory_order_relaxed); };
    const LineFields& f = fields_;
    Sight s{.latch = {now(f.latch)},
            .page = {now(f.page)},
            .dirty = {now(f.dirty[0]), now(f.dirty[1])},
            .lsn = {now(f.lsn)},
            .first_change = now(f.first_change),
            .turns = now(f.turns),
            .spin = now(f.spin),
            .op_slot = f.op_slot,
            .writing = now(f.writing),
            .state = {}};
    racy_copy(&s.state, &f.state, sizeof f.state);
    return s;
  }

  void initialise() noexcept {  // in fresh, zeroed memory
    fields_.page.store(PageId{}.raw, std::memory_order_relaxed);
    fields_.first_change.store(kNoChange, std::memory_order_relaxed);
    fields_.state = LineState();
  }

 private:
  friend LineFields& fields(Line&) noexcept;
  friend const LineFields& fields(const Line&) noexcept;
  LineFields fields_;
};
static_assert(sizeof(Line) == sizeof(LineFields));

inline LineFields& fields(Line& line) noexcept { return line.fields_; }
inline const LineFields& fields(const Line& line) noexcept { return line.fields_; }

}  // namespace coherence
