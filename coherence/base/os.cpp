#include "coherence/base/os.hpp"

#include <fcntl.h>
#include <linux/futex.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace coherence {
namespace {

// A holder that runs is done long before.
constexpr int kSpins = 100;
constexpr uint32_t kSpinSliceMs = 10;  // until the next look at the fence

// Lets a processor's other thread go first, and tells that this is a loop.
void relax() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb");
#endif
}

long futex(const std::atomic<uint32_t>& word, int op, uint32_t value, const timespec* timeout) noexcept {
  return syscall(SYS_futex, reinterpret_cast<const uint32_t*>(&word), op, value, timeout, nullptr, 0);
}

}  // namespace

void futex_wait(const std::atomic<uint32_t>& word, uint32_t expected, uint32_t ms) noexcept {
  futex_wait_ns(word, expected, uint64_t{ms} * 1000000);
}

void futex_wait_ns(const std::atomic<uint32_t>& word, uint32_t expected, uint64_t ns) noexcept {
  timespec t{time_t(ns / 1000000000), long(ns % 1000000000)};
  futex(word, FUTEX_WAIT, expected, &t);
}

int futex_wake(const std::atomic<uint32_t>& word, int count) noexcept {
  long n = futex(word, FUTEX_WAKE, uint32_t(count), nullptr);
  return n > 0 ? int(n) : 0;
}

uint64_t monotonic_ns() noexcept {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return uint64_t(t.tv_sec) * 1000000000 + uint64_t(t.tv_nsec);
}

ProcessorTime processor_time() noexcept {
  rusage used;
  getrusage(RUSAGE_SELF, &used);
  const auto us = [](const timeval& t) { return uint64_t(t.tv_sec) * 1'000'000 + uint64_t(t.tv_usec); };
  return {us(used.ru_utime), us(used.ru_stime)};
}

void nap(uint64_t ns) noexcept {
  timespec t{0, long(ns)};
  clock_nanosleep(CLOCK_MONOTONIC, 0, &t, nullptr);
}

void give_memory_back(int fd, uint64_t from, uint64_t to) noexcept {
  (void)fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, off_t(from), off_t(to - from));
}

// Whether it is gone is the kernel's to say: a /proc that is mounted with hidepid=2 has no entry for others' processes
// that live, and to read it takes a descriptor.
ProcessSight look_at_process(int32_t pid, const char* proc) noexcept {
  if (pid <= 0) return {};
  if (kill(pid, 0) != 0 && errno == ESRCH) return {ProcessSight::Is::kGone};
  char path[256], text[1024];
  snprintf(path, sizeof path, "%s/%d/stat", proc, pid);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return {};
  ssize_t n = read(fd, text, sizeof text - 1);
  close(fd);
  if (n <= 0) return {};
  text[n] = 0;
  const char* p = strrchr(text, ')');  // the command may hold anything, spaces and parentheses too
  if (!p) return {};
  if (p[1] == ' ' && (p[2] == 'Z' || p[2] == 'X')) return {ProcessSight::Is::kGone};  // it touches nothing any more
  for (int field = 2; field < 22 && p; field++) p = strchr(p + 1, ' ');
  const uint64_t start = p ? strtoull(p + 1, nullptr, 10) : 0;
  return start ? ProcessSight{ProcessSight::Is::kThere, start} : ProcessSight();
}

uint64_t pid_namespace() noexcept {
  struct stat s;
  return stat("/proc/self/ns/pid", &s) == 0 ? s.st_ino : 0;
}

// A waiter that has slept leaves the word awaited when it gets the lock, as others may sleep still: that costs a wake
// too many.
void SpinGuard::wait(const std::atomic<uint32_t>* fence) noexcept {
  for (int i = 0; i < kSpins; i++) {
    if (word_.load(std::memory_order_relaxed) == kFree && take()) return;
    relax();
  }
  while (word_.exchange(kAwaited, std::memory_order_acquire) != kFree) {  // pairs with the destructor
    futex_wait(word_, kAwaited, kSpinSliceMs);
    if (fence && fence->load(std::memory_order_relaxed)) return;
  }
}

}  // namespace coherence
