// Tests whose nodes are processes.
#pragma once

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <functional>
#include <utility>

namespace gcl_test {

// In a child, whose end is what the test sees of it.
#define CHILD_VERIFY(x)                                       \
  do {                                                        \
    if (!(x)) {                                               \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #x); \
      _exit(1);                                               \
    }                                                         \
  } while (0)

inline pid_t child(const std::function<void()>& body) {
  const pid_t pid = fork();
  if (pid != 0) return pid;
  body();
  _exit(0);
}

inline bool ended_well(pid_t pid) {
  int status = 0;
  return waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

// Whether a thread of this process, by its id, waits for something; 0: there is none yet.
inline bool thread_sleeps(int tid) {
  char path[64], text[256] = "";
  snprintf(path, sizeof path, "/proc/self/task/%d/stat", tid);
  FILE* f = tid != 0 ? fopen(path, "r") : nullptr;
  if (f == nullptr) return false;
  const bool read = fgets(text, sizeof text, f) != nullptr;
  fclose(f);
  const char* end = strrchr(text, ')');
  return read && end != nullptr && end[1] != 0 && end[2] == 'S';
}

// A child that is forked before this process has threads, and does nothing until it is told to: a child of a process
// with threads may find a lock of the allocator held for ever, and ThreadSanitizer lets it start no thread.
class WaitingChild {
 public:
  explicit WaitingChild(const std::function<void()>& body) {
    int ends[2];
    CHILD_VERIFY(pipe(ends) == 0);
    go_ = ends[1];
    pid_ = child([&] {
      char byte;
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      CHILD_VERIFY(read(ends[0], &byte, 1) == 1);
      body();
    });
    close(ends[0]);
  }
  WaitingChild(WaitingChild&& other) noexcept : pid_(std::exchange(other.pid_, 0)), go_(std::exchange(other.go_, -1)) {}
  ~WaitingChild() {
    kill();
    if (go_ >= 0) close(go_);
  }
  void go() { CHILD_VERIFY(write(go_, "", 1) == 1); }
  // The signal that has ended it; 0: none.
  int ended_by() {
    int status = 0;
    return waitpid(std::exchange(pid_, 0), &status, 0) > 0 && WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  }
  bool ended_well() { return gcl_test::ended_well(std::exchange(pid_, 0)); }
  void kill() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    waitpid(std::exchange(pid_, 0), nullptr, 0);
  }

 private:
  pid_t pid_ = 0;
  int go_ = -1;
};

}  // namespace gcl_test
