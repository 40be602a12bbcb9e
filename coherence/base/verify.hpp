// VERIFY: an invariant that holds in every build.  A failure is a bug of ours, never a user's error: the process says
// where and aborts; in PostgreSQL that is a backend crash, which fences the node rather than spreading a wrong page.
#pragma once

namespace coherence {

// Prints "file:line: expression" to stderr, then what the thread's reports tell (failure_report.hpp), and aborts.
// Allocates nothing and takes no lock.
[[noreturn]] void verify_failed(const char* expression, const char* file, int line) noexcept;

// Likewise, of a process that lacks what it cannot do without, memory above all: it says what, and its node ends as in
// a crash, which others repair.
[[noreturn]] void end_process(const char* why) noexcept;

}  // namespace coherence

#define VERIFY(expression) \
  (__builtin_expect(!!(expression), 1) ? void(0) : ::coherence::verify_failed(#expression, __FILE__, __LINE__))
