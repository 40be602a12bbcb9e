// PageProvider: keeps frames free and the ring short, as the provider worker or, when it lags behind, in whoever needs
// a frame or ring space.
//
// P1. It never waits, for a latch or a flush or a peer: what is busy is passed over, what is not flushed is asked for.
// P2. A frame is free only after its page is out of the frame table, and leaves the table only when coherence gave the
//     page up; so a page is in one frame at most, and its newest bytes are here or in the pool.
// P3. Moving the ring's tail is one session's work at a time.
// P5. No pass over all frames keeps a peer waiting that only the one who passes over them would answer.
// P4. A frame is free as soon as the batch of its own page is complete; those behind it may still be under way.
#pragma once

#include <cstdint>

#include "bufmgr/buffer_pool.hpp"
#include "coherence/eviction_window.hpp"

namespace bufmgr {

class PageProvider final : private coherence::FrameTaker {
 public:
  static constexpr int kEvictOnTheSpot = 8;
  // At or below it the provider is called; it refills to twice that.
  static uint32_t low_mark(uint32_t frames) {
    const uint32_t some = frames / 64;
    return some < 2 ? 2 : some > 1024 ? 1024 : some;
  }
  // Ring use from which on the oldest changes are written back.
  static uint64_t ring_mark(const RedoRing& ring) { return ring.data_bytes() / 2; }

  PageProvider(BufferPool& pool, Session& session) : pool_(pool), session_(session) {}

  bool run_once();
  // Evicts up to `wanted` pages; returns how many.  `round`: see Replacement::propose().
  int evict_some(int wanted, int round) {
    coherence::EvictionWindow window(session_.coherence_, *this);
    return evict_some(window, wanted, round);
  }
  // Writes back the oldest changes and moves the tail; false if it could not move.
  bool shorten_ring();
  // Writes back every change before `position`, as far as they may leave; true when the ring is empty up to it, or up
  // to what sessions at work still hold.  Where the caller is the message worker, he answers peers meanwhile (P5).
  enum class Meanwhile : uint8_t { kNothing, kAttend };
  bool empty_ring(uint64_t position, Meanwhile meanwhile = Meanwhile::kNothing);

 private:
  bool free_some();
  int evict_some(coherence::EvictionWindow& window, int wanted, int round);  // some may be under way still
  void take(coherence::Line& line, PageId page) noexcept override;

  BufferPool& pool_;
  Session& session_;
};

}  // namespace bufmgr
