// ShmMessenger: messages are stores into the receiver's arena (message/slots.hpp).
#pragma once

#include "coherence/member/node_parts.hpp"
#include "coherence/member/peers.hpp"
#include "coherence/message/messenger.hpp"
#include "coherence/stats/counters.hpp"

namespace coherence {

class ShmMessenger final : public Messenger {
 public:
  // All outlive it.  `counters` belong to the one session that uses it.
  ShmMessenger(const NodeParts& node, Peers& peers, Counters& counters)
      : node_(node), peers_(peers), counters_(counters) {}
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
