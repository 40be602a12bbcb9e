// The transport of one machine: the pool and the arenas are mapped.
#pragma once

#include "coherence/member/transport.hpp"

namespace coherence {

class ShmTransport : public Transport {
 public:
  Result<std::unique_ptr<Pool>> open_pool(const PoolFiles&, Problem*) override;
  std::unique_ptr<Membership> open_membership(Pool&) override;
  std::unique_ptr<Wakeup> open_wakeup(NodeParts&) override;
  std::unique_ptr<Memory> open_memory(NodeParts&, Counters&) override;
  std::unique_ptr<Messenger> open_messenger(NodeParts&, Counters&) override;
};

Transport& shm_transport();

class Node;
// For several nodes in one process (tests, simulator): each reaches the other through its own mapping, so that
// ThreadSanitizer sees both sides of an access as one address.
void share_mapping(Node& one, Node& other);

}  // namespace coherence
