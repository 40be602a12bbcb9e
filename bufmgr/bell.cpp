#include "bufmgr/bell.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <climits>
#include <ctime>

namespace bufmgr {

void ring_bell(std::atomic<uint32_t>& word) noexcept {
  syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

void wait_bell(const std::atomic<uint32_t>& word, uint32_t seen, uint32_t ms) noexcept {
  const timespec limit{time_t(ms / 1000), long(ms % 1000) * 1000000};
  syscall(SYS_futex, &word, FUTEX_WAIT, seen, &limit, nullptr, 0);
}

void nap(uint32_t ms) noexcept {
  const std::atomic<uint32_t> nobody{0};
  wait_bell(nobody, 0, ms);
}

}  // namespace bufmgr
