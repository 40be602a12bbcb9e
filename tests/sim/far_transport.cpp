#include "far_transport.hpp"

#include <cstring>
#include <utility>
#include <vector>

#include "coherence/member/membership.hpp"
#include "coherence/transport/shm/mapped_pool.hpp"
#include "coherence/transport/shm/peers.hpp"
#include "coherence/transport/shm/shm_memory.hpp"
#include "coherence/transport/shm/shm_messenger.hpp"
#include "far_member.hpp"
#include "meeting.hpp"
#include "member_authority.hpp"
#include "mutation.hpp"
#include "near_node.hpp"
#include "options.hpp"
#include "scheduler.hpp"
#include "tests/support/far_messenger.hpp"
#include "ways.hpp"

namespace sim {

using namespace coherence;  // NOLINT: the simulator speaks of nothing else

// What the messages of a session meet when they have arrived.
class FarTransport::Arrivals final : public Messenger, public std::enable_shared_from_this<Arrivals> {
 public:
  Arrivals(NodeParts& node, Counters& counters, std::shared_ptr<Ways> ways)
      : node_(node), peers_(peers_of(node)), near_(node, counters), ways_(std::move(ways)) {}
  void ask(NodeId to, uint16_t slot, PageId page) noexcept override {
    if (!ways_->is_away(to)) return near_.ask(to, slot, page);
    delay(to, [self = shared_from_this(), to, slot, page] { self->near_.ask(to, slot, page); });
  }
  bool reach_all() noexcept override { return near_.reach_all(); }
  bool receive(RequestHandler& handler) noexcept override { return near_.receive(handler); }
  bool take_request(NodeId from, uint16_t slot, PeerRequest* request, PageId* page) noexcept override {
    return near_.take_request(from, slot, request, page) ||
           (mutation == Mutation::kFormerRequestTaken && take_former(from, slot, request, page));
  }
  uint32_t reply(const PeerRequest& request, const Reply& reply) noexcept override {
    const NodeId to{request.from};
    if (!ways_->is_away(to)) return near_.reply(request, reply);
    std::vector<std::byte> bytes;
    if (carries_page(reply.kind)) bytes.assign(reply.page, reply.page + kPageSize);
    delay(to, [self = shared_from_this(), request, reply, bytes = std::move(bytes)] {
      self->ways_->answers_delayed++;
      PeerRequest for_whom = request;
      if (mutation == Mutation::kFormerGrantLands)
        for_whom.incarnation = self->incarnation_of(NodeId{request.from}).value_or(request.incarnation);
      Reply late = reply;
      late.page = bytes.data();
      (void)self->near_.reply(for_whom, late);
    });
    return kNowhere;
  }
  void grant_complete(NodeId to, uint8_t incarnation, uint32_t line) noexcept override {
    if (!ways_->is_away(to)) return near_.grant_complete(to, incarnation, line);
    delay(to,
          [self = shared_from_this(), to, incarnation, line] { self->near_.grant_complete(to, incarnation, line); });
  }

  std::optional<uint8_t> incarnation_of(NodeId node) const {
    const auto there = peers_.at(node);
    return there ? std::optional(uint8_t((*there)->incarnation())) : std::nullopt;
  }
  // The session's node is in the pool, as it was then.
  bool lives(uint64_t incarnation) const {
    const NodeInfo now = node_.members->info(node_.id);
    return now.state == MemberState::kLive && now.incarnation == incarnation;
  }

 private:
  // While the sender is there.
  template <class Arrival>
  void delay(NodeId to, Arrival arrival) {
    ways_->delay(to, [self = shared_from_this(), here = node_.incarnation, arrival = std::move(arrival)] {
      if (self->lives(here)) arrival();
    });
  }
  // As ShmMessenger does, whichever incarnation it is for.
  bool take_former(NodeId from, uint16_t slot, PeerRequest* request, PageId* page) {
    const auto there = peers_.at(from);
    RequestSlot* s = there ? (*there)->slot(slot) : nullptr;
    if (s == nullptr) return false;
    std::atomic<uint64_t>& word = s->reply[node_.id.value];
    const ReplyWord asked{word.load()};
    if (!asked.is_open() || asked.is_for(node_.incarnation) || !scheduler()->random().one_in(kFormerTaken))
      return false;
    word.store(asked.taken().raw);
    *page = PageId{s->page.load()};
    *request = {from.value, s->kind.load(),          s->priority.load(), uint8_t((*there)->incarnation()),
                slot,       uint16_t(asked.serial())};
    return true;
  }

  static constexpr uint32_t kFormerTaken = 5;  // of these requests one in so many
  NodeParts& node_;
  Peers& peers_;
  ShmMessenger near_;
  const std::shared_ptr<Ways> ways_;
};

class FarTransport::LateMessenger final : public gcl_test::FarMessenger {
 public:
  LateMessenger(NodeParts& node, std::shared_ptr<Arrivals> arrivals, std::shared_ptr<Ways> ways, bool former)
      : FarMessenger(node, arrivals, ways),
        node_(node),
        arrivals_(std::move(arrivals)),
        ways_(std::move(ways)),
        former_(former) {}
  void ask(NodeId to, uint16_t slot, PageId page) noexcept override {
    FarMessenger::ask(to, slot, page);
    if (former_)
      again(to, arrivals_->incarnation_of(to).value_or(0),
            [near = near_, to, slot, page] { near->ask(to, slot, page); });
  }
  uint32_t reply(const PeerRequest& request, const Reply& reply) noexcept override {
    const uint32_t line = FarMessenger::reply(request, reply);
    const NodeId to{request.from};
    if (carries_page(reply.kind)) {
      ways_->page_sets_out(to);
    } else if (former_ && !reply.in_flight) {
      again(to, request.incarnation, [arrivals = arrivals_, request, reply] {
        PeerRequest late = request;
        if (mutation == Mutation::kFormerReplyActed)
          late.incarnation = arrivals->incarnation_of(NodeId{request.from}).value_or(request.incarnation);
        (void)arrivals->reply(late, reply);
      });
    }
    return line;
  }

