// Replacement: which pages have not been wanted for the longest time.
//
// R1. A hit writes a frame's mark only when the mark is not the current epoch's already; the epoch moves with
//     evictions, so a node whose working set fits writes nothing at all.
// R2. A policy proposes; the page provider skips what is busy.  Nothing depends on the proposal but speed.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace bufmgr {

// The marks of all frames, in node-local shared memory: two bytes each, so that they stay in a processor's cache.
class FrameMarks {
 public:
  static size_t bytes_for(uint32_t frames) { return sizeof(Shared) + size_t{frames} * sizeof(std::atomic<uint16_t>); }
  FrameMarks(void* at, uint32_t frames)
      : shared_(static_cast<Shared*>(at)),
        mark_(reinterpret_cast<std::atomic<uint16_t>*>(static_cast<std::byte*>(at) + sizeof(Shared))),
        frames_(frames) {}

  void touch(uint32_t frame) noexcept {
    const uint16_t now = epoch();
    if (mark_[frame].load(std::memory_order_relaxed) != now) mark_[frame].store(now, std::memory_order_relaxed);
  }
  uint16_t epoch() const noexcept { return shared_->epoch.load(std::memory_order_relaxed); }
  // Epochs since the frame was touched (wraps after 65535, harmlessly).
  uint16_t age(uint32_t frame) const noexcept {
    return uint16_t(epoch() - mark_[frame].load(std::memory_order_relaxed));
  }
  void make_old(uint32_t frame) noexcept { mark_[frame].store(uint16_t(epoch() - 1), std::memory_order_relaxed); }
  void advance() noexcept { shared_->epoch.fetch_add(1, std::memory_order_relaxed); }
  uint32_t frames() const { return frames_; }
  // The hand of SecondChance.
  uint32_t step_hand() noexcept { return shared_->hand.fetch_add(1, std::memory_order_relaxed) % frames_; }
  // Counts evictions; true when it is time for the next epoch.
  bool count_evictions(uint32_t n) noexcept {
    const uint32_t span = frames_ / 16 + 1;
    const uint32_t before = shared_->evictions.fetch_add(n, std::memory_order_relaxed);
    return before / span != (before + n) / span;
  }

 private:
  struct alignas(64) Shared {
    std::atomic<uint16_t> epoch;
    alignas(64) std::atomic<uint32_t> hand;
    std::atomic<uint32_t> evictions;
  };
  Shared* shared_;
  std::atomic<uint16_t>* mark_;
  uint32_t frames_;
};

class Replacement {
 public:
  virtual ~Replacement() = default;
  // Proposes up to `wanted` frames to evict, least wanted first.  `round` counts calls before that left the caller
  // without any: a policy becomes less choosy with it.  Proposals may be free or busy frames.
  virtual int propose(uint32_t* frames, int wanted, int round) noexcept = 0;
  // After `evicted` frames were freed.
  virtual void evicted(int count) noexcept = 0;
};

// ScaleStore's way: a random sample, the oldest of it go.
class EpochSampling final : public Replacement {
 public:
  EpochSampling(FrameMarks marks, uint64_t seed) : marks_(marks), random_(seed | 1) {}
  int propose(uint32_t* frames, int wanted, int round) noexcept override;
  void evicted(int count) noexcept override {
    if (marks_.count_evictions(uint32_t(count))) marks_.advance();
  }

 private:
  FrameMarks marks_;
  uint64_t random_;
};

// The clock: a frame touched since the hand last came by gets another round.
class SecondChance final : public Replacement {
 public:
  explicit SecondChance(FrameMarks marks) : marks_(marks) {}
  int propose(uint32_t* frames, int wanted, int round) noexcept override;
  void evicted(int) noexcept override {}

 private:
  FrameMarks marks_;
};

}  // namespace bufmgr
