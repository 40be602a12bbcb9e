// Wakeup events: futex words in shared memory that processes sleep on.  The caller increments its word, then signals.
#pragma once

#include <atomic>
#include <cstdint>

namespace bufmgr {

// Wakes all processes that sleep on the word.
void signal_wakeup(std::atomic<uint32_t>& word) noexcept;
// Sleeps while the word is `seen`, at most `ms` milliseconds; may return early.
void wait_for_wakeup(const std::atomic<uint32_t>& word, uint32_t seen, uint32_t ms) noexcept;

// Sleeps; no event ends it.
void nap(uint32_t ms) noexcept;

}  // namespace bufmgr
