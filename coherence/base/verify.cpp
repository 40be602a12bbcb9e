#include "coherence/base/verify.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "coherence/base/failure_report.hpp"

namespace coherence {

namespace {

template <size_t kBytes>
[[noreturn]] void end_with(const char (&text)[kBytes], int bytes) noexcept {
  if (write(STDERR_FILENO, text, std::min(size_t(bytes), kBytes - 1)) < 0) {
  }
  FailureReport::write_all(STDERR_FILENO);
  abort();
}

}  // namespace

void verify_failed(const char* expression, const char* file, int line) noexcept {
  char text[512];
  end_with(text, snprintf(text, sizeof text, "%s:%d: VERIFY(%s) failed\n", file, line, expression));
}

void end_process(const char* why) noexcept {
  char text[512];
  end_with(text, snprintf(text, sizeof text, "gcl: this process cannot go on: %s\n", why));
}

}  // namespace coherence
