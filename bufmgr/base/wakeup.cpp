#include "bufmgr/base/wakeup.hpp"

#include <climits>

#include "coherence/base/os.hpp"

namespace bufmgr {

void signal_wakeup(std::atomic<uint32_t>& word) noexcept { coherence::futex_wake(word, INT_MAX); }

void wait_for_wakeup(const std::atomic<uint32_t>& word, uint32_t seen, uint32_t ms) noexcept {
  coherence::futex_wait(word, seen, ms);
}

void nap(uint32_t ms) noexcept { coherence::nap(uint64_t{ms} * 1'000'000); }

}  // namespace bufmgr
