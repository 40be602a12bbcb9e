// ShmMessenger: messages are stores into the receiver's arena (message/slots.hpp).
#pragma once

#include "coherence/member/node_parts.hpp"
#include "coherence/message/messenger.hpp"
#include "coherence/stats/counters.hpp"
#include "coherence/transport/shm/shm_wakeup.hpp"

namespace coherence {

class ShmMessenger final : public Messenger {
 public:
  // All outlive it.  `counters` belong to the one session that uses it.
  ShmMessenger(const NodeParts& node, Counters& counters) : node_(node), peers_(peers_of(node)), counters_(counters) {}
  bool reach_all() noexcept override { return peers_.reach_all(); }
  void ask(NodeId to, uint16_t slot, PageId page) noexcept override;
  bool receive(RequestHandler&) noexcept override;
  bool take_request(NodeId from, uint16_t slot, PeerRequest* request, PageId* page) noexcept override;
  uint32_t reply(const PeerRequest& request, const Reply&) noexcept override;
  void grant_complete(NodeId to, uint8_t incarnation, uint32_t line) noexcept override;

 private:
  PeerArena* reach(NodeId) noexcept;
  const NodeParts& node_;
  Peers& peers_;
  Counters& counters_;
};

}  // namespace coherence
