// WorkerWakeup: ends the sleep of a node's network worker, when a process of the node has left it something to do.
//
// port.wakes-sleepers-only: A process that leaves something wakes the worker only if it sleeps, and the worker wakes a
// session only if it sleeps.  Each says that it sleeps, and then looks once more: one of the two sees the other.
//
// worker.gone-ends-waits: A worker that is killed says nothing any more.  So a process that waits for it looks, after a
// while, whether its process is there; if it is gone, nothing that was left to it has a known outcome.
//
// The memory is shared by all processes of the node.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "coherence/base/problem.hpp"
#include "coherence/base/result.hpp"
#include "coherence/transport/tcp/base/worker_signal.hpp"

namespace coherence::tcp {

class WorkerWakeup final : public WorkerSignal {
 public:
  static constexpr uint64_t kBytes = 64;
  // In the process that the node's others come from, before they do.  `memory`: kBytes zeros at a multiple of 64.
  // kSystem: no descriptor.
  static Result<std::unique_ptr<WorkerWakeup>> make(void* memory, Problem*);
  ~WorkerWakeup();
  WorkerWakeup(const WorkerWakeup&) = delete;

  void signal() noexcept override {
    if (shared_.sleeps.load(std::memory_order_seq_cst) != 0) signal_now();
  }

  // Certainly; a few system calls.
  bool worker_is_gone() const noexcept;

  // --- of the worker

  // Its process is this one.
  void set_worker() noexcept;
  // It is about to sleep until a process signals it.  False: any() says that something was left meanwhile.
  template <class Any>
  bool falls_asleep(Any any) noexcept {
    shared_.sleeps.store(1, std::memory_order_seq_cst);  // pairs with signal()
    if (!any()) return true;
    is_awake();
    return false;
  }
  void is_awake() noexcept { shared_.sleeps.store(0, std::memory_order_relaxed); }
  int fd() const noexcept { return fd_; }  // readable when it was signaled
  void clear() noexcept;

 private:
  struct Shared {
    std::atomic<uint32_t> sleeps;
    std::atomic<int32_t> worker;  // 0: there was none
    std::atomic<uint64_t> start;  // ProcessSight::start
  };
  static_assert(sizeof(Shared) <= kBytes);
  WorkerWakeup(Shared& shared, int fd) noexcept : shared_(shared), fd_(fd) {}
  void signal_now() noexcept;
  Shared& shared_;
  const int fd_;
};

}  // namespace coherence::tcp
