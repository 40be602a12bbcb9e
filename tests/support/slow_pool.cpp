// A library to be loaded before others (LD_PRELOAD), with which a small pool takes as long as a large one: a process
// sleeps when it reads or writes 64 KB of a file at once, as processes do that load or save a pool; and the clock that
// tells gclctl how long it has waited runs eight times as fast.
#include <errno.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>

namespace {

constexpr size_t kChunk = 65536;
constexpr long kMomentNs = 40'000'000;
constexpr int64_t kFaster = 8;

void sleep_at(size_t bytes) noexcept {
  const timespec moment = {0, kMomentNs};
  if (bytes == kChunk) nanosleep(&moment, nullptr);
}

bool in_gclctl() noexcept {
  static const bool is = strcmp(program_invocation_short_name, "gclctl") == 0;
  return is;
}

}  // namespace

extern "C" ssize_t pread(int fd, void* to, size_t bytes, off_t at) {
  sleep_at(bytes);
  return syscall(SYS_pread64, fd, to, bytes, at);
}
extern "C" ssize_t pread64(int fd, void* to, size_t bytes, off64_t at) { return pread(fd, to, bytes, at); }

extern "C" ssize_t pwrite(int fd, const void* from, size_t bytes, off_t at) {
  sleep_at(bytes);
  return syscall(SYS_pwrite64, fd, from, bytes, at);
}
extern "C" ssize_t pwrite64(int fd, const void* from, size_t bytes, off64_t at) { return pwrite(fd, from, bytes, at); }

extern "C" int clock_gettime(clockid_t clock, timespec* t) noexcept {
  const int done = int(syscall(SYS_clock_gettime, clock, t));
  if (done != 0 || clock != CLOCK_MONOTONIC || !in_gclctl()) return done;
  const int64_t ns = (t->tv_sec * 1'000'000'000 + t->tv_nsec) * kFaster;
  t->tv_sec = ns / 1'000'000'000;
  t->tv_nsec = ns % 1'000'000'000;
  return 0;
}
