// The transports whose messages and wakeups are tested.  A new one is added to the two lists.
#include "nodes.hpp"

#include "far_threads.hpp"

namespace conformance {
namespace {

using gcl_test::PeersTransport;

coherence::Transport& far_nodes() {
  static ThreadedTransport transport;
  return transport;
}

PeersTransport* tcp_peers() {
  static PeersTransport transport(PeersTransport::Batches::kAtOnce);
  return &transport;
}
coherence::Transport& tcp_nodes() { return *tcp_peers(); }

PeersTransport* tcp_peers_with_batches() {
  static PeersTransport transport(PeersTransport::Batches::kTravel);
  return &transport;
}
coherence::Transport& tcp_nodes_with_batches() { return *tcp_peers_with_batches(); }

}  // namespace

const std::vector<NodesKind>& messenger_kinds() {
  static const std::vector<NodesKind> all = {
      {"shm", shm_transport, nullptr}, {"far", far_nodes, nullptr}, {"tcp", tcp_nodes, tcp_peers}};
  return all;
}

// `far` has the wakeups of shm, as long as its transport opens none that travel.
const std::vector<NodesKind>& wakeup_kinds() {
  static const std::vector<NodesKind> all = {{"shm", shm_transport, nullptr},
                                             {"tcp", tcp_nodes_with_batches, tcp_peers_with_batches}};
  return all;
}

}  // namespace conformance
