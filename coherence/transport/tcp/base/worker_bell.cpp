#include "coherence/transport/tcp/base/worker_bell.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "coherence/base/verify.hpp"

namespace coherence::tcp {

Result<std::unique_ptr<WorkerBell>> WorkerBell::make(void* memory, Problem* problem) {
  VERIFY(uintptr_t(memory) % 64 == 0);
  const int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (fd < 0) return problem->set(Errc::kSystem, "no descriptor for a bell: %s", strerror(errno));
  return std::unique_ptr<WorkerBell>(new WorkerBell(*static_cast<std::atomic<uint32_t>*>(memory), fd));
}

WorkerBell::~WorkerBell() { ::close(fd_); }

// One of several that ring at once does it.
void WorkerBell::ring_now() noexcept {
  if (sleeps_.exchange(0, std::memory_order_seq_cst) == 0) return;
  const uint64_t one = 1;
  while (write(fd_, &one, sizeof one) < 0 && errno == EINTR) {
  }
}

void WorkerBell::silence() noexcept {
  uint64_t rung;
  while (read(fd_, &rung, sizeof rung) < 0 && errno == EINTR) {
  }
}

}  // namespace coherence::tcp
