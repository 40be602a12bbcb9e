// Waiting: the sleeps of a session, in slices (coherence.bounded-sleeps).
#pragma once

#include <atomic>
#include <cstdint>

#include "coherence/base/os.hpp"
#include "coherence/base/result.hpp"
#include "coherence/session/session_context.hpp"

namespace coherence {

class Waiting {
 public:
  explicit Waiting(const SessionContext& session) : session_(session) {}
  // kInterrupted, kFenced.
  Status pause(uint32_t ms) const {
    if (ms > 0) {
      std::atomic<uint32_t> nothing{0};
      futex_wait(nothing, 0, ms);
    }
    if (session_.node.fenced()) return Errc::kFenced;
    if (session_.interrupts && session_.interrupts->pending()) return Errc::kInterrupted;
    return {};
  }
  // A slice; the caller looks at what woke it, and at pause(0).
  void sleep_on(const std::atomic<uint32_t>& word, uint32_t seen, Wait what) const noexcept {
    if (session_.interrupts) session_.interrupts->waits(what);
    futex_wait(word, seen, kSliceMs);
    if (session_.interrupts) session_.interrupts->waits(Wait::kNone);
  }

 private:
  static constexpr uint32_t kSliceMs = 10;
  const SessionContext& session_;
};

}  // namespace coherence
