#include "coherence/base/verify.hpp"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "coherence/base/failure_report.hpp"

namespace coherence {

void verify_failed(const char* expression, const char* file, int line) noexcept {
  char text[512];
  int n = snprintf(text, sizeof text, "%s:%d: VERIFY(%s) failed\n", file, line, expression);
  if (n > int(sizeof text) - 1) n = int(sizeof text) - 1;
  if (write(STDERR_FILENO, text, size_t(n)) < 0) {
  }
  FailureReport::write_all(STDERR_FILENO);
  abort();
}

}  // namespace coherence
