// The C library's functions that change what files have, or make that durable, for the processes that are recorded.
//
// LD_PRELOAD brings these before the library's.  What a C stream has written is recorded as a whole when it is flushed
// or closed: the library writes it without a call that could be seen.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <ctime>
#include <string>
#include <vector>

#include "tests/power/recorder.hpp"

using power::Kind;
using power::Recorder;
using Change = power::Recorder::Change;

namespace {

template <typename Function>
Function* next(Function*, const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

bool recorded(int fd, uint64_t* inode) {
  Recorder* recorder = Recorder::get();
  return recorder != nullptr && recorder->has(fd, inode);
}

uint64_t size_of(int fd) {
  struct stat s;
  return fstat(fd, &s) == 0 ? uint64_t(s.st_size) : 0;
}

// A file that was opened for that is durable whenever a write returns.
void sync_if_asked(const Change& change, int fd, uint64_t inode) {
  const int flags = fcntl(fd, F_GETFL);
  if (flags >= 0 && (flags & O_DSYNC) != 0) change.synced(Kind::kSync, inode, Recorder::get()->count());
}

uint64_t write_position(int fd) {
  const int flags = fcntl(fd, F_GETFL);
  return flags >= 0 && (flags & O_APPEND) != 0 ? size_of(fd) : uint64_t(lseek(fd, 0, SEEK_CUR));
}

void wrote_vectors(const Change& change, uint64_t inode, uint64_t at, const iovec* from, int count, ssize_t done) {
  for (int i = 0; i < count && done > 0; ++i) {
    const uint64_t bytes = std::min(uint64_t(done), uint64_t(from[i].iov_len));
    change.wrote(inode, at, from[i].iov_base, bytes);
    at += bytes;
    done -= ssize_t(bytes);
  }
}

// Between one and two times as long as it takes: other processes go on meanwhile.
void take_time(uint32_t us) {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  if (us != 0) usleep(us + uint32_t(now.tv_nsec / 1000) % us);
}

template <typename Real>
int sync_file(int fd, Real real) {
  Recorder* recorder = Recorder::get();
  uint64_t inode = 0;
  if (recorder == nullptr || !(recorder->has(fd, &inode) || recorder->has_directory(fd, &inode))) return real(fd);
  const uint64_t upto = recorder->count();  // power.durable-when-told
  const int done = real(fd);
  if (done == 0) {
    take_time(recorder->sync_us());
    Change(*recorder).synced(Kind::kSync, inode, upto);
  }
  return done;
}

// All that the stream's file has, now that the library has written it.
void record_stream(FILE* stream) {
  const int fd = fileno(stream), error = errno;
  uint64_t inode;
  if (fd < 0 || !recorded(fd, &inode) || (fcntl(fd, F_GETFL) & O_ACCMODE) == O_RDONLY) return;
  Change change(*Recorder::get());
  char name[64];
  snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
  const int again = int(syscall(SYS_openat, AT_FDCWD, name, O_RDONLY | O_CLOEXEC));
  std::vector<char> bytes(size_of(fd));
  if (again >= 0 && !bytes.empty() && pread(again, bytes.data(), bytes.size(), 0) == ssize_t(bytes.size()))
    change.wrote(inode, 0, bytes.data(), bytes.size());
  syscall(SYS_close, again);
  errno = error;
}

}  // namespace

extern "C" {

ssize_t write(int fd, const void* from, size_t bytes) {
  static auto* const real = next(&write, "write");
  uint64_t inode;
  if (!recorded(fd, &inode)) return real(fd, from, bytes);
  Change change(*Recorder::get());
  const uint64_t at = write_position(fd);
  const ssize_t done = real(fd, from, bytes);
  if (done > 0) change.wrote(inode, at, from, uint64_t(done));
  sync_if_asked(change, fd, inode);
  return done;
}

ssize_t pwrite(int fd, const void* from, size_t bytes, off_t at) {
  static auto* const real = next(&pwrite, "pwrite");
  uint64_t inode;
  if (!recorded(fd, &inode)) return real(fd, from, bytes, at);
  Change change(*Recorder::get());
  const ssize_t done = real(fd, from, bytes, at);
  if (done > 0) change.wrote(inode, uint64_t(at), from, uint64_t(done));
  sync_if_asked(change, fd, inode);
  return done;
}

ssize_t pwrite64(int fd, const void* from, size_t bytes, off64_t at) { return pwrite(fd, from, bytes, at); }

ssize_t writev(int fd, const iovec* from, int count) {
  static auto* const real = next(&writev, "writev");
  uint64_t inode;
  if (!recorded(fd, &inode)) return real(fd, from, count);
  Change change(*Recorder::get());
  const uint64_t at = write_position(fd);
  const ssize_t done = real(fd, from, count);
  wrote_vectors(change, inode, at, from, count, done);
  sync_if_asked(change, fd, inode);
  return done;
}

ssize_t pwritev(int fd, const iovec* from, int count, off_t at) {
  static auto* const real = next(&pwritev, "pwritev");
  uint64_t inode;
  if (!recorded(fd, &inode)) return real(fd, from, count, at);
  Change change(*Recorder::get());
  const ssize_t done = real(fd, from, count, at);
  wrote_vectors(change, inode, uint64_t(at), from, count, done);
  sync_if_asked(change, fd, inode);
  return done;
}

ssize_t pwritev64(int fd, const iovec* from, int count, off64_t at) { return pwritev(fd, from, count, at); }

int ftruncate(int fd, off_t size) noexcept {
  static auto* const real = next(&ftruncate, "ftruncate");
  uint64_t inode;
  if (!recorded(fd, &inode)) return real(fd, size);
  Change change(*Recorder::get());
  const int done = real(fd, size);
  if (done == 0) change.sized(inode, uint64_t(size));
  return done;
}

int ftruncate64(int fd, off64_t size) noexcept { return ftruncate(fd, size); }

int truncate(const char* path, off_t size) noexcept {
  static auto* const real = next(&truncate, "truncate");
  std::string full;
  struct stat s;
  if (Recorder::get() == nullptr || !Recorder::get()->has(AT_FDCWD, path, &full)) return real(path, size);
  Change change(*Recorder::get());
  const int done = real(path, size);
  if (done == 0 && stat(path, &s) == 0) change.sized(s.st_ino, uint64_t(size));
  return done;
}

int truncate64(const char* path, off64_t size) noexcept { return truncate(path, size); }

int posix_fallocate(int fd, off_t at, off_t bytes) {
  static auto* const real = next(&posix_fallocate, "posix_fallocate");
  uint64_t inode;
  if (!recorded(fd, &inode)) return real(fd, at, bytes);
  Change change(*Recorder::get());
  const uint64_t before = size_of(fd);
  const int done = real(fd, at, bytes);
  if (size_of(fd) != before) change.sized(inode, size_of(fd));
  return done;
}

int posix_fallocate64(int fd, off64_t at, off64_t bytes) { return posix_fallocate(fd, at, bytes); }

int fallocate(int fd, int mode, off_t at, off_t bytes) {
  static auto* const real = next(&fallocate, "fallocate");
  uint64_t inode;
  if (!recorded(fd, &inode)) return real(fd, mode, at, bytes);
  Change change(*Recorder::get());
  const uint64_t before = size_of(fd);
  const int done = real(fd, mode, at, bytes);
  if (done == 0 && (mode & (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_ZERO_RANGE)) != 0)
    change.zeroed(inode, uint64_t(at), uint64_t(bytes));
  if (size_of(fd) != before) change.sized(inode, size_of(fd));
  return done;
}

int fallocate64(int fd, int mode, off64_t at, off64_t bytes) { return fallocate(fd, mode, at, bytes); }

// A process that asks for these can do without.
ssize_t copy_file_range(int from, off64_t* from_at, int to, off64_t* to_at, size_t bytes, unsigned flags) {
  static auto* const real = next(&copy_file_range, "copy_file_range");
  uint64_t inode;
  if (!recorded(to, &inode)) return real(from, from_at, to, to_at, bytes, flags);
  errno = ENOSYS;
  return -1;
}

ssize_t sendfile(int to, int from, off_t* at, size_t bytes) noexcept {
  static auto* const real = next(&sendfile, "sendfile");
  uint64_t inode;
  if (!recorded(to, &inode)) return real(to, from, at, bytes);
  errno = ENOSYS;
  return -1;
}

ssize_t sendfile64(int to, int from, off64_t* at, size_t bytes) noexcept { return sendfile(to, from, at, bytes); }

int fsync(int fd) {
  static auto* const real = next(&fsync, "fsync");
  return sync_file(fd, real);
}

int fdatasync(int fd) {
  static auto* const real = next(&fdatasync, "fdatasync");
  return sync_file(fd, real);
}

int syncfs(int fd) noexcept {
  static auto* const real = next(&syncfs, "syncfs");
  Recorder* recorder = Recorder::get();
  const uint64_t upto = recorder == nullptr ? 0 : recorder->count();
  const int done = real(fd);
  if (recorder != nullptr && done == 0) Change(*recorder).synced(Kind::kSyncAll, 0, upto);
  return done;
}

int fflush(FILE* stream) {
  static auto* const real = next(&fflush, "fflush");
  const int done = real(stream);
  if (stream != nullptr && Recorder::get() != nullptr) record_stream(stream);
  return done;
}

int fclose(FILE* stream) {
  static auto* const real = next(&fclose, "fclose");
  static auto* const flush = next(&fflush, "fflush");
  if (Recorder::get() != nullptr) {
    flush(stream);
    record_stream(stream);
  }
  return real(stream);
}

}  // extern "C"
