// How much a stress test does.  The tests labelled slow run GCL_LONGER times as long or as often, and with other random
// numbers for each GCL_SEED.
#pragma once

#include <chrono>
#include <cstdlib>

namespace gcl_test {

inline int environment_number(const char* name, int otherwise) {
  const char* text = getenv(name);
  return text ? atoi(text) : otherwise;
}

// 1 or what GCL_LONGER says.
inline int longer() {
  static const int times = environment_number("GCL_LONGER", 1);
  return times;
}

inline std::chrono::seconds longer(std::chrono::seconds usual) { return usual * longer(); }

// Rounds of a test in which one thread does everything in turn.  They look for wrong answers, which other builds find
// faster: ThreadSanitizer, which takes ten times as long, does a quarter of them.
template <class Count>
constexpr Count by_one_thread(Count usual) {
#ifdef __SANITIZE_THREAD__
  return usual / 4;
#else
  return usual;
#endif
}

// A seed for generator `number` of a test: `number` itself, unless GCL_SEED asks for another run.
inline unsigned seed(int number) {
  static const unsigned run = unsigned(environment_number("GCL_SEED", 0));
  return run * 7919 + unsigned(number);
}

}  // namespace gcl_test
