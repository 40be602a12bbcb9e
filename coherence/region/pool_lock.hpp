// The pool's lock file: create, load, join, leave and save happen one at a time.
#pragma once

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

namespace coherence {

class PoolLock {
 public:
  enum Patience : int { kWait = 0, kTry = LOCK_NB };

  // With kTry: not held, and errno is EWOULDBLOCK, if another process has it.
  explicit PoolLock(const char* pool_path, Patience patience = kWait) {
    char path[560];
    snprintf(path, sizeof path, "%s.lock", pool_path);
    fd_ = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    while (fd_ >= 0 && flock(fd_, LOCK_EX | patience) != 0)
      if (const int why = errno; why != EINTR) {
        close(fd_);
        fd_ = -1;
        errno = why;
      }
  }
  ~PoolLock() {
    if (fd_ >= 0) close(fd_);
  }
  PoolLock(const PoolLock&) = delete;
  bool held() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

}  // namespace coherence
