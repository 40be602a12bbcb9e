#include "far_transport.hpp"

#include <array>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "coherence/member/shm_messenger.hpp"
#include "coherence/transport/shm/shm_memory.hpp"
#include "options.hpp"
#include "scheduler.hpp"

namespace sim {
namespace {

using namespace coherence;  // NOLINT: the simulator speaks of nothing else

// Messages on their way to each node, in order.  What the network has outlives its sender.
struct Wire {
  std::array<std::deque<std::function<void()>>, kNodesMax> to;
  std::array<bool, kNodesMax> busy = {};
  bool empty() const {
    for (const auto& messages : to)
      if (!messages.empty()) return false;
    return true;
  }
};

void send(const std::shared_ptr<Wire>& wire, NodeId to, std::function<void()> arrives) {
  wire->to[to.value].push_back(std::move(arrives));
  if (std::exchange(wire->busy[to.value], true)) return;
  scheduler()->spawn_verbs([wire, to] {
    auto& messages = wire->to[to.value];
    while (!messages.empty()) {
      Random& random = scheduler()->random();
      scheduler()->sleep(random.below(random.one_in(32) ? kWayNsMax : kWayNsMax / 16));
      messages.front()();
      messages.pop_front();
    }
    wire->busy[to.value] = false;
  });
}

class FarMessenger final : public Messenger {
 public:
  FarMessenger(NodeParts& node, Peers& peers, Counters& counters)
      : peers_(peers), shm_(std::make_shared<ShmMessenger>(node, peers, counters)), wire_(std::make_shared<Wire>()) {}
  void ask(NodeId to, uint16_t slot, PageId page) noexcept override {
    if (!scheduler()->in_fiber()) return shm_->ask(to, slot, page);
    send(wire_, to, [shm = shm_, to, slot, page] { shm->ask(to, slot, page); });
  }
  bool receive(RequestHandler& handler) noexcept override { return shm_->receive(handler); }
  bool take_request(NodeId from, uint16_t slot, PeerRequest* request, PageId* page) noexcept override {
    return shm_->take_request(from, slot, request, page);
  }
  // The page is as it is now.
  uint32_t reply(const PeerRequest& request, const Reply& reply) noexcept override {
    if (!scheduler()->in_fiber()) return shm_->reply(request, reply);
    const NodeId to{request.from};
    const auto there = peers_.at(to);
    if (!there || uint8_t((*there)->incarnation()) != request.incarnation) return kNowhere;
    const uint32_t line = (*there)->slot(request.slot)->line.load(std::memory_order_relaxed);
    std::vector<std::byte> bytes;
    if (carries_page(reply.kind)) {
      bytes.resize(kPageSize);
      memcpy(bytes.data(), reply.page, kPageSize);
    }
    send(wire_, to, [shm = shm_, request, reply, bytes = std::move(bytes)] {
      Reply late = reply;
      late.page = bytes.data();
      (void)shm->reply(request, late);
    });
    return line;
  }
  void settled(NodeId to, uint32_t line) noexcept override {
    if (!scheduler()->in_fiber()) return shm_->settled(to, line);
    send(wire_, to, [shm = shm_, to, line] { shm->settled(to, line); });
  }
  void flush() noexcept override {
    while (!wire_->empty() && scheduler()->in_fiber()) scheduler()->sleep(kUs);
  }

 private:
  Peers& peers_;
  const std::shared_ptr<ShmMessenger> shm_;
  const std::shared_ptr<Wire> wire_;
};

}  // namespace

std::unique_ptr<Memory> FarTransport::open_memory(NodeParts& node, Counters& counters) {
  return std::make_unique<ShmMemory>(node.pool, counters);
}

std::unique_ptr<Messenger> FarTransport::open_messenger(NodeParts& node, Peers& peers, Counters& counters) {
  return std::make_unique<FarMessenger>(node, peers, counters);
}

}  // namespace sim
