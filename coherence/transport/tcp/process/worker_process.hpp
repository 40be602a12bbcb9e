// WorkerProcess: a process that serves the node of the process that forks it, for as long as that lives.
//
// worker.dies-with-its-node: It ends when the process that forked it has ended, however that ends, and when it is
// stopped.  It has no descriptor of that process but those that it is given, and none of its signal handlers.  It forks
// nothing.
// worker.death-is-a-crash: It ends with 0 when it was stopped, else with 2 or a signal: to a postmaster, whose child it
// is, that is the crash of a process that had to do with shared memory.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <functional>

#include "coherence/base/problem.hpp"
#include "coherence/base/result.hpp"

namespace coherence::tcp {

// In memory that is shared with the worker; of zeros.
struct WorkerStatus {
  enum Phase : uint32_t { kNone = 0, kStarting, kReady, kFailed, kEnded };
  std::atomic<uint32_t> phase;  // a futex word
  std::atomic<int32_t> pid;
  char address[144];  // where it listens; set before kReady
  char problem[512];  // set before kFailed
  void set_phase(Phase) noexcept;
};

class WorkerProcess {
 public:
  // Set by a signal, which also writes into the descriptor that the worker has kept, WorkerWakeup's, and
  // so wakes it.
  using Stop = std::atomic<bool>;
  // What the worker does; it says kReady or kFailed in its status, and returns when `stop` is set, or with false.
  using Body = std::function<bool(const Stop& stop)>;

  explicit WorkerProcess(WorkerStatus& status) noexcept : status_(status) {}
  // Forks it, and waits until it is ready: kSystem: there is no process, or it has ended; kUnreached: it is not ready
  // after `patience_ns`; else what it says.  After an error there is none.  `kept`: an eventfd, its one descriptor
  // beside the standard ones.
  Status start(int kept, const Body&, uint64_t patience_ns, Problem*);
  // Ends it, and waits for its end: from any process of the node.  Idempotent.
  void stop() noexcept;

 private:
  WorkerStatus& status_;
};

}  // namespace coherence::tcp
