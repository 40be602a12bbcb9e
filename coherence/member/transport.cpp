#include "coherence/member/transport.hpp"

#include "coherence/member/shm_messenger.hpp"
#include "coherence/transport/shm/shm_memory.hpp"

namespace coherence {
namespace {

class ShmTransport final : public Transport {
 public:
  std::unique_ptr<Memory> open_memory(NodeParts& node, Counters& counters) override {
    return std::make_unique<ShmMemory>(node.pool, counters);
  }
  std::unique_ptr<Messenger> open_messenger(NodeParts& node, Peers& peers, Counters& counters) override {
    return std::make_unique<ShmMessenger>(node, peers, counters);
  }
};

}  // namespace

Transport& shm_transport() {
  static ShmTransport transport;
  return transport;
}

}  // namespace coherence
