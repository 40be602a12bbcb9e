// FailingCalls: of the calls of the C library on files below a directory, one fails, or all from one on.
//
//   FailingCalls calls("/dev/shm/test");      // shared with the processes that are forked from here on
//   calls.begin(0);  ...  calls.count();      // none fails
//   calls.begin(3);  ...  calls.failed();     // the third one fails with EIO: which was it?
//
// A program that is linked with failing_calls.cpp, or has the library failing_calls in LD_PRELOAD, calls it in place of
// the C library.  There the environment variable GCL_FAILING_CALLS names a file that has a Plan, and
// GCL_FAILING_PROGRAM the program that is meant: not those that it begins.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

namespace gcl_test {

// Shared by processes.
struct Plan {
  std::atomic<uint64_t> count;     // of calls since begin()
  std::atomic<uint64_t> fails_at;  // 0: none
  std::atomic<uint32_t> goes_on;   // whether those behind it fail, too
  std::atomic<uint32_t> begun;
  int error;
  char below[256];
  char call[32], file[512];  // that failed first
};

class FailingCalls {
 public:
  explicit FailingCalls(const std::string& below);
  ~FailingCalls();
  FailingCalls(const FailingCalls&) = delete;

  void begin(uint64_t fails_at, bool goes_on = false);
  void end() { plan_->begun = 0; }
  uint64_t count() const { return plan_->count; }
  bool has_failed() const { return plan_->call[0] != 0; }
  std::string call() const { return plan_->call; }
  std::string file() const { return plan_->file; }

 private:
  Plan* const plan_;
};

}  // namespace gcl_test
