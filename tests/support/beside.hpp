// Something that runs beside a test, until the test is over: in a process of its own; or, where the test asks for it
// and under ThreadSanitizer, which looks into one process only, in a thread.
#pragma once

#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <new>
#include <thread>

namespace gcl_test {

enum class As { kProcess, kThread };

// Memory that processes share which are forked later; zeros.
class SharedBytes {
 public:
  explicit SharedBytes(size_t bytes) : bytes_(bytes) {
    at_ = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at_ == MAP_FAILED) perror("mmap"), abort();
  }
  ~SharedBytes() { munmap(at_, bytes_); }
  SharedBytes(const SharedBytes&) = delete;
  std::byte* at() const { return static_cast<std::byte*>(at_); }

 private:
  const size_t bytes_;
  void* at_;
};

class Beside {
 public:
  using Over = std::atomic<bool>;
  // `act` returns soon after `over` is set.
  Beside(As as, const std::function<void(const Over&)>& act) {
#ifdef __SANITIZE_THREAD__
    as = As::kThread;
#endif
    if (as == As::kThread) {
      thread_ = std::thread([this, act] { act(over()); });
      return;
    }
    const pid_t parent = getpid();
    pid_ = fork();
    if (pid_ < 0) perror("fork"), abort();
    if (pid_ != 0) return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() == parent) act(over());
    _exit(0);
  }
  ~Beside() {
    over().store(true);
    if (thread_.joinable()) thread_.join();
    if (pid_ > 0) waitpid(pid_, nullptr, 0);
  }
  Beside(const Beside&) = delete;
  pid_t pid() const { return pid_; }  // 0: a thread

 private:
  Over& over() const { return *reinterpret_cast<Over*>(shared_.at()); }
  SharedBytes shared_{sizeof(Over)};
  std::thread thread_;
  pid_t pid_ = 0;
};

}  // namespace gcl_test
