// Histogram: latencies in buckets of 1/16.  For one thread.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace paper {

class Histogram {
 public:
  void add(uint64_t ns) { count_[index(ns)]++, all_++; }
  void add(const Histogram& other) {
    for (size_t i = 0; i < kBuckets; i++) count_[i] += other.count_[i];
    all_ += other.all_;
  }
  double quantile_us(double q) const {
    uint64_t left = uint64_t(q * double(all_));
    for (size_t i = 0; i < kBuckets; i++) {
      if (left < count_[i]) return double(lowest(i)) / 1000;
      left -= count_[i];
    }
    return 0;
  }

 private:
  static constexpr size_t kBuckets = 64 * 16;
  static size_t index(uint64_t ns) {
    if (ns < 16) return ns;
    const int shift = std::bit_width(ns) - 5;
    return size_t(shift + 1) * 16 + (ns >> shift & 15);
  }
  static uint64_t lowest(size_t i) { return i < 16 ? i : (16 + i % 16) << (i / 16 - 1); }
  std::vector<uint64_t> count_ = std::vector<uint64_t>(kBuckets);
  uint64_t all_ = 0;
};

}  // namespace paper
