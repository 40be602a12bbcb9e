// LogBudget: how many lines strangers, or one link, may cause.  A few at once, then one in a while; the next one says
// how many were left out.
#pragma once

#include <algorithm>
#include <cstdint>

namespace coherence::net {

class LogBudget {
 public:
  // Whether a line may be written now; *left_out: how many were not since the last one.
  bool take(uint64_t now, uint64_t* left_out) noexcept {
    const uint64_t grown = now > since_ ? (now - since_) / kLineNs : 0;
    lines_ = std::min(kLinesMax, lines_ + grown);
    since_ += grown * kLineNs;
    if (lines_ == 0) {
      left_out_++;
      return false;
    }
    lines_--;
    *left_out = left_out_;
    left_out_ = 0;
    return true;
  }

 private:
  static constexpr uint64_t kLinesMax = 20, kLineNs = 2'000'000'000;
  uint64_t lines_ = kLinesMax, since_ = 0, left_out_ = 0;
};

}  // namespace coherence::net
