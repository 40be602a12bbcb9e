#include "coherence/transport/tcp/process/worker_process.hpp"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstring>

#include "coherence/base/os.hpp"
#include "coherence/base/verify.hpp"

namespace coherence::tcp {
namespace {

constexpr int kFailedCode = 2;               // worker.death-is-a-crash
constexpr uint64_t kStopNs = 5'000'000'000;  // then it is killed
constexpr uint64_t kSliceNs = 10'000'000;    // between two looks whether it lives

// Of the worker's process:
WorkerProcess::Stop stop_asked{false};
int kept_descriptor = -1;

// What it sleeps on becomes readable, so that it does not fall asleep behind the signal.
void ask_to_stop(int) {
  const int error = errno;
  stop_asked.store(true);
  const uint64_t one = 1;
  (void)!write(kept_descriptor, &one, sizeof one);
  errno = error;
}

void close_all_but(int kept) noexcept {
  const auto first = unsigned(STDERR_FILENO) + 1;
  if (unsigned(kept) > first) (void)close_range(first, unsigned(kept) - 1, 0);
  (void)close_range(unsigned(kept) + 1, UINT_MAX, 0);
}

// Signals as a new process has them, but for the one that stops it, and those of a terminal.
void take_signals() noexcept {
  struct sigaction one = {};
  one.sa_handler = SIG_DFL;
  for (int signal = 1; signal < NSIG; signal++) (void)sigaction(signal, &one, nullptr);
  one.sa_handler = SIG_IGN;
  for (const int signal : {SIGINT, SIGHUP, SIGQUIT, SIGPIPE, SIGUSR1, SIGUSR2}) (void)sigaction(signal, &one, nullptr);
  one.sa_handler = ask_to_stop;
  (void)sigaction(SIGTERM, &one, nullptr);
  sigset_t none;
  sigemptyset(&none);
  (void)sigprocmask(SIG_SETMASK, &none, nullptr);
}

// worker.dies-with-its-node
[[noreturn]] void be_worker(pid_t parent, int kept, WorkerStatus& status, const WorkerProcess::Body& body) {
  (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(kFailedCode);
  status.pid.store(getpid(), std::memory_order_relaxed);  // before its first phase, though the parent may be slow
  (void)prctl(PR_SET_NAME, "gcl network");
  stop_asked.store(false);
  kept_descriptor = kept;
  close_all_but(kept);
  take_signals();
  const bool ended = body(stop_asked);
  status.set_phase(WorkerStatus::kEnded);
  _exit(ended ? 0 : kFailedCode);  // nothing of the parent's runs at the end
}

}  // namespace

void WorkerStatus::set_phase(Phase to) noexcept {
  phase.store(to, std::memory_order_release);  // pairs with start()
  futex_wake(phase, INT_MAX);
}

Status WorkerProcess::start(int kept, const Body& body, uint64_t patience_ns, Problem* problem) {
  VERIFY(kept > STDERR_FILENO);
  status_.phase.store(WorkerStatus::kStarting, std::memory_order_relaxed);
  const pid_t parent = getpid();
  // All signals wait until the worker has its own way with them.
  sigset_t all, before;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, &before);
  const pid_t pid = fork();
  if (pid == 0) be_worker(parent, kept, status_, body);
  const int why = errno;
  sigprocmask(SIG_SETMASK, &before, nullptr);
  if (pid < 0) return problem->set(Errc::kSystem, "no process for the network: %s", strerror(why));
  status_.pid.store(pid, std::memory_order_relaxed);
  for (const uint64_t deadline = monotonic_ns() + patience_ns;;) {
    const uint32_t phase = status_.phase.load(std::memory_order_acquire);  // pairs with set_phase()
    if (phase == WorkerStatus::kReady) return {};
    if (phase == WorkerStatus::kFailed || phase == WorkerStatus::kEnded) {
      problem->set(Errc::kSystem, "%s", status_.problem);
      stop();
      return Errc::kSystem;
    }
    if (waitpid(pid, nullptr, WNOHANG) == pid) {
      status_.set_phase(WorkerStatus::kEnded);
      return problem->set(Errc::kSystem, "the process for the network has ended at once");
    }
    if (monotonic_ns() > deadline) {
      problem->set(Errc::kUnreached, "%s",
                   status_.problem[0] != '\0' ? status_.problem : "the network gives no answer");
      stop();
      return Errc::kUnreached;
    }
    futex_wait_ns(status_.phase, phase, kSliceNs);
  }
}

void WorkerProcess::stop() noexcept {
  const uint32_t phase = status_.phase.load(std::memory_order_acquire);
  if (phase == WorkerStatus::kNone) return;
  const pid_t pid = status_.pid.load(std::memory_order_relaxed);
  bool killed = false;
  if (phase != WorkerStatus::kEnded) (void)kill(pid, SIGTERM);
  for (const uint64_t deadline = monotonic_ns() + kStopNs;;) {
    // Its parent collects it; a process that is not its parent sees that it has said its last word.
    const pid_t collected = waitpid(pid, nullptr, WNOHANG);
    if (collected == pid) break;
    const bool ours = collected == 0;
    const uint32_t now = status_.phase.load(std::memory_order_acquire);
    if (!ours && (now == WorkerStatus::kEnded || kill(pid, 0) != 0)) break;
    if (!killed && monotonic_ns() > deadline) killed = kill(pid, SIGKILL) == 0;
    if (killed && !ours) break;
    futex_wait_ns(status_.phase, now, kSliceNs);
  }
  status_.phase.store(WorkerStatus::kNone, std::memory_order_relaxed);
}

}  // namespace coherence::tcp
