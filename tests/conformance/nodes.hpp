// Nodes of one process on a small pool, whose messages and wakeups go by the transport that a test is about: the
// fixture of the contracts of Messenger and Wakeup.  Their pool and its members are those of one machine.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <ostream>
#include <utility>
#include <vector>

#include "coherence/session.hpp"
#include "small_pool.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/tcp_cluster.hpp"

namespace conformance {

using namespace coherence;  // NOLINT: the tests speak of nothing else

struct NodesKind {
  const char* name;
  coherence::Transport& (*transport)();
  gcl_test::PeersTransport* (*peers)();  // the same, where nodes have workers; null
};
inline std::ostream& operator<<(std::ostream& o, const NodesKind& kind) { return o << kind.name; }

// A new transport is added in nodes.cpp.
const std::vector<NodesKind>& messenger_kinds();
const std::vector<NodesKind>& wakeup_kinds();

class NodesContract : public testing::TestWithParam<NodesKind>, protected RequestHandler {
 protected:
  static constexpr NodeId kAsks{0}, kAsked{1}, kOther{2};
  static constexpr uint16_t kSlot = 5;
  static constexpr uint32_t kFrames = 8, kLine = 3;
  static constexpr int kNodes = 3;
  const PageId kPage = PageId::at(MemoryNodeId{0}, 3);

  void SetUp() override {
    for (const NodeId n : {kAsks, kAsked}) join(n);
  }
  void TearDown() override {
    for (auto& end : end_) end.reset();
    for (auto& wakes : wakes_) wakes.reset();
    if (GetParam().peers) GetParam().peers()->end();
    for (auto& node : node_) node.reset();
    former_.clear();
  }

  // Of what a node says, in order, as one session of it does.
  Messenger& end(NodeId n) { return *end_[n.value]; }
  Wakeup& wakes(NodeId n) { return *wakes_[n.value]; }
  Node& node(NodeId n) { return *node_[n.value]; }
  void join(NodeId n) {
    enter(n);
    begin(n);
  }
  // It is in the pool; what it has of a network does nothing before begin().
  void enter(NodeId n) {
    Problem problem;
    auto joined =
        Node::join(*pool_, n, {.frames = kFrames, .sessions_max = 4, .private_bytes = 4096}, &problem, shm_transport());
    ASSERT_TRUE(joined.ok()) << problem.text;
    node_[n.value] = joined.take();
    for (const auto& other : node_)
      if (other && other != node_[n.value]) share_mapping(*other, node(n));
    end_[n.value] = GetParam().transport().open_messenger(node(n).parts(), counters_[n.value]);
    wakes_[n.value] = GetParam().transport().open_wakeup(node(n).parts());
  }
  void begin(NodeId n) {
    if (GetParam().peers) GetParam().peers()->begin(node(n));
  }
  void leave(NodeId n) {
    {
      Session session(node(n), SessionId{1}, nullptr);
      Problem problem;
      bool last = false;
      ASSERT_TRUE(node(n).leave(session, &last, &problem).ok()) << problem.text;
    }
    end_[n.value].reset();
    wakes_[n.value].reset();
    former_.push_back(std::move(node_[n.value]));  // peers may have it mapped
  }
  void restart(NodeId n) {
    leave(n);
    join(n);
  }
  std::unique_ptr<Memory> memory(NodeId n) {
    return GetParam().transport().open_memory(node(n).parts(), counters_[n.value]);
  }
  PoolAddress pool_word() { return pool_->page_address(kPage); }
  RequestSlot& slot() { return node(kAsks).parts().slot(kSlot); }

  // As a session of kAsks does.
  void ask(uint64_t serial) {
    slot().line.store(kLine);
    slot().serial.store(serial);
    slot().page.store(kPage.raw);
    slot().kind.store(RequestKind::kPeerRd);
    slot().reply[kAsked.value].store(ReplyWord::asked(serial, node(kAsked).incarnation()).raw);
    end(kAsks).ask(kAsked, kSlot, kPage);
  }
  bool receives(NodeId n) { return end(n).receive(*this); }
  // False: nothing has come for a while.
  bool comes(NodeId to) {
    return gcl_test::eventually([&] { return receives(to); });
  }
  bool take(PeerRequest* request) {
    PageId page;
    const bool taken = end(kAsked).take_request(kAsks, kSlot, request, &page);
    EXPECT_TRUE(!taken || page == kPage);
    return taken;
  }
  ReplyWord answer() { return {slot().reply[kAsked.value].load(std::memory_order_acquire)}; }
  uint64_t landed() {
    uint64_t word;
    memcpy(&word, node(kAsks).frame(kLine) + kPageSize - 8, 8);
    return word;
  }
  uint32_t grant(const PeerRequest& request, uint64_t value) {
    alignas(8) std::byte page[kPageSize];
    for (uint32_t i = 0; i < kPageSize; i += 8) memcpy(page + i, &value, 8);
    const uint32_t where = end(kAsked).reply(request, {.kind = ReplyKind::kGrantS, .page = page});
    memset(page, 0xee, sizeof page);  // it was copied
    return where;
  }
  std::vector<std::pair<NodeId, uint16_t>> received_;

 private:
  void receive(NodeId from, uint16_t slot) noexcept override { received_.emplace_back(from, slot); }
  SmallPool pool_;
  std::unique_ptr<Node> node_[kNodes];
  std::vector<std::unique_ptr<Node>> former_;
  Counters counters_[kNodes]{};
  std::unique_ptr<Messenger> end_[kNodes];
  std::unique_ptr<Wakeup> wakes_[kNodes];
};

}  // namespace conformance