 private:
  // Arrives as often as it can be in the way of what is said now: when the receiver is another incarnation, and while
  // the sender is there.
  template <class Arrival>
  void again(NodeId to, uint8_t incarnation, Arrival arrival) {
    if (!scheduler()->in_fiber()) return;
    scheduler()->spawn_verbs(
        [arrivals = arrivals_, here = node_.incarnation, to, incarnation, arrival = std::move(arrival)] {
          for (int waits = 0, arrived = 0; waits < kWaits && arrived < kArrivals; waits++) {
            scheduler()->sleep(scheduler()->random().below(kLateNsMax));
            if (!arrivals->lives(here)) return;
            const auto there = arrivals->incarnation_of(to);
            if (!there || *there == incarnation) continue;
            arrived++;
            arrival();
          }
        });
  }

  static constexpr int kWaits = 100, kArrivals = 10;
  static constexpr uint64_t kLateNsMax = 400 * kUs;
  NodeParts& node_;
  const std::shared_ptr<Arrivals> arrivals_;
  const std::shared_ptr<Ways> ways_;
  const bool former_;
};

// Wakeups are on their way, too.
class FarTransport::FarWakeup final : public Wakeup {
 public:
  FarWakeup(std::shared_ptr<NearNode> near, std::shared_ptr<Ways> ways)
      : near_(std::move(near)), ways_(std::move(ways)) {}
  ~FarWakeup() override { near_->end(); }
  void wake(NodeId to, uint16_t event, uint16_t otherwise) noexcept override {
    const auto arrive = [near = near_, to, event, otherwise] { near->wakeup().wake(to, event, otherwise); };
    if (mutation == Mutation::kWakeLost && ways_->one_in(10)) return;
    ways_->carry(arrive);
    if (ways_->one_in(8)) ways_->carry_late(arrive);
  }
  void ring_workers() noexcept override {
    ways_->carry([near = near_] { near->wakeup().ring_workers(); });
  }

 private:
  const std::shared_ptr<NearNode> near_;
  const std::shared_ptr<Ways> ways_;
};

FarTransport::FarTransport(const Options& o)
    : former_(o.former), far_members_(o.far_members), ways_(std::make_shared<Ways>(o)) {}

FarTransport::~FarTransport() = default;

// --- members

void FarTransport::begin_members(MappedPool& pool) {
  authority_ = std::make_unique<MemberAuthority>(pool, *ways_, [this](NodeId node) { share_mappings(node); });
  ways_->takes_for_dead = [this](NodeId node) { authority_->died(node); };
}

void FarTransport::died(NodeId node) { authority_->died(node); }

Members FarTransport::members() const {
  Members known = authority_ ? authority_->counts() : Members{};
  known.calls_broken = ways_->calls_broken;
  return known;
}

NearNode* FarTransport::near_of(const Membership* members) const {
  for (const auto& near : near_)
    if (members != nullptr && near->node() != nullptr && near->node()->members == members) return near.get();
  return nullptr;
}

NearNode& FarTransport::near_of(const NodeParts& node) const { return *near_of(node.members); }

void FarTransport::ring(const FarMember& member) const {
  if (NearNode* const near = near_of(member.membership())) near->node()->ring_worker();
}

void FarTransport::share_mappings(NodeId comes) {
  NearNode* newest[kNodesMax] = {};
  for (const auto& near : near_)
    if (near->parts().arena != nullptr) newest[near->parts().id.value] = near.get();
  NodeParts& its = newest[comes.value]->parts();
  for (NearNode* near : newest)
    if (near != nullptr && near->parts().id != comes) meet(its, near->parts());
}

std::unique_ptr<Membership> FarTransport::open_membership(Pool& pool) {
  if (!far_members_) return ShmTransport::open_membership(pool);
  members_.push_back(
      std::make_shared<FarMember>(*authority_, *ways_, [this](const FarMember& member) { ring(member); }));
  return members_.back()->open(pool);
}

std::unique_ptr<Wakeup> FarTransport::open_wakeup(NodeParts& node) {
  if (!far_members_) return ShmTransport::open_wakeup(node);
  near_.push_back(std::make_shared<NearNode>(node));
  return std::make_unique<FarWakeup>(near_.back(), ways_);
}

// --- of sessions

void FarTransport::comes_again(NodeId node) { ways_->comes_again(node); }

void FarTransport::joined_again(NodeId node) { ways_->deliver_delayed(node); }

uint64_t FarTransport::answers_delayed() const { return ways_->answers_delayed; }

NodeSet FarTransport::broken() const { return ways_->nodes(); }

uint64_t FarTransport::broken_ns() const { return ways_->first_ns(); }

std::unique_ptr<Memory> FarTransport::open_memory(NodeParts& node, Counters& counters) {
  return std::make_unique<gcl_test::FarMemory>(
      std::make_unique<ShmMemory>(coherence::MappedPool::of(node.pool), counters), *ways_);
}

std::unique_ptr<Messenger> FarTransport::open_messenger(NodeParts& of, Counters& counters) {
  NodeParts& node = far_members_ ? near_of(of).parts() : of;
  auto arrivals = std::make_shared<Arrivals>(node, counters, ways_);
  return std::make_unique<LateMessenger>(node, std::move(arrivals), ways_, former_);
}

}  // namespace sim
