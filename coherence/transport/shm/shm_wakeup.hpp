// Wakeup on one machine: the events are futex words in the mapped arenas.  It has the node's Peers, which the
// Messengers of the node's sessions use, too.
#pragma once

#include "coherence/message/wakeup.hpp"
#include "coherence/transport/shm/peers.hpp"

namespace coherence {

class ShmWakeup final : public Wakeup {
 public:
  explicit ShmWakeup(const NodeParts& node) : node_(node), peers_(node) {}
  void wake(NodeId, uint16_t event, uint16_t otherwise) noexcept override;
  void ring_workers() noexcept override { peers_.ring_all(); }
  Peers& peers() noexcept { return peers_; }

 private:
  const NodeParts& node_;
  Peers peers_;
};

// REQUIRES: the node has joined by the transport of one machine.
Peers& peers_of(const NodeParts&) noexcept;

}  // namespace coherence
