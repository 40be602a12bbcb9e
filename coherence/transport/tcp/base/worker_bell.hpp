// WorkerBell: ends the sleep of a node's network worker, when a process of the node has left it something to do.
//
// port.rings-sleepers-only: Who leaves something rings the worker only if it sleeps, and the worker wakes a session
// only if it sleeps.  Each says that it sleeps, and then looks once more: one of the two sees the other.
//
// worker.gone-ends-waits: A worker that is killed says nothing any more.  So who waits for it looks, after a while,
// whether its process is there; if it is gone, nothing that was left to it has a known outcome.
//
// The memory is shared by all processes of the node.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "coherence/base/problem.hpp"
#include "coherence/base/result.hpp"

namespace coherence::tcp {

class WorkerBell {
 public:
  static constexpr uint64_t kBytes = 64;
  // In the process that the node's others come from, before they do.  `memory`: kBytes zeros at a multiple of 64.
  // kSystem: no descriptor.
  static Result<std::unique_ptr<WorkerBell>> make(void* memory, Problem*);
  ~WorkerBell();
  WorkerBell(const WorkerBell&) = delete;

  // Behind what was left, which is published by a seq_cst operation.  Any process, and signal handlers.
  void ring() noexcept {
    if (shared_.sleeps.load(std::memory_order_seq_cst) != 0) ring_now();
  }

  // Certainly; a few system calls.
  bool worker_is_gone() const noexcept;

  // --- of the worker

  // Its process is this one.
  void set_worker() noexcept;
  // It is about to sleep until somebody rings.  False: any() says that something was left meanwhile.
  template <class Any>
  bool falls_asleep(Any any) noexcept {
    shared_.sleeps.store(1, std::memory_order_seq_cst);  // pairs with ring()
    if (!any()) return true;
    is_awake();
    return false;
  }
  void is_awake() noexcept { shared_.sleeps.store(0, std::memory_order_relaxed); }
  int fd() const noexcept { return fd_; }  // readable when somebody has rung
  void silence() noexcept;

 private:
  struct Shared {
    std::atomic<uint32_t> sleeps;
    std::atomic<int32_t> worker;  // 0: there was none
    std::atomic<uint64_t> start;  // ProcessSight::start
  };
  static_assert(sizeof(Shared) <= kBytes);
  WorkerBell(Shared& shared, int fd) noexcept : shared_(shared), fd_(fd) {}
  void ring_now() noexcept;
  Shared& shared_;
  const int fd_;
};

}  // namespace coherence::tcp
