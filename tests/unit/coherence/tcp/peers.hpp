// Nodes that talk to each other, in one thread: arenas without lines, and a node table that the test writes.
#pragma once

#include <atomic>
#include <cstring>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "loops.hpp"
#include "tests/support/tcp_peers.hpp"

namespace coherence::tcp {

inline constexpr uint32_t kPeersMax = 3;

// Of all nodes of a test.
struct NodeStates {
  std::atomic<uint64_t> view{1};
  std::atomic<uint32_t> fence{0};
  std::atomic<MemberState> state[kPeersMax] = {};
  std::atomic<uint64_t> incarnation[kPeersMax] = {};
  uint64_t next_incarnation = 10;
  void change(NodeId n, MemberState to) {
    view++;
    state[n.value] = to;
    view++;
  }
};

class StatesMembership final : public Membership {
 public:
  explicit StatesMembership(NodeStates& states) : states_(states) {}
  uint32_t nodes_max() const noexcept override { return kPeersMax; }
  NodeInfo info(NodeId n) const noexcept override {
    return {states_.state[n.value].load(), states_.incarnation[n.value].load(), 0};
  }
  uint64_t view() const noexcept override { return states_.view; }
  const std::atomic<uint32_t>& fence_word() const noexcept override { return states_.fence; }
  bool repairs_deaths() const noexcept override { return true; }
  void fence(const char*) noexcept override { states_.fence = 1; }
  const char* fence_reason() const noexcept override { return "by the test"; }
  bool watch(uint64_t) noexcept override { return false; }
  NodeSet repairable() const noexcept override { return {}; }
  bool quiesced(NodeId) noexcept override { return true; }
  bool swept(NodeId, uint64_t) noexcept override { return true; }
  bool drained(NodeId) noexcept override { return true; }
  Status begin_change(Patience, Problem*) override { return {}; }
  void end_change() noexcept override {}
  NodeSet all_dead() noexcept override { return {}; }
  void forget(NodeSet) noexcept override {}
  Result<uint64_t> reserve(NodeId, Problem*) override { return Errc::kBusy; }
  Status publish(int, Problem*) override { return Errc::kBusy; }
  Result<bool> withdraw(Problem*) override { return Errc::kBusy; }
  Status close(Problem*) override { return {}; }
  void give_up() noexcept override {}
  void begin_leaving() noexcept override {}

 private:
  NodeStates& states_;
};

class NoPool final : public Pool {
 public:
  NoPool() : Pool({.path = "/nowhere"}) {}
  Status check_protocol(Problem*) const override { return {}; }
  uint32_t memory_nodes() const override { return 0; }
  uint64_t saves() const override { return 0; }
  LatchWord peek_latch(PageId) override { return {}; }

 private:
  Status find_memory_node(MemoryNodeId, Problem*) override { return Errc::kNotFound; }
};

// An incarnation of a node, with its worker; it is in the node table when the test says so.
class PeerNode {
 public:
  static constexpr uint32_t kFrames = 2048, kSessions = 256;
  PeerNode(NodeStates& states, NodeId id, const gcl_test::PeerSockets& sockets,
           const gcl_test::PeerWorker::Spec& spec = {})
      : states_(states),
        members_(states),
        layout_(arena_layout({.frames = kFrames, .sessions_max = kSessions, .private_bytes = 0})),
        arena_(layout_.bytes),
        parts(pool_) {
    parts.members = &members_;
    parts.id = id;
    parts.incarnation = states.next_incarnation++;
    parts.fence = &states.fence;
    parts.arena = reinterpret_cast<ArenaHeader*>(arena_.at());
    parts.sessions = reinterpret_cast<SessionSlot*>(arena_.at() + layout_.sessions_at);
    parts.in_flight = reinterpret_cast<std::atomic<uint8_t>*>(arena_.at() + layout_.in_flight_at);
    parts.hot = reinterpret_cast<HotPages*>(arena_.at() + layout_.hot_at);
    parts.frames_base = arena_.at() + layout_.frames_at;
    parts.frames = kFrames;
    parts.sessions_max = kSessions;
    worker = std::make_unique<gcl_test::PeerWorker>(kPeersMax);
    worker->begin(parts, sockets, log, spec);
    says = std::make_unique<TcpMessenger>(parts, worker->boxes(), counters);
    wakes = std::make_unique<TcpWakeup>(parts, worker->boxes());
  }
  ~PeerNode() { worker.reset(); }  // before what it logs to
  void publish() {
    states_.incarnation[parts.id.value] = parts.incarnation;
    states_.change(parts.id, MemberState::kLive);
  }
  void is(MemberState state) { states_.change(parts.id, state); }
  NodeId id() const { return parts.id; }
  RequestSlot& slot(uint32_t i) { return parts.slot(uint16_t(i)); }
  ReplyWord word(uint32_t i, NodeId of) { return {slot(i).reply[of.value].load(std::memory_order_acquire)}; }
  bool in_flight(uint32_t line) { return parts.in_flight[line].load() != 0; }
  std::byte* frame(uint32_t line) { return parts.frames_base + uint64_t(line) * kPageSize; }

