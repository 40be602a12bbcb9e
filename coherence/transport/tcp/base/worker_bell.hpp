// WorkerBell: ends the sleep of a node's network worker, when a process of the node has left it something to do.
//
// port.rings-sleepers-only: Who leaves something rings the worker only if it sleeps, and the worker wakes a session
// only if it sleeps.  Each says that it sleeps, and then looks once more: one of the two sees the other.
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
    if (sleeps_.load(std::memory_order_seq_cst) != 0) ring_now();
  }

  // --- of the worker

  // It is about to sleep until somebody rings.  False: any() says that something was left meanwhile.
  template <class Any>
  bool falls_asleep(Any any) noexcept {
    sleeps_.store(1, std::memory_order_seq_cst);  // pairs with ring()
    if (!any()) return true;
    is_awake();
    return false;
  }
  void is_awake() noexcept { sleeps_.store(0, std::memory_order_relaxed); }
  int fd() const noexcept { return fd_; }  // readable when somebody has rung
  void silence() noexcept;

 private:
  WorkerBell(std::atomic<uint32_t>& sleeps, int fd) noexcept : sleeps_(sleeps), fd_(fd) {}
  void ring_now() noexcept;
  std::atomic<uint32_t>& sleeps_;
  const int fd_;
};

}  // namespace coherence::tcp
