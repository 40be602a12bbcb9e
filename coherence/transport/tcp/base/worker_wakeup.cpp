#include "coherence/transport/tcp/base/worker_wakeup.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "coherence/base/os.hpp"
#include "coherence/base/verify.hpp"

namespace coherence::tcp {

Result<std::unique_ptr<WorkerWakeup>> WorkerWakeup::make(void* memory, Problem* problem) {
  VERIFY(uintptr_t(memory) % 64 == 0);
  const int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (fd < 0) return problem->set(Errc::kSystem, "no descriptor for a bell: %s", strerror(errno));
  return std::unique_ptr<WorkerWakeup>(new WorkerWakeup(*static_cast<Shared*>(memory), fd));
}

WorkerWakeup::~WorkerWakeup() { ::close(fd_); }

// One of several that signal it at once does it.
void WorkerWakeup::signal_now() noexcept {
  if (shared_.sleeps.exchange(0, std::memory_order_seq_cst) == 0) return;
  const uint64_t one = 1;
  while (write(fd_, &one, sizeof one) < 0 && errno == EINTR) {
  }
}

void WorkerWakeup::set_worker() noexcept {
  shared_.start.store(look_at_process(getpid()).start, std::memory_order_relaxed);
  shared_.worker.store(getpid(), std::memory_order_release);  // pairs with worker_is_gone()
}

bool WorkerWakeup::worker_is_gone() const noexcept {
  const int32_t pid = shared_.worker.load(std::memory_order_acquire);  // pairs with set_worker()
  if (pid == 0) return false;
  const ProcessSight seen = look_at_process(pid);
  const uint64_t start = shared_.start.load(std::memory_order_relaxed);
  return seen.is == ProcessSight::Is::kGone || (seen.is == ProcessSight::Is::kThere && seen.start != start);
}

void WorkerWakeup::clear() noexcept {
  uint64_t count;
  while (read(fd_, &count, sizeof count) < 0 && errno == EINTR) {
  }
}

}  // namespace coherence::tcp
