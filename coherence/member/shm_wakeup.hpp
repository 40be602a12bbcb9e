// Wakeup on one machine: the events are futex words in the mapped arenas.
#pragma once

#include "coherence/member/peers.hpp"
#include "coherence/message/wakeup.hpp"

namespace coherence {

class ShmWakeup final : public Wakeup {
 public:
  ShmWakeup(const NodeParts& node, Peers& peers) : node_(node), peers_(peers) {}
  void wake(NodeId, uint16_t event, uint16_t otherwise) noexcept override;

 private:
  const NodeParts& node_;
  Peers& peers_;
};

}  // namespace coherence