  // As a session does whose slot is free: its line is as the slot.
  void ask(NodeId to, uint32_t i, RequestKind kind = RequestKind::kPeerWr) {
    RequestSlot& s = slot(i);
    const uint64_t serial = s.serial.load() + 1;
    s.serial.store(serial);
    s.line.store(i);
    s.page.store(page_of(i).raw);
    s.kind.store(kind);
    s.priority.store(uint8_t(i));
    s.reply[to.value].store(ReplyWord::asked(serial, members_.info(to).incarnation).raw);
    says->ask(to, uint16_t(i), page_of(i));
  }
  static PageId page_of(uint32_t i) { return PageId::at(MemoryNodeId{1}, i); }

 private:
  NodeStates& states_;
  StatesMembership members_;
  NoPool pool_;
  const ArenaLayout layout_;
  const gcl_test::SharedBytes arena_;

 public:
  NodeParts parts;
  Counters counters{};
  Lines log;
  std::unique_ptr<gcl_test::PeerWorker> worker;
  std::unique_ptr<TcpMessenger> says;
  std::unique_ptr<TcpWakeup> wakes;
};

class TcpPeers : public testing::Test, protected RequestHandler {
 protected:
  // A node that is in the pool, and has reached all that are.
  PeerNode& join(NodeId id, const gcl_test::PeerWorker::Spec& spec = {}) {
    PeerNode& fresh = start(id, spec);
    NodeSet others;
    for (const auto& other : nodes)
      if (states.state[other->id().value] == MemberState::kLive && other->id() != id) others = others.with(other->id());
    EXPECT_TRUE(until([&] { return fresh.worker->peers().reaches(others); })) << fresh.log.all;
    fresh.publish();
    run_all();
    return fresh;
  }
  // One that nobody has heard of.
  PeerNode& start(NodeId id, const gcl_test::PeerWorker::Spec& spec = {}) {
    nodes.push_back(std::make_unique<PeerNode>(states, id, sockets, spec));
    return *nodes.back();
  }
  void run_once() {
    for (const auto& node : nodes)
      if (node->worker && !node->worker->ended()) node->worker->run_once(0);
  }
  // All that is on its way arrives, where nothing breaks.
  void run_all() {
    for (int i = 0; i < 20; i++) run_once();
  }
  template <class Condition>
  bool until(const Condition& condition) {
    return gcl_test::eventually([&] {
      run_once();
      return condition();
    });
  }
  // The next request that has come to the node.
  bool take(PeerNode& at, PeerRequest* request, PageId* page = nullptr) {
    PageId ignored;
    for (at.says->receive(*this); !received.empty();) {
      const auto [from, slot] = received.front();
      received.erase(received.begin());
      if (at.says->take_request(from, slot, request, page ? page : &ignored)) return true;
    }
    return false;
  }
  bool comes(PeerNode& at, PeerRequest* request, PageId* page = nullptr) {
    return until([&] { return take(at, request, page); });
  }
  // With a page of that value in all its words.
  static uint32_t grant(PeerNode& at, const PeerRequest& request, uint64_t value, bool in_flight = false) {
    std::vector<uint64_t> page(kPageSize / 8, value);
    const ReplyKind kind = is_reader(request.kind) ? ReplyKind::kGrantS : ReplyKind::kGrantM;
    return at.says->reply(
        request, {.kind = kind, .page = reinterpret_cast<const std::byte*>(page.data()), .in_flight = in_flight});
  }
  static uint64_t value_at(PeerNode& node, uint32_t line) {
    uint64_t first, last;
    memcpy(&first, node.frame(line), 8);
    memcpy(&last, node.frame(line) + kPageSize - 8, 8);
    EXPECT_EQ(first, last);
    return first;
  }
  // Nobody has ended a link for what came by it.
  bool agree() const { return logs().find("ends the link") == std::string::npos; }
  std::string logs() const {
    std::string all;
    for (const auto& node : nodes) all += node->log.all;
    return all;
  }

  const gcl_test::SocketDirectory directory;
  gcl_test::PeerSockets sockets{directory};
  NodeStates states;
  std::vector<std::unique_ptr<PeerNode>> nodes;
  std::vector<std::pair<NodeId, uint16_t>> received;

 private:
  void receive(NodeId from, uint16_t slot) noexcept override { received.emplace_back(from, slot); }
};

inline constexpr NodeId kA{0}, kB{1}, kC{2};

}  // namespace coherence::tcp
