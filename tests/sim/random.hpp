// The only source of chance in a run: the same numbers on every machine for the same seed.
#pragma once

#include <cstdint>

namespace sim {

class Random {
 public:
  explicit Random(uint64_t seed = 0) : state_(seed) {}
  uint64_t next() {
    state_ += 0x9E3779B97F4A7C15ull;
    return mix(state_);
  }
  uint64_t below(uint64_t n) { return n ? next() % n : 0; }                              // [0, n)
  uint64_t between(uint64_t low, uint64_t high) { return low + below(high - low + 1); }  // [low, high]
  bool one_in(uint64_t n) { return n && below(n) == 0; }                                 // 0: never
  // A bijection of 64-bit words that leaves no pattern.
  static constexpr uint64_t mix(uint64_t z) {
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ z >> 27) * 0x94D049BB133111EBull;
    return z ^ z >> 31;
  }

 private:
  uint64_t state_;
};

}  // namespace sim
