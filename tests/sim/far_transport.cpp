#include "far_transport.hpp"

#include <utility>

#include "coherence/member/membership.hpp"
#include "coherence/member/peers.hpp"
#include "coherence/transport/shm/shm_memory.hpp"
#include "mutation.hpp"
#include "options.hpp"
#include "scheduler.hpp"
#include "tests/support/far_messenger.hpp"

namespace sim {

using namespace coherence;  // NOLINT: the simulator speaks of nothing else

class FarTransport::Ways final : public gcl_test::Network {
 public:
  explicit Ways(uint32_t break_one_in) : break_one_in_(break_one_in) {}
  void carry(std::function<void()> arrival) override {
    if (!scheduler()->in_fiber()) return arrival();
    scheduler()->spawn_verbs([arrival = std::move(arrival)] {
      Random& random = scheduler()->random();
      scheduler()->sleep(random.below(random.one_in(32) ? kWayNsMax : kWayNsMax / 16));
      arrival();
    });
  }
  void wait() override {
    if (scheduler()->in_fiber()) scheduler()->spin(scheduler()->random().below(2 * kUs));
  }
  std::optional<int> breaks_after(int operations) override {
    if (!scheduler()->in_fiber() || !scheduler()->random().one_in(break_one_in_)) return std::nullopt;
    return int(scheduler()->random().below(uint64_t(operations) + 1));
  }
  BatchState broken() override {
    nodes_ = nodes_.with(NodeId{uint8_t(scheduler()->node())});
    if (first_ns_ == 0) first_ns_ = scheduler()->now();
    return mutation == Mutation::kUnknownSucceeds ? BatchState::kDone : BatchState::kUnknown;
  }
  bool one_in(uint32_t n) override { return scheduler()->in_fiber() && scheduler()->random().one_in(n); }
  NodeSet nodes() const { return nodes_; }
  uint64_t first_ns() const { return first_ns_; }

 private:
  const uint32_t break_one_in_;
  NodeSet nodes_;
  uint64_t first_ns_ = 0;
};

class FarTransport::LateMessenger final : public gcl_test::FarMessenger {
 public:
  LateMessenger(NodeParts& node, Peers& peers, Counters& counters, std::shared_ptr<Ways> ways)
      : FarMessenger(node, peers, counters, std::move(ways)), node_(node) {}
  void ask(NodeId to, uint16_t slot, PageId page) noexcept override {
    FarMessenger::ask(to, slot, page);
    again(to, incarnation_of(to), [near = near_, to, slot, page] { near->ask(to, slot, page); });
  }
  uint32_t reply(const PeerRequest& request, const Reply& reply) noexcept override {
    const uint32_t line = FarMessenger::reply(request, reply);
    const NodeId to{request.from};
    if (!carries_page(reply.kind) && !reply.in_flight)
      again(to, request.incarnation, [near = near_, &peers = peers_, request, reply] {
        PeerRequest late = request;
        if (const auto there = peers.at(NodeId{request.from}); mutation == Mutation::kFormerReplyActed && there)
          late.incarnation = uint8_t((*there)->incarnation());
        (void)near->reply(late, reply);
      });
    return line;
  }
  bool take_request(NodeId from, uint16_t slot, PeerRequest* request, PageId* page) noexcept override {
    return FarMessenger::take_request(from, slot, request, page) ||
           (mutation == Mutation::kFormerRequestTaken && take_former(from, slot, request, page));
  }

 private:
  uint8_t incarnation_of(NodeId node) const {
    const auto there = peers_.at(node);
    return there ? uint8_t((*there)->incarnation()) : 0;
  }
  // As ShmMessenger does, whichever incarnation it is for.
  bool take_former(NodeId from, uint16_t slot, PeerRequest* request, PageId* page) {
    const auto there = peers_.at(from);
    RequestSlot* s = there ? (*there)->slot(slot) : nullptr;
    if (s == nullptr) return false;
    std::atomic<uint64_t>& word = s->reply[node_.id.value];
    const ReplyWord asked{word.load()};
    if (!asked.is_open() || asked.is_for(node_.incarnation) || !scheduler()->random().one_in(kArrivals / 2))
      return false;
    word.store(asked.taken().raw);
    *page = PageId{s->page.load()};
    *request = {from.value, s->kind.load(),          s->priority.load(), uint8_t((*there)->incarnation()),
                slot,       uint16_t(asked.serial())};
    return true;
  }
  // Arrives as often as it can be in the way of what is said now: when the receiver is another incarnation, and while
  // the sender is there.
  template <class Arrival>
  void again(NodeId to, uint8_t incarnation, Arrival arrival) {
    if (!scheduler()->in_fiber()) return;
    scheduler()->spawn_verbs([this_node = &node_, incarnation_here = node_.incarnation, &peers = peers_, to,
                              incarnation, arrival = std::move(arrival)] {
      for (int waits = 0, arrivals = 0; waits < kWaits && arrivals < kArrivals; waits++) {
        scheduler()->sleep(scheduler()->random().below(kLateNsMax));
        const NodeInfo here = this_node->members->info(this_node->id);
        if (here.state != MemberState::kLive || here.incarnation != incarnation_here) return;
        const auto there = peers.at(to);
        if (!there || uint8_t((*there)->incarnation()) == incarnation) continue;
        arrivals++;
        arrival();
      }
    });
  }

  static constexpr int kWaits = 100, kArrivals = 10;
  static constexpr uint64_t kLateNsMax = 400 * kUs;
  NodeParts& node_;
};

FarTransport::FarTransport(uint32_t break_one_in, bool former)
    : former_(former), ways_(std::make_shared<Ways>(break_one_in)) {}

NodeSet FarTransport::broken() const { return ways_->nodes(); }

uint64_t FarTransport::broken_ns() const { return ways_->first_ns(); }

std::unique_ptr<Memory> FarTransport::open_memory(NodeParts& node, Counters& counters) {
  return std::make_unique<gcl_test::FarMemory>(std::make_unique<ShmMemory>(node.pool, counters), *ways_);
}

std::unique_ptr<Messenger> FarTransport::open_messenger(NodeParts& node, Peers& peers, Counters& counters) {
  if (former_) return std::make_unique<LateMessenger>(node, peers, counters, ways_);
  return std::make_unique<gcl_test::FarMessenger>(node, peers, counters, ways_);
}

}  // namespace sim
