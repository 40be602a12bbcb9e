// Network workers of nodes that talk to each other by the tcp transport, on one machine.
#pragma once

#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "coherence/transport/tcp/message/peer_routes.hpp"
#include "coherence/transport/tcp/message/tcp_messenger.hpp"
#include "tests/support/tcp_nodes.hpp"

namespace gcl_test {

// Where an incarnation listens: a socket in the directory; and through a proxy, if there is one.
class PeerSockets final : public tcp::PeerAddresses {
 public:
  explicit PeerSockets(const SocketDirectory& directory) : directory_(directory) {}
  static std::string name(coherence::NodeId node, uint64_t incarnation) {
    return "node" + std::to_string(node.value) + "." + std::to_string(incarnation);
  }
  std::string address(coherence::NodeId node, uint64_t incarnation) const {
    return directory_.socket(name(node, incarnation));
  }
  bool address_of(coherence::NodeId node, uint64_t incarnation, char* to, size_t bytes) const noexcept override {
    if (!known) return false;
    snprintf(to, bytes, "%s%s", address(node, incarnation).c_str(), suffix.c_str());
    return true;
  }
  std::string suffix;  // of sockets that are dialed
  bool known = true;

 private:
  const SocketDirectory& directory_;
};

// What the processes of a node share for its messages and batches, and its worker, in this process.  The test that
// uses it says when the worker runs.
class PeerWorker {
 public:
  struct Spec {
    net::LinkTimes times = {};
    uint32_t window = 4u << 20;
    std::string key;
    std::vector<std::pair<coherence::MemoryNodeId, std::string>> memory_nodes;  // and their addresses
    // By which batches go instead of the links.
    std::function<std::unique_ptr<tcp::DirectPath>(tcp::Log&)> path = nullptr;
  };
  // `places`: sessions that post batches.
  explicit PeerWorker(uint32_t nodes_max, int places = 1)
      : port_(places),
        bytes_(tcp::PeerBoxes::bytes_for(nodes_max)),
        boxes_(bytes_.at(), nodes_max, port_.port().worker_wakeup()) {}
  ~PeerWorker() { end(); }
  PeerWorker(const PeerWorker&) = delete;
  // All outlive it.
  void begin(const coherence::NodeParts& node, const PeerSockets& sockets, tcp::Log& log, const Spec& spec) {
    coherence::Problem problem;
    const tcp::NetworkWorker::Spec how{
        .self = net::Who::node(node.id, node.incarnation), .window = spec.window, .times = spec.times};
    worker_ = must(tcp::NetworkWorker::make(port_.port(), how, credentials(spec.key), log, &problem), problem);
    if (spec.path) must(worker_->take_path(spec.path(log), &problem), problem);
    for (const auto& [id, address] : spec.memory_nodes)
      must(worker_->memory().add(id, endpoints(address), &problem), problem);
    must(worker_->links().listen(endpoints(sockets.address(node.id, node.incarnation)), &problem), problem);
    peers_.emplace(node, boxes_, worker_->links(), sockets, log);
    worker_->add(*peers_);
    worker_->set_acceptor(&*peers_);
  }
  void run_once(int ms) { worker_->run_once(ms); }
  bool ended() const { return worker_ == nullptr; }
  // The worker ends, and with it all links; what its node's sessions share stays.
  void end() {
    if (worker_ == nullptr) return;
    worker_->remove(*peers_);
    worker_->set_acceptor(nullptr);
    peers_.reset();
    worker_.reset();
  }
  tcp::PeerBoxes& boxes() { return boxes_; }
  tcp::PeerRoutes& peers() { return *peers_; }
  tcp::Port& port() { return port_.port(); }

 private:
  SharedPort port_;
  SharedBytes bytes_;
  tcp::PeerBoxes boxes_;
  std::unique_ptr<tcp::NetworkWorker> worker_;
  std::optional<tcp::PeerRoutes> peers_;
};

}  // namespace gcl_test
