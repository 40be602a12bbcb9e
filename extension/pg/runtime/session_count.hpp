// SessionCount: how many sessions there are, and whether more may begin, in one word: so none begins behind a process
// that has found none and does what no session may see (runtime.workers-outlive-backends).
//
// In shared memory, zeroed when new; any process.
#pragma once

#include <atomic>
#include <cstdint>

namespace gcl {

class SessionCount {
 public:
  // False: it is closed, and none has begun.
  bool begin() noexcept {
    if (!(word_.fetch_add(1, std::memory_order_seq_cst) & kClosed)) return true;
    end();
    return false;
  }
  void end() noexcept { word_.fetch_sub(1, std::memory_order_seq_cst); }

  // Unless there is one.  True: it is closed, now or before.
  bool close() noexcept {
    uint32_t none = 0;
    return word_.compare_exchange_strong(none, kClosed, std::memory_order_seq_cst) || none & kClosed;
  }
  bool closed() const noexcept { return word_.load(std::memory_order_seq_cst) & kClosed; }

  uint32_t now() const noexcept { return word_.load(std::memory_order_seq_cst) & ~kClosed; }

 private:
  static constexpr uint32_t kClosed = 1u << 31;
  std::atomic<uint32_t> word_;
};

}  // namespace gcl
