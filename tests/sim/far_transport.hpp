// The simulator's transport with distance (tests/support/far_memory.hpp, far_messenger.hpp): a way takes virtual time,
// and a connection may break.
#pragma once

#include <cstdint>
#include <memory>

#include "coherence/member/shm_transport.hpp"
#include "tests/support/far_memory.hpp"

namespace sim {

class FarTransport final : public coherence::ShmTransport {
 public:
  // Of batches one in so many has an unknown outcome; 0: none.
  // `former`: requests to an incarnation that has left, and refusals for one, come again to the next incarnation, which
  // has to be without effect (coherence.messages-for-incarnation).
  FarTransport(uint32_t break_one_in, bool former);
  std::unique_ptr<coherence::Memory> open_memory(coherence::NodeParts&, coherence::Counters&) override;
  std::unique_ptr<coherence::Messenger> open_messenger(coherence::NodeParts&, coherence::Peers&,
                                                       coherence::Counters&) override;
  coherence::NodeSet broken() const;  // nodes that a connection broke for
  uint64_t broken_ns() const;         // when the first session could see that; 0: none did

 private:
  class Ways;
  class LateMessenger;
  const bool former_;
  const std::shared_ptr<Ways> ways_;
};

}  // namespace sim
