// A Horizon for tests: a session that may still come to a page counts in a slot.
#pragma once

#include <array>
#include <atomic>

#include "extension/engine/blink/tree.hpp"

namespace gcl_test {

inline constexpr int kNodes = 3, kThreads = 6;  // of tests in which many work on one tree

class Crowd final : public engine::blink::Horizon {
 public:
  void count_in(int slot) {
    slots_[slot].store(1);  // before the clock is read
    slots_[slot].store(clock_.load());
  }
  void leave(int slot) { slots_[slot].store(0); }

  coherence::Result<uint64_t> pass_moment() override { return clock_.fetch_add(1); }
  coherence::Result<uint64_t> now(uint64_t) override {
    uint64_t oldest = clock_.load();
    for (const auto& slot : slots_)
      if (const uint64_t counted = slot.load(); counted != 0 && counted < oldest) oldest = counted;
    return oldest;
  }

 private:
  std::atomic<uint64_t> clock_{2};
  std::array<std::atomic<uint64_t>, 16> slots_{};
};

}  // namespace gcl_test
