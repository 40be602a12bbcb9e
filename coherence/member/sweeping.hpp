// Sweeping: a section in which a process changes words that name dead nodes (repair.drained-last).
//
//   {
//     const Sweeping section(node);
//     if (node.repairable().has(dead)) ...;  // no word is of its next incarnation
//   }
#pragma once

#include <atomic>

#include "coherence/member/arena.hpp"
#include "coherence/member/node.hpp"

namespace coherence {

// While one stands, this node drains from no death: a dead node that was repairable in it does not join again.
class [[nodiscard]] Sweeping {
 public:
  explicit Sweeping(const NodeParts& node) noexcept : count_(node.arena->sweeping) {
    count_.fetch_add(1, std::memory_order_seq_cst);  // pairs with MessageServer::drain()
  }
  explicit Sweeping(Node& node) noexcept : Sweeping(node.parts()) {}
  ~Sweeping() { count_.fetch_sub(1, std::memory_order_release); }
  Sweeping(const Sweeping&) = delete;

 private:
  std::atomic<uint32_t>& count_;
};

}  // namespace coherence
