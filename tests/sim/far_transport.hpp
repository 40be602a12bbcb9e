// The simulator's transport with distance (tests/support/far_memory.hpp, far_messenger.hpp): a way takes virtual time,
// and a connection may break.  A message that reaches a node which has died is delayed until the node's next
// incarnation is there, where it has to be without effect (coherence.messages-for-incarnation).
#pragma once

#include <cstdint>
#include <memory>

#include "coherence/transport/shm/shm_transport.hpp"
#include "options.hpp"
#include "tests/support/far_memory.hpp"

namespace sim {

class FarTransport final : public coherence::ShmTransport {
 public:
  // `break_one_in`: of batches one in so many has an unknown outcome; 0: none.
  // `former`: requests to an incarnation that has left, and refusals for one, come again to the next incarnation, which
  // has to be without effect (coherence.messages-for-incarnation).
  // `crash_under_page`: the crash node dies while that page, of those sent to it, is on its way.
  explicit FarTransport(const Options&);
  std::unique_ptr<coherence::Memory> open_memory(coherence::NodeParts&, coherence::Counters&) override;
  std::unique_ptr<coherence::Messenger> open_messenger(coherence::NodeParts&, coherence::Counters&) override;
  // A node that had died is there again: what was delayed arrives in the next moments.  In a fiber.
  void joined_again(coherence::NodeId);
  uint64_t answers_delayed() const;   // that arrived at another incarnation than the one that had asked
  coherence::NodeSet broken() const;  // nodes that a connection broke for
  uint64_t broken_ns() const;         // when the first session could see that; 0: none did

 private:
  class Ways;
  class Arrivals;
  class LateMessenger;
  const bool former_;
  const std::shared_ptr<Ways> ways_;
};

}  // namespace sim
