// TcpMessenger: a session's messages to peers over a network: they are left in the PeerBoxes, and the network worker
// sends them.  TcpWakeup: wakeups, the same way.
#pragma once

#include "coherence/member/node_parts.hpp"
#include "coherence/message/messenger.hpp"
#include "coherence/message/wakeup.hpp"
#include "coherence/stats/counters.hpp"
#include "coherence/transport/tcp/message/peer_boxes.hpp"

namespace coherence::tcp {

class TcpMessenger final : public Messenger {
 public:
  // All outlive it.  `counters` belong to the one session that uses it.
  TcpMessenger(const NodeParts& node, PeerBoxes& boxes, Counters& counters)
      : node_(node), boxes_(boxes), counters_(counters) {}
  bool reach_all() noexcept override { return true; }  // the worker does (PeerRoutes)
  void ask(NodeId to, uint16_t slot, PageId page) noexcept override;
  bool receive(RequestHandler&) noexcept override;
  bool take_request(NodeId from, uint16_t slot, PeerRequest* request, PageId* page) noexcept override;
  // Never waits.
  uint32_t reply(const PeerRequest& request, const Reply&) noexcept override;
  void grant_complete(NodeId to, uint8_t incarnation, uint32_t line) noexcept override;
  // Ends at once in a fenced pool, or where there is no network worker any more.
  void flush() noexcept override { boxes_.flush(*node_.fence); }
  void end() noexcept override {}  // what was left is the node's, and a silent peer would keep the session for long

 private:
  const NodeParts& node_;
  PeerBoxes& boxes_;
  Counters& counters_;
};

class TcpWakeup final : public Wakeup {
 public:
  TcpWakeup(const NodeParts& node, PeerBoxes& boxes) : node_(node), boxes_(boxes) {}
  void wake(NodeId, uint16_t event, uint16_t otherwise) noexcept override;
  // Nothing is to be sent: each network worker rings its message worker when it learns of a change.
  void ring_workers() noexcept override {}

 private:
  const NodeParts& node_;
  PeerBoxes& boxes_;
};

}  // namespace coherence::tcp
