// Of one machine: the pool and the arenas are mapped.
#pragma once

#include "coherence/member/transport.hpp"

namespace coherence {

class ShmTransport : public Transport {
 public:
  std::unique_ptr<Membership> open_membership(Pool&) override;
  std::unique_ptr<Wakeup> open_wakeup(NodeParts&, Peers&) override;
  std::unique_ptr<Memory> open_memory(NodeParts&, Counters&) override;
  std::unique_ptr<Messenger> open_messenger(NodeParts&, Peers&, Counters&) override;
};

Transport& shm_transport();

}  // namespace coherence
