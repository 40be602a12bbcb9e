// PageProvider: keeps frames free and the ring short.  It runs in the provider worker and, when that lags behind, in a
// session that needs a frame or ring space.
//
// provider.never-waits: It waits for no latch, flush or peer: it passes over what is busy, and asks for the flush of
//     what is not flushed.
// provider.unpublished-then-free: A frame is free only after its page is out of the frame table, and the page leaves
//     the table only when coherence has given it up.  So the page's newest bytes are here or in the pool.
// provider.one-tail-mover: One session at a time moves the ring's tail.
// provider.free-per-batch: A frame is free as soon as the batch of its own page is complete; later batches may still be
//     under way.
// provider.passes-answer-peers: The message worker answers peers during its pass over dirty frames, as no other process
//     would.
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
  // Writes back every change before `position` that may leave; true when the ring is empty up to there.  kAttend: the
  // caller is the message worker (provider.passes-answer-peers).
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
