#include "coherence/member/shm_transport.hpp"

#include "coherence/member/shm_membership.hpp"
#include "coherence/member/shm_messenger.hpp"
#include "coherence/member/shm_wakeup.hpp"
#include "coherence/pool/mapped_pool.hpp"
#include "coherence/transport/shm/shm_memory.hpp"

namespace coherence {

std::unique_ptr<Membership> ShmTransport::open_membership(Pool& pool) {
  return std::make_unique<ShmMembership>(MappedPool::of(pool));
}

std::unique_ptr<Wakeup> ShmTransport::open_wakeup(NodeParts& node, Peers& peers) {
  return std::make_unique<ShmWakeup>(node, peers);
}

std::unique_ptr<Memory> ShmTransport::open_memory(NodeParts& node, Counters& counters) {
  return std::make_unique<ShmMemory>(MappedPool::of(node.pool), counters);
}

std::unique_ptr<Messenger> ShmTransport::open_messenger(NodeParts& node, Peers& peers, Counters& counters) {
  return std::make_unique<ShmMessenger>(node, peers, counters);
}

Transport& shm_transport() {
  static ShmTransport transport;
  return transport;
}

}  // namespace coherence
