// Replacement: which pages will not be wanted soon.
//
// frames.policy-only-proposes: A policy proposes; the page provider skips what is busy.  Nothing depends on the
//     proposal but speed.
#pragma once

#include <cstdint>

#include "bufmgr/frame/frame_marks.hpp"

namespace bufmgr {

class Replacement {
 public:
  virtual ~Replacement() = default;
  // Proposes up to `wanted` frames to evict, least wanted first; they may be free or busy.  `round` counts the calls
  // before it that freed none: with it a policy becomes less choosy.
  virtual int propose(uint32_t* frames, int wanted, int round) noexcept = 0;
  // After `evicted` frames were freed.
  virtual void evicted(int count) noexcept = 0;
};

// ScaleStore's way: of a random sample the frames go that are least wanted (FrameMarks).
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
