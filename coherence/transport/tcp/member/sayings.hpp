// Sayings: what a node says to memory node 0 about members, as state (tcp.sayings-are-state): what is here is true, and
// stays so for the incarnation's life, but for what it reaches.  The network worker sends it when it has changed.
//
// Memory that the node's processes share, of zeros.  Any process says something, and wakes the worker then.
#pragma once

#include <atomic>
#include <cstdint>

#include "coherence/base/ids.hpp"

namespace coherence::tcp {

inline constexpr uint32_t kFenceReasonBytes = 232;  // as the node table has

// What is said of other nodes; each word the incarnation that is meant, 0: of none.
enum class Said : uint8_t {
  kRecorded,  // of dead ones
  kQuiescent,
  kSwept,
  kDrained,
  kUnreached,  // of one that serves: the link with it is over (tcp.unreached-one-dies)
};
inline constexpr int kSaidKinds = 5;

class Sayings {
 public:
  static constexpr uint64_t kBytes = 4096;
  // Of these bytes; the same in all processes.
  static Sayings& at(void* memory) noexcept;

  // Whether it was not said yet.
  bool say(Said, NodeId of, uint64_t incarnation) noexcept;
  void leaves() noexcept;
  // The first reason is kept.
  void fences(const char* reason) noexcept;
  // Of the worker: so many memory nodes, the first ones, are reached from here now (tcp.pages-where-all-reach).
  void reaches(uint32_t memory_nodes) noexcept;

  // --- of the worker
  uint64_t changes() const noexcept { return changes_.load(std::memory_order_seq_cst); }  // pairs with changed()
  uint64_t said(Said, NodeId of) const noexcept;
  uint32_t reached() const noexcept { return reached_.load(std::memory_order_relaxed); }
  bool leaving() const noexcept { return leaving_.load(std::memory_order_acquire) != 0; }  // pairs with leaves()
  const char* fence_reason() const noexcept;                                               // null: it does not fence

 private:
  void changed() noexcept { changes_.fetch_add(1, std::memory_order_seq_cst); }
  std::atomic<uint64_t> changes_;
  std::atomic<uint32_t> leaving_;
  std::atomic<uint32_t> fences_;  // kReason...
  std::atomic<uint32_t> reached_;
  char fence_reason_[kFenceReasonBytes];
  std::atomic<uint64_t> said_[kSaidKinds][kNodesMax];
};
static_assert(sizeof(Sayings) <= Sayings::kBytes);

}  // namespace coherence::tcp
