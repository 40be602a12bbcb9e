// Waits for what has to happen, however slow the machine is.  How long it takes on a quiet one proves nothing: a test
// that sleeps instead fails where processors are stolen, or passes without having looked.
#pragma once

#include <chrono>
#include <thread>

namespace gcl_test {

// How long a test waits for what happens within milliseconds, where nothing is wrong.
inline constexpr int kPatienceMs = 30'000;

// Whether the condition holds within that time.  It is asked again and again, the last time when the time is over.
template <class Condition>
bool eventually(const Condition& condition, std::chrono::milliseconds within = std::chrono::milliseconds(kPatienceMs)) {
  const auto until = std::chrono::steady_clock::now() + within;
  for (;;) {
    const bool last = std::chrono::steady_clock::now() >= until;
    if (condition()) return true;
    if (last) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace gcl_test
