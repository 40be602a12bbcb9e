// A page in a rival's cache: its latch, first come, first served, and what the node may do with it.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "bench/paper/network.hpp"

namespace paper {

enum class Mode : uint8_t { kNone, kShared, kModified };

class CachedPage {
 public:
  static constexpr uint64_t kNoPage = ~uint64_t{0};
  uint64_t page = kNoPage;
  Mode mode = Mode::kNone;
  bool fetching = false;  // the latch's owner is away to get the page
  bool spoiled = false;   // what is on its way here is outdated already
  uint64_t turn = 0;      // of the fetch under way at the page's home; 0: not there yet
  std::vector<uint64_t> lines;

  bool latched() const { return exclusive_ || readers_ > 0; }
  bool idle() const { return !latched() && waiting_.empty(); }
  void latch(bool exclusive) {
    if (waiting_.empty() && admits(exclusive)) return enter(exclusive);
    Waiter self{exclusive, 0};
    waiting_.push_back(&self);
    while (self.wakeup == 0) sim::scheduler()->park(&self.wakeup, 0, kLongNs);
  }
  void latch_at_once() { enter(true); }  // REQUIRES: idle()
  void unlatch(uint64_t hand_over_ns) {
    if (exclusive_)
      exclusive_ = false;
    else
      readers_--;
    if (!waiting_.empty()) pass(hand_over_ns);
    while (!waiting_.empty() && admits(waiting_.front()->exclusive)) {
      Waiter& next = *waiting_.front();
      waiting_.pop_front();
      enter(next.exclusive);
      next.wakeup = 1;
      sim::scheduler()->wake(&next.wakeup, 1);
    }
  }

 private:
  static constexpr uint64_t kLongNs = 1'000'000'000;
  struct Waiter {
    bool exclusive;
    uint32_t wakeup;
  };
  bool admits(bool exclusive) const { return !exclusive_ && (!exclusive || readers_ == 0); }
  void enter(bool exclusive) {
    if (exclusive)
      exclusive_ = true;
    else
      readers_++;
  }
  bool exclusive_ = false;
  int readers_ = 0;
  std::deque<Waiter*> waiting_;
};

}  // namespace paper
