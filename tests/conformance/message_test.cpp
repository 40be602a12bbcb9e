// What every Messenger does: a request is taken once, by the incarnation that it is for; a reply lands with its page,
// or nowhere; after flush() nothing is on its way (coherence.request-taken-once, coherence.messages-for-incarnation).
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "coherence/session.hpp"
#include "far_threads.hpp"
#include "small_pool.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/tcp_cluster.hpp"

namespace conformance {

using namespace coherence;  // NOLINT: the tests speak of nothing else
using gcl_test::eventually;

struct MessengerKind {
  const char* name;
  coherence::Transport& (*transport)();
  gcl_test::PeersTransport* (*peers)();  // the same, where nodes have workers; null
};
std::ostream& operator<<(std::ostream& o, const MessengerKind& kind) { return o << kind.name; }

namespace {

coherence::Transport& far_transport() {
  static ThreadedTransport transport;
  return transport;
}

gcl_test::PeersTransport* tcp_peers() {
  static gcl_test::PeersTransport transport(gcl_test::PeersTransport::Batches::kAtOnce);
  return &transport;
}
coherence::Transport& tcp_transport() { return *tcp_peers(); }

constexpr NodeId kAsks{0}, kAsked{1};
constexpr uint16_t kSlot = 5;
constexpr uint32_t kFrames = 8, kLine = 3;
const PageId kPage = PageId::at(MemoryNodeId{0}, 3);

}  // namespace

class MessengerContract : public testing::TestWithParam<MessengerKind>, protected RequestHandler {
 protected:
  void SetUp() override {
    for (const NodeId n : {kAsks, kAsked}) join(n);
  }
  void TearDown() override {
    for (auto& end : end_) end.reset();
    if (GetParam().peers) GetParam().peers()->end();
    for (auto& node : node_) node.reset();
    former_.clear();
  }

  // Of what a node says, in order, as one session of it does.
  Messenger& end(NodeId n) { return *end_[n.value]; }
  Node& node(NodeId n) { return *node_[n.value]; }
  void restart(NodeId n) {
    {
      Session session(node(n), SessionId{1}, nullptr);
      Problem problem;
      bool last = false;
      ASSERT_TRUE(node(n).leave(session, &last, &problem).ok()) << problem.text;
    }
    end_[n.value].reset();
    former_.push_back(std::move(node_[n.value]));  // peers may have it mapped
    join(n);
  }
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
  // False: nothing has come for a while.
  bool comes(NodeId to) {
    return eventually([&] { return end(to).receive(*this); });
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
  void join(NodeId n) {
    Problem problem;
    auto joined =
        Node::join(*pool_, n, {.frames = kFrames, .sessions_max = 4, .private_bytes = 4096}, &problem, shm_transport());
    ASSERT_TRUE(joined.ok()) << problem.text;
    node_[n.value] = joined.take();
    for (const auto& other : node_)
      if (other && other != node_[n.value]) share_mapping(*other, node(n));
    end_[n.value] = GetParam().transport().open_messenger(node(n).parts(), counters_[n.value]);
    if (GetParam().peers) GetParam().peers()->begin(node(n));
  }
  SmallPool pool_;
  std::unique_ptr<Node> node_[2];
  std::vector<std::unique_ptr<Node>> former_;
  Counters counters_[2]{};
  std::unique_ptr<Messenger> end_[2];
};

TEST_P(MessengerContract, ARequestComesAndIsTakenOnce) {
  ask(1);
  ASSERT_TRUE(comes(kAsked));
  ASSERT_EQ(received_.size(), 1u);
  EXPECT_EQ(received_[0], std::pair(kAsks, kSlot));
  PeerRequest request, again;
  ASSERT_TRUE(take(&request));
  EXPECT_EQ(request.from, kAsks.value);
  EXPECT_EQ(request.kind, RequestKind::kPeerRd);
  EXPECT_FALSE(take(&again));
  EXPECT_TRUE(answer().is_taken()) << "the slot stays as it is until the reply";
}

TEST_P(MessengerContract, AReplyIsThereWithItsPage) {
  for (uint64_t round = 1; round <= 50; round++) {
    ask(round);
    ASSERT_TRUE(comes(kAsked));
    PeerRequest request;
    ASSERT_TRUE(take(&request));
    EXPECT_EQ(grant(request, round), kLine);
    ASSERT_TRUE(eventually([&] { return answer().is_reply(); }));
    EXPECT_EQ(landed(), round) << "the page is there when the word is";
    EXPECT_EQ(answer().kind(), ReplyKind::kGrantS);
    EXPECT_EQ(answer().round(), uint16_t(round));
  }
}

TEST_P(MessengerContract, AfterFlushAllHasArrived) {
  for (uint64_t round = 1; round <= 20; round++) {
    ask(round);
    end(kAsks).flush();
    EXPECT_TRUE(end(kAsked).receive(*this)) << "round " << round;
    PeerRequest request;
    ASSERT_TRUE(take(&request));
    (void)grant(request, round);
    end(kAsked).flush();
    EXPECT_TRUE(answer().is_reply());
    EXPECT_EQ(landed(), round);
  }
}

TEST_P(MessengerContract, ARequestToAFormerIncarnationIsNotTaken) {
  slot().reply[kAsked.value].store(ReplyWord::asked(7, node(kAsked).incarnation()).raw);
  slot().page.store(kPage.raw);
  restart(kAsked);
  end(kAsks).ask(kAsked, kSlot, kPage);  // filled in before, sent afterwards
  end(kAsks).flush();
  (void)end(kAsked).receive(*this);
  PeerRequest request;
  EXPECT_FALSE(take(&request));
  EXPECT_TRUE(answer().is_open());
  ask(8);  // the next round is for this incarnation
  ASSERT_TRUE(comes(kAsked));
  EXPECT_TRUE(take(&request));
}

// Neither the word nor the frame of the slot that is another request's by now.
TEST_P(MessengerContract, AReplyToAFormerIncarnationLandsNowhere) {
  ask(1);
  ASSERT_TRUE(comes(kAsked));
  PeerRequest request;
  ASSERT_TRUE(take(&request));
  restart(kAsks);
  slot().line.store(kLine);
  EXPECT_EQ(grant(request, 4711), Messenger::kNowhere);
  end(kAsked).flush();
  EXPECT_EQ(answer().raw, 0u);
  EXPECT_NE(landed(), 4711u);
}

// Nobody may wait for such a message: a node that would, finds the other one gone.
TEST_P(MessengerContract, WhatIsSaidToANodeThatIsNotThereIsLost) {
  end(kAsks).ask(NodeId{2}, kSlot, kPage);
  end(kAsks).flush();
  PeerRequest request{.from = 2, .kind = RequestKind::kPeerRd, .slot = kSlot};
  EXPECT_EQ(end(kAsked).reply(request, {.kind = ReplyKind::kDropped}), Messenger::kNowhere);
  EXPECT_FALSE(end(kAsked).receive(*this));
}

INSTANTIATE_TEST_SUITE_P(Transport, MessengerContract,
                         testing::Values(MessengerKind{"shm", shm_transport, nullptr},
                                         MessengerKind{"far", far_transport, nullptr},
                                         MessengerKind{"tcp", tcp_transport, tcp_peers}),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace conformance
