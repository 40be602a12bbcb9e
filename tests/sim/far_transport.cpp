#include "far_transport.hpp"

#include <utility>

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

FarTransport::FarTransport(uint32_t break_one_in) : ways_(std::make_shared<Ways>(break_one_in)) {}

NodeSet FarTransport::broken() const { return ways_->nodes(); }

uint64_t FarTransport::broken_ns() const { return ways_->first_ns(); }

std::unique_ptr<Memory> FarTransport::open_memory(NodeParts& node, Counters& counters) {
  return std::make_unique<gcl_test::FarMemory>(std::make_unique<ShmMemory>(node.pool, counters), *ways_);
}

std::unique_ptr<Messenger> FarTransport::open_messenger(NodeParts& node, Peers& peers, Counters& counters) {
  return std::make_unique<gcl_test::FarMessenger>(node, peers, counters, ways_);
}

}  // namespace sim
