#include "coherence/base/failure_report.hpp"

#include <unistd.h>

#include <atomic>
#include <cerrno>

namespace coherence {
namespace {

// A table and no list: reports need not end in the order, nor in the thread, in which they began.  A process of
// PostgreSQL has a few; where tests have more, some are not heard.
constexpr int kReportsMax = 256;
std::atomic<FailureReport*> reports[kReportsMax];
std::atomic<bool> telling = false;

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

FailureReport::FailureReport() noexcept : thread_(pthread_self()) {
  for (place_ = 0; place_ < kReportsMax; ++place_) {
    FailureReport* nobody = nullptr;
    if (reports[place_].compare_exchange_strong(nobody, this, std::memory_order_release)) return;
  }
}

FailureReport::~FailureReport() {
  if (place_ < kReportsMax) reports[place_].store(nullptr, std::memory_order_release);
}

void FailureReport::write_all(int fd) noexcept {
  if (telling.exchange(true, std::memory_order_acq_rel)) return;
  Out out(fd);
  for (auto& report : reports) {
    const FailureReport* r = report.load(std::memory_order_acquire);
    if (r != nullptr && pthread_equal(r->thread_, pthread_self())) r->tell(out);
  }
  telling.store(false, std::memory_order_release);
}

void FailureReport::Out::line(const Text& text) noexcept {
  write_whole(fd_, text.c_str(), text.size());
  write_whole(fd_, "\n", 1);
}

}  // namespace coherence
