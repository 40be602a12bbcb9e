#include "coherence/transport/shm/shm_transport.hpp"

#include "coherence/member/node.hpp"
#include "coherence/transport/shm/local_pool.hpp"
#include "coherence/transport/shm/mapped_pool.hpp"
#include "coherence/transport/shm/shm_membership.hpp"
#include "coherence/transport/shm/shm_memory.hpp"
#include "coherence/transport/shm/shm_messenger.hpp"
#include "coherence/transport/shm/shm_wakeup.hpp"

namespace coherence {

Result<std::unique_ptr<Pool>> ShmTransport::open_pool(const PoolFiles& files, Problem* problem) {
  return LocalPool::open(files, problem);
}

std::unique_ptr<Membership> ShmTransport::open_membership(Pool& pool) {
  return std::make_unique<ShmMembership>(MappedPool::of(pool));
}

std::unique_ptr<Wakeup> ShmTransport::open_wakeup(NodeParts& node) { return std::make_unique<ShmWakeup>(node); }

std::unique_ptr<Memory> ShmTransport::open_memory(NodeParts& node, Counters& counters) {
  return std::make_unique<ShmMemory>(MappedPool::of(node.pool), counters);
}

std::unique_ptr<Messenger> ShmTransport::open_messenger(NodeParts& node, Counters& counters) {
  return std::make_unique<ShmMessenger>(node, counters);
}

Transport& shm_transport() {
  static ShmTransport transport;
  return transport;
}

void share_mapping(Node& one, Node& other) {
  peers_of(one.parts()).share(other.id(), *other.parts().arena);
  peers_of(other.parts()).share(one.id(), *one.parts().arena);
}

}  // namespace coherence
