// The processor's own clock: a third of what a look at the system's costs.  For order and durations in traces, never
// for a decision; where it does not run evenly, only the order is right.
#pragma once

#include <cstdint>

#include "coherence/base/os.hpp"
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace coherence {

inline uint64_t ticks() noexcept {
#if defined(__x86_64__)
  return __rdtsc();
#elif defined(__aarch64__)
  uint64_t value;
  asm volatile("mrs %0, cntvct_el0" : "=r"(value));
  return value;
#else
  return monotonic_ns();
#endif
}

// One moment on both clocks.  Two of them say what ticks are in nanoseconds.
struct Moment {
  uint64_t ticks = 0, ns = 0;
  static Moment now() noexcept { return {coherence::ticks(), monotonic_ns()}; }
};

// How many nanoseconds before `now` the clock showed `at`.
inline uint64_t ns_before(const Moment& now, const Moment& then, uint64_t at) noexcept {
  if (at >= now.ticks || now.ticks <= then.ticks) return 0;
  return uint64_t(double(now.ticks - at) * double(now.ns - then.ns) / double(now.ticks - then.ticks));
}

}  // namespace coherence
