// A futex word in shared memory that somebody may sleep on.  The word itself is the caller's: it grows when there is
// news, and only then is the bell rung.
#pragma once

#include <atomic>
#include <cstdint>

namespace bufmgr {

void ring_bell(std::atomic<uint32_t>& word) noexcept;
// Sleeps while the word is `seen`, at most `ms` milliseconds; may return early.
void wait_bell(const std::atomic<uint32_t>& word, uint32_t seen, uint32_t ms) noexcept;

// Sleeps for want of anything to be woken by.
void nap(uint32_t ms) noexcept;

}  // namespace bufmgr
