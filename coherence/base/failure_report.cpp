#include "coherence/base/failure_report.hpp"

#include <unistd.h>

#include <cerrno>

namespace coherence {
namespace {

thread_local FailureReport* newest = nullptr;
thread_local bool telling = false;

void write_whole(int fd, const char* bytes, size_t count) noexcept {
  while (count > 0) {
    const ssize_t n = write(fd, bytes, count);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;
    bytes += n;
    count -= size_t(n);
  }
}

}  // namespace

FailureReport::FailureReport() noexcept : next_(newest) { newest = this; }

// They need not end in the order in which they began, nor in the thread that made them: who is not found there is
// never asked again, as its thread has ended.
FailureReport::~FailureReport() {
  for (FailureReport** at = &newest; *at != nullptr; at = &(*at)->next_)
    if (*at == this) {
      *at = next_;
      return;
    }
}

void FailureReport::write_all(int fd) noexcept {
  if (telling) return;
  telling = true;
  Out out(fd);
  for (const FailureReport* at = newest; at != nullptr; at = at->next_) at->tell(out);
  telling = false;
}

void FailureReport::Out::line(const Text& text) noexcept {
  write_whole(fd_, text.c_str(), text.size());
  write_whole(fd_, "\n", 1);
}

}  // namespace coherence
