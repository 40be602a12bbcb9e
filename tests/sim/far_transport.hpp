// The simulator's transport with distance (tests/support/far_memory.hpp, far_messenger.hpp): a way takes virtual time,
// and a connection may break.  With `far_members` what a node knows of the others, and how it joins and leaves, goes
// such ways, too: the product's TcpMembership over FarMember and MemberAuthority.  A message that reaches a node which
// has died is delayed until the node's next incarnation is there, where it has to be without effect
// (coherence.messages-for-incarnation).
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "coherence/transport/shm/shm_transport.hpp"
#include "options.hpp"
#include "seams.hpp"
#include "tests/support/far_memory.hpp"

namespace coherence {
class MappedPool;
}  // namespace coherence

namespace sim {

class FarMember;
class MemberAuthority;
class NearNode;
class Ways;

class FarTransport final : public coherence::ShmTransport {
 public:
  // `break_one_in`: of batches one in so many has an unknown outcome; 0: none.
  // `former`: requests to an incarnation that has left, and refusals for one, come again to the next incarnation, which
  // has to be without effect (coherence.messages-for-incarnation).
  // `crash_under_page`: the crash node dies while that page, of those sent to it, is on its way.
  explicit FarTransport(const Options&);
  ~FarTransport() override;
  // Of nodes that join by it (far_members):
  std::unique_ptr<coherence::Membership> open_membership(coherence::Pool&) override;
  std::unique_ptr<coherence::Wakeup> open_wakeup(coherence::NodeParts&) override;
  // Of each session:
  std::unique_ptr<coherence::Memory> open_memory(coherence::NodeParts&, coherence::Counters&) override;
  std::unique_ptr<coherence::Messenger> open_messenger(coherence::NodeParts&, coherence::Counters&) override;
  // REQUIRES, before a node joins: far_members.
  void begin_members(coherence::MappedPool&);
  // The death is certain.  REQUIRES: far_members; in a fiber of nobody.
  void died(coherence::NodeId);
  Members members() const;              // what is known of them
  void comes_again(coherence::NodeId);  // its fibers begin, and it is not in the pool yet
  // A node that had died is there again: what was delayed arrives in the next moments.  In a fiber.
  void joined_again(coherence::NodeId);
  uint64_t answers_delayed() const;   // that arrived at another incarnation than the one that had asked
  coherence::NodeSet broken() const;  // nodes that a connection broke for
  uint64_t broken_ns() const;         // when the first session could see that; 0: none did

 private:
  class Arrivals;
  class LateMessenger;
  class FarWakeup;
  NearNode* near_of(const coherence::Membership*) const;  // null: the node is not there any more
  NearNode& near_of(const coherence::NodeParts&) const;
  void ring(const FarMember&) const;
  void share_mappings(coherence::NodeId comes);

  const bool former_, far_members_;
  const std::shared_ptr<Ways> ways_;
  std::unique_ptr<MemberAuthority> authority_;
  std::vector<std::shared_ptr<FarMember>> members_;  // of all incarnations
  std::vector<std::shared_ptr<NearNode>> near_;
};

}  // namespace sim
