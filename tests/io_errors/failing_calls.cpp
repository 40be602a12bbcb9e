#include "failing_calls.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace gcl_test {
namespace {

Plan* the_plan = nullptr;

// Of a program that has this library by LD_PRELOAD.
[[gnu::constructor]] void find_plan() {
  const char* const name = getenv("GCL_FAILING_CALLS");
  const char* const program = getenv("GCL_FAILING_PROGRAM");
  if (name == nullptr || program == nullptr || strcmp(program, program_invocation_short_name) != 0) return;
  const int fd = int(syscall(SYS_openat, AT_FDCWD, name, O_RDWR | O_CLOEXEC, 0));
  if (fd < 0) return;
  void* const at =
      reinterpret_cast<void*>(syscall(SYS_mmap, nullptr, sizeof(Plan), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
  syscall(SYS_close, fd);
  if (at != MAP_FAILED) the_plan = static_cast<Plan*>(at);
}

// A call on that file: whether it fails.  errno is set then.
bool fails(const char* call, const char* file) {
  Plan* const plan = the_plan;
  if (plan == nullptr || plan->begun == 0 || strncmp(file, plan->below, strlen(plan->below)) != 0) return false;
  const uint64_t number = ++plan->count, at = plan->fails_at;
  if (at == 0 || number < at || (number > at && plan->goes_on == 0)) return false;
  if (number == at) {
    snprintf(plan->call, sizeof plan->call, "%s", call);
    snprintf(plan->file, sizeof plan->file, "%s", file);
  }
  errno = plan->error;
  return true;
}

bool fails(const char* call, int fd) {
  if (the_plan == nullptr || the_plan->begun == 0) return false;
  const int before = errno;
  char link[64], file[512];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const ssize_t length = readlink(link, file, sizeof file - 1);
  errno = before;
  if (length < 0) return false;
  file[length] = 0;
  return fails(call, file);
}

int open_file(int directory, const char* file, int flags, mode_t mode) {
  if (fails("open", file)) return -1;
  return int(syscall(SYS_openat, directory, file, flags, mode));
}

mode_t mode_of(int flags, va_list arguments) { return (flags & O_CREAT) != 0 ? va_arg(arguments, mode_t) : 0; }

}  // namespace

FailingCalls::FailingCalls(const std::string& below)
    : plan_(static_cast<Plan*>(reinterpret_cast<void*>(
          syscall(SYS_mmap, nullptr, sizeof(Plan), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)))) {
  snprintf(plan_->below, sizeof plan_->below, "%s", below.c_str());
  plan_->error = EIO;
  the_plan = plan_;
}

FailingCalls::~FailingCalls() {
  the_plan = nullptr;
  munmap(plan_, sizeof *plan_);
}

void FailingCalls::begin(uint64_t fails_at, bool goes_on) {
  plan_->count = 0;
  plan_->fails_at = fails_at;
  plan_->goes_on = goes_on;
  plan_->call[0] = plan_->file[0] = 0;
  plan_->begun = 1;
}

}  // namespace gcl_test

using gcl_test::fails;

extern "C" {

// NOLINTBEGIN: the names are the C library's
int open(const char* file, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = gcl_test::mode_of(flags, arguments);
  va_end(arguments);
  return gcl_test::open_file(AT_FDCWD, file, flags, mode);
}
int open64(const char* file, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = gcl_test::mode_of(flags, arguments);
  va_end(arguments);
  return gcl_test::open_file(AT_FDCWD, file, flags, mode);
}
int openat(int directory, const char* file, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = gcl_test::mode_of(flags, arguments);
  va_end(arguments);
  return gcl_test::open_file(directory, file, flags, mode);
}

ssize_t read(int fd, void* to, size_t bytes) {
  return fails("read", fd) ? -1 : ssize_t(syscall(SYS_read, fd, to, bytes));
}
ssize_t pread(int fd, void* to, size_t bytes, off_t at) {
  return fails("read", fd) ? -1 : ssize_t(syscall(SYS_pread64, fd, to, bytes, at));
}
ssize_t pread64(int fd, void* to, size_t bytes, off64_t at) { return pread(fd, to, bytes, at); }
ssize_t write(int fd, const void* from, size_t bytes) {
  return fails("write", fd) ? -1 : ssize_t(syscall(SYS_write, fd, from, bytes));
}
ssize_t pwrite(int fd, const void* from, size_t bytes, off_t at) {
  return fails("write", fd) ? -1 : ssize_t(syscall(SYS_pwrite64, fd, from, bytes, at));
}
ssize_t pwrite64(int fd, const void* from, size_t bytes, off64_t at) { return pwrite(fd, from, bytes, at); }

int fsync(int fd) { return fails("fsync", fd) ? -1 : int(syscall(SYS_fsync, fd)); }
int fdatasync(int fd) { return fails("fsync", fd) ? -1 : int(syscall(SYS_fdatasync, fd)); }
int syncfs(int fd) noexcept { return fails("syncfs", fd) ? -1 : int(syscall(SYS_syncfs, fd)); }

int ftruncate(int fd, off_t size) noexcept {
  return fails("ftruncate", fd) ? -1 : int(syscall(SYS_ftruncate, fd, size));
}
int ftruncate64(int fd, off64_t size) noexcept { return ftruncate(fd, size); }
int fallocate(int fd, int mode, off_t at, off_t bytes) {
  return fails("fallocate", fd) ? -1 : int(syscall(SYS_fallocate, fd, mode, at, bytes));
}
int fallocate64(int fd, int mode, off64_t at, off64_t bytes) { return fallocate(fd, mode, at, bytes); }
int posix_fallocate(int fd, off_t at, off_t bytes) { return fallocate(fd, 0, at, bytes) == 0 ? 0 : errno; }
int posix_fallocate64(int fd, off64_t at, off64_t bytes) { return posix_fallocate(fd, at, bytes); }

void* mmap(void* where, size_t bytes, int protection, int flags, int fd, off_t at) noexcept {
  if (fd >= 0 && fails("mmap", fd)) return MAP_FAILED;
  return reinterpret_cast<void*>(syscall(SYS_mmap, where, bytes, protection, flags, fd, at));
}
void* mmap64(void* where, size_t bytes, int protection, int flags, int fd, off64_t at) noexcept {
  return mmap(where, bytes, protection, flags, fd, at);
}

int rename(const char* from, const char* to) noexcept {
  return fails("rename", from) ? -1 : int(syscall(SYS_renameat, AT_FDCWD, from, AT_FDCWD, to));
}
int unlink(const char* file) noexcept {
  const bool is_there = syscall(SYS_faccessat, AT_FDCWD, file, F_OK) == 0;
  return is_there && fails("unlink", file) ? -1 : int(syscall(SYS_unlinkat, AT_FDCWD, file, 0));
}
// NOLINTEND
}
