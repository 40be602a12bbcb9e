// Messages and the incarnations of nodes: what was said to a node, or by it, before it left is not for its next
// incarnation.
#include <functional>
#include <memory>
#include <thread>

#include "cluster.hpp"
#include "coherence/transport/shm/shm_messenger.hpp"
#include "coherence/transport/shm/shm_transport.hpp"
#include "tests/support/eventually.hpp"

namespace coherence {

using gcl_test::eventually;

// The transport of one machine, with an action at the moment when a request is filled in and not sent.
class Slow final : public ShmTransport {
 public:
  std::unique_ptr<Messenger> open_messenger(NodeParts& node, Counters& counters) override {
    return std::make_unique<SlowMessenger>(node, counters, *this);
  }
  std::function<void(NodeId)> before_ask = [](NodeId) {};
  std::function<void()> flushed = [] {};

 private:
  class SlowMessenger final : public Messenger {
   public:
    SlowMessenger(NodeParts& node, Counters& counters, Slow& by) : shm_(node, counters), by_(by) {}
    void ask(NodeId to, uint16_t slot, PageId page) noexcept override {
      by_.before_ask(to);
      shm_.ask(to, slot, page);
    }
    bool reach_all() noexcept override { return shm_.reach_all(); }
    bool receive(RequestHandler& handler) noexcept override { return shm_.receive(handler); }
    bool take_request(NodeId from, uint16_t slot, PeerRequest* request, PageId* page) noexcept override {
      return shm_.take_request(from, slot, request, page);
    }
    uint32_t reply(const PeerRequest& request, const Reply& reply) noexcept override {
      return shm_.reply(request, reply);
    }
    void grant_complete(NodeId to, uint8_t incarnation, uint32_t line) noexcept override {
      shm_.grant_complete(to, incarnation, line);
    }
    void flush() noexcept override { by_.flushed(); }

   private:
    ShmMessenger shm_;
    Slow& by_;
  };
};

class Messages : public ClusterTest {
 protected:
  void SetUp() override {
    ClusterTest::SetUp();
    add_node(16, false);
    nodes[0]->node->set_transport(slow);
    nodes[0]->start();
    add_node();
  }
  // Node 1 leaves in order, and joins again.
  void restart_node_1() {
    Problem problem;
    bool last = false;
    TestNode& old = *nodes[1];
    old.stop();
    {
      Session session(*old.node, SessionId{0}, nullptr);
      ASSERT_TRUE(old.node->leave(session, &last, &problem).ok()) << problem.text;
    }
    former_ = std::move(nodes[1]);
    nodes[1] = std::make_unique<TestNode>(*pool, NodeId{1}, 16);
    share_mapping(*nodes[0]->node, *nodes[1]->node);
  }
  void write(int n, Session& session, uint64_t value) {
    Line& line = nodes[n]->line(session, p);
    ASSERT_TRUE(session.lock_exclusive(line, p).ok());
    write_word(*nodes[n]->node, line, value);
    session.unlock_exclusive(line);
  }

  const PageId p = page(3);
  Slow slow;  // of node 0
  std::unique_ptr<TestNode> former_;
};

TEST_F(Messages, ARequestIsForTheIncarnationThatItWasFilledInFor) {
  {
    Session s1(*nodes[1]->node, SessionId{0}, nullptr);
    write(1, s1, 7);
  }
  bool first = true;
  slow.before_ask = [&](NodeId to) {
    ASSERT_EQ(to, NodeId{1});
    if (!std::exchange(first, false)) return;
    restart_node_1();
  };
  Session s0(*nodes[0]->node, SessionId{0}, nullptr);
  Line& line = nodes[0]->line(s0, p);
  ASSERT_TRUE(s0.lock_shared(line, p).ok());  // that node 1 is gone; the page is in the pool
  EXPECT_EQ(read_word(*nodes[0]->node, line), 7u);
  s0.unlock_shared(line);
  ASSERT_FALSE(first);
  // The new incarnation, when it looks.
  Session s1(*nodes[1]->node, SessionId{0}, nullptr);
  s1.attend();
  EXPECT_EQ(nodes[1]->count(Counter::kPeerRdReceived), 0u) << "it was not asked";
}

// A bit in the inbox may come for nothing, too.
TEST_F(Messages, AnOpenRequestToAFormerIncarnationIsNotTaken) {
  {
    Session s1(*nodes[1]->node, SessionId{0}, nullptr);
    write(1, s1, 7);
  }
  bool first = true;
  slow.before_ask = [&](NodeId) {
    if (!std::exchange(first, false)) return;
    restart_node_1();
    Counters unused{};
    ShmMessenger late(nodes[1]->node->parts(), unused);
    PeerRequest request;
    PageId asked;
    EXPECT_FALSE(late.take_request(NodeId{0}, 0, &request, &asked));
  };
  Session s0(*nodes[0]->node, SessionId{0}, nullptr);
  Line& line = nodes[0]->line(s0, p);
  ASSERT_TRUE(s0.lock_shared(line, p).ok());
  s0.unlock_shared(line);
  ASSERT_FALSE(first);
}

// A peer that finds it gone counts on it that nothing comes any more.
TEST_F(Messages, ANodeHasSaidAllBeforeItIsGone) {
  nodes[0]->stop();
  int flushes = 0;
  slow.flushed = [&] {
    flushes++;
    EXPECT_EQ(nodes[1]->node->info(NodeId{0}).state, MemberState::kLeaving);
  };
  Problem problem;
  bool last = false;
  {
    Session s0(*nodes[0]->node, SessionId{0}, nullptr);
    ASSERT_TRUE(nodes[0]->node->leave(s0, &last, &problem).ok()) << problem.text;
    EXPECT_EQ(flushes, 1);
    slow.flushed = [] {};
  }
}

TEST_F(Messages, AReplyToAFormerIncarnationDoesNotLandInTheNextOne) {
  PeerRequest taken;
  PageId asked;
  Counters unused{};
  {
    Session s0(*nodes[0]->node, SessionId{0}, nullptr);
    write(0, s0, 7);
  }
  nodes[0]->stop();  // only the test serves there
  ShmMessenger owner(nodes[0]->node->parts(), unused);
  std::thread requester([&] {
    Session s1(*nodes[1]->node, SessionId{0}, nullptr);
    Line& line = nodes[1]->line(s1, p);
    EXPECT_TRUE(s1.lock_shared(line, p).ok());
    s1.unlock_shared(line);
  });
  ASSERT_TRUE(eventually([&] { return owner.take_request(NodeId{1}, 0, &taken, &asked); }));
  EXPECT_EQ(asked, p);
  EXPECT_NE(owner.reply(taken, {.kind = ReplyKind::kDropped}), Messenger::kNowhere);
  {
    Session s0(*nodes[0]->node, SessionId{0}, nullptr);  // answers the next round
    std::atomic<bool> done{false};
    std::thread serves([&] {
      while (!done) (void)s0.serve(1);
    });
    requester.join();
    done = true;
    serves.join();
    std::atomic<bool> restarted{false};
    std::thread leaves_beside([&] {
      restart_node_1();
      restarted = true;
    });
    while (!restarted) (void)s0.serve(1);
    leaves_beside.join();
  }
  RequestSlot& slot = nodes[1]->node->parts().slot(0);
  slot.line.store(5);
  EXPECT_EQ(owner.reply(taken, {.kind = ReplyKind::kGrantS, .page = nodes[0]->node->frame(0u)}), Messenger::kNowhere);
  EXPECT_EQ(slot.reply[0].load(), 0u) << "a late grant";
}

}  // namespace coherence
