// The few operating system calls of this layer, wrapped once.
#pragma once

#include <atomic>
#include <cstdint>

namespace coherence {

// Sleeps while *word == expected, for at most `ms`.  Spurious returns are normal; signals end it.  Works between
// processes that map the same file.
void futex_wait(const std::atomic<uint32_t>& word, uint32_t expected, uint32_t ms) noexcept;
void futex_wait_ns(const std::atomic<uint32_t>& word, uint32_t expected, uint64_t ns) noexcept;
// Wakes at most `count` sleepers; returns how many.
int futex_wake(const std::atomic<uint32_t>& word, int count) noexcept;

uint64_t monotonic_ns() noexcept;
// What this process has used so far, all its threads together.
struct ProcessorTime {
  uint64_t user_us = 0, system_us = 0;
};
ProcessorTime processor_time() noexcept;
// Sleeps for about `ns`, less than a second; signals end it.
void nap(uint64_t ns) noexcept;

// Gives the memory behind the bytes [from, to) of a file in memory back to the system, though other processes map it:
// they read zeros there from now on.
void give_memory_back(int fd, uint64_t from, uint64_t to) noexcept;

// What can be told of the process with that number.
struct ProcessSight {
  enum class Is : uint8_t {
    kUnknown,  // it may be there: /proc does not show it, or no descriptor is left to look
    kThere,    // since `start`
    kGone,     // certainly; a zombie is, too
  } is = Is::kUnknown;
  uint64_t start = 0;  // clock ticks since boot; numbers are used again
};
// `proc` is where the proc file system is mounted.
ProcessSight look_at_process(int32_t pid, const char* proc = "/proc") noexcept;
// Identifies the pid namespace: pids mean something only between processes with the same number.  0: not known.
uint64_t pid_namespace() noexcept;

// A tiny lock in shared memory for a few instructions; not recursive.  Its holder may lose the processor: a waiter
// spins a moment, then sleeps until it is woken.  Its holder may be killed, which ends the node.  Where that fences the
// pool, a waiter gives up for good once `*fence` is set (and goes on without harm: no page is touched any more); where
// deaths are repaired, the host ends the waiter's process.  No process pauses under it, or asks a peer.
class SpinGuard {
 public:
  SpinGuard(std::atomic<uint32_t>& word, const std::atomic<uint32_t>* fence = nullptr) noexcept : word_(word) {
    if (!take()) wait(fence);
  }
  ~SpinGuard() {
    if (word_.exchange(kFree, std::memory_order_release) == kAwaited) futex_wake(word_, 1);  // pairs with take()
  }
  SpinGuard(const SpinGuard&) = delete;

 private:
  // What the word says; zeroed memory is a free lock.
  static constexpr uint32_t kFree = 0;
  static constexpr uint32_t kTaken = 1;
  static constexpr uint32_t kAwaited = 2;  // taken, and a waiter may sleep

  bool take() noexcept {
    uint32_t free = kFree;
    return word_.compare_exchange_strong(free, kTaken, std::memory_order_acquire, std::memory_order_relaxed);
  }
  void wait(const std::atomic<uint32_t>* fence) noexcept;
  std::atomic<uint32_t>& word_;
};

}  // namespace coherence
