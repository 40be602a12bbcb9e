// The C library's functions that make, change or remove names, for the processes that are recorded.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <string>

#include "tests/power/recorder.hpp"

using power::Broken;
using power::Kind;
using power::Recorder;
using Change = power::Recorder::Change;

namespace {

template <typename Function>
Function* next(Function*, const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

bool recorded(int directory, const char* path, std::string* full) {
  Recorder* recorder = Recorder::get();
  return recorder != nullptr && recorder->has(directory, path, full);
}

// Calls `real`, which returns a file's number; it may make the file.
template <typename Real>
int open_recorded(const std::string& full, int flags, Real real) {
  Change change(*Recorder::get());
  struct stat s;
  const bool was_there = lstat(full.c_str(), &s) == 0;
  const int fd = real();
  if (fd < 0 || fstat(fd, &s) != 0 || !S_ISREG(s.st_mode)) return fd;
  const uint64_t what = (was_there ? uint64_t{0} : power::kCreated) | ((flags & O_TRUNC) != 0 ? power::kTruncated : 0);
  if (what != 0) change.opened(full, s.st_ino, what);
  return fd;
}

int open_at(int directory, const char* path, int flags, mode_t mode) {
  static auto* const real = next(&openat, "openat");
  std::string full;
  if ((flags & (O_CREAT | O_TRUNC)) == 0 || !recorded(directory, path, &full))
    return real(directory, path, flags, mode);
  return open_recorded(full, flags, [&] { return real(directory, path, flags, mode); });
}

mode_t mode_of(int flags, va_list list) {
  return (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(list, mode_t) : 0;
}

FILE* open_stream(const char* path, const char* mode, FILE* (*real)(const char*, const char*)) {
  std::string full;
  if (mode[0] == 'r' || !recorded(AT_FDCWD, path, &full)) return real(path, mode);
  FILE* stream = nullptr;
  open_recorded(full, mode[0] == 'w' ? O_TRUNC : 0, [&] {
    stream = real(path, mode);
    return stream == nullptr ? -1 : fileno(stream);
  });
  return stream;
}

// Two paths of which both are recorded, or none.
template <typename Real>
int two_names(Kind kind, int a, const char* from, int b, const char* to, Real real) {
  std::string full_from, full_to;
  const bool from_is = recorded(a, from, &full_from), to_is = recorded(b, to, &full_to);
  if (!from_is && !to_is) return real();
  if (from_is != to_is) Recorder::get()->breaks(Broken::kFromOutside);
  Change change(*Recorder::get());
  const int done = real();
  if (done == 0) change.named(kind, full_from, full_to);
  return done;
}

template <typename Real>
int one_name(Kind kind, int directory, const char* path, Real real) {
  std::string full;
  if (!recorded(directory, path, &full)) return real();
  Change change(*Recorder::get());
  const int done = real();
  struct stat s = {};
  if (done == 0 && kind == Kind::kMkdir) lstat(full.c_str(), &s);
  if (done == 0) change.named(kind, full, "", s.st_ino);
  return done;
}

}  // namespace

extern "C" {

#define OPEN(name)                               \
  int name(const char* path, int flags, ...) {   \
    va_list list;                                \
    va_start(list, flags);                       \
    const mode_t mode = mode_of(flags, list);    \
    va_end(list);                                \
    return open_at(AT_FDCWD, path, flags, mode); \
  }
#define OPENAT(name)                                          \
  int name(int directory, const char* path, int flags, ...) { \
    va_list list;                                             \
    va_start(list, flags);                                    \
    const mode_t mode = mode_of(flags, list);                 \
    va_end(list);                                             \
    return open_at(directory, path, flags, mode);             \
  }
OPEN(open)
OPEN(open64)
OPENAT(openat64)

// What the compiler makes of open() where it knows that there is no mode.
int __open_2(const char* path, int flags) { return open_at(AT_FDCWD, path, flags, 0); }
int __open64_2(const char* path, int flags) { return open_at(AT_FDCWD, path, flags, 0); }
int __openat_2(int directory, const char* path, int flags) { return open_at(directory, path, flags, 0); }
int __openat64_2(int directory, const char* path, int flags) { return open_at(directory, path, flags, 0); }

int openat(int directory, const char* path, int flags, ...) {
  va_list list;
  va_start(list, flags);
  const mode_t mode = mode_of(flags, list);
  va_end(list);
  return open_at(directory, path, flags, mode);
}

int creat(const char* path, mode_t mode) { return open_at(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode); }

FILE* fopen(const char* path, const char* mode) {
  static auto* const real = next(&fopen, "fopen");
  return open_stream(path, mode, real);
}

FILE* fopen64(const char* path, const char* mode) { return fopen(path, mode); }

int rename(const char* from, const char* to) noexcept {
  static auto* const real = next(&rename, "rename");
  return two_names(Kind::kRename, AT_FDCWD, from, AT_FDCWD, to, [&] { return real(from, to); });
}

int renameat(int a, const char* from, int b, const char* to) noexcept {
  static auto* const real = next(&renameat, "renameat");
  return two_names(Kind::kRename, a, from, b, to, [&] { return real(a, from, b, to); });
}

int link(const char* from, const char* to) noexcept {
  static auto* const real = next(&link, "link");
  return two_names(Kind::kLink, AT_FDCWD, from, AT_FDCWD, to, [&] { return real(from, to); });
}

int symlink(const char* to, const char* path) noexcept {
  static auto* const real = next(&symlink, "symlink");
  std::string full;
  if (recorded(AT_FDCWD, path, &full)) Recorder::get()->breaks(Broken::kSymlink);
  return real(to, path);
}

int unlink(const char* path) noexcept {
  static auto* const real = next(&unlink, "unlink");
  return one_name(Kind::kUnlink, AT_FDCWD, path, [&] { return real(path); });
}

int rmdir(const char* path) noexcept {
  static auto* const real = next(&rmdir, "rmdir");
  return one_name(Kind::kRmdir, AT_FDCWD, path, [&] { return real(path); });
}

int unlinkat(int directory, const char* path, int flags) noexcept {
  static auto* const real = next(&unlinkat, "unlinkat");
  return one_name((flags & AT_REMOVEDIR) != 0 ? Kind::kRmdir : Kind::kUnlink, directory, path,
                  [&] { return real(directory, path, flags); });
}

int remove(const char* path) noexcept {
  struct stat s;
  return lstat(path, &s) == 0 && S_ISDIR(s.st_mode) ? rmdir(path) : unlink(path);
}

int mkdir(const char* path, mode_t mode) noexcept {
  static auto* const real = next(&mkdir, "mkdir");
  return one_name(Kind::kMkdir, AT_FDCWD, path, [&] { return real(path, mode); });
}

int mkdirat(int directory, const char* path, mode_t mode) noexcept {
  static auto* const real = next(&mkdirat, "mkdirat");
  return one_name(Kind::kMkdir, directory, path, [&] { return real(directory, path, mode); });
}

}  // extern "C"
