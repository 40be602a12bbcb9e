// N6: who leaves answers his peers meanwhile.
#include <chrono>

#include "cluster.hpp"
#include "coherence/member/node_table.hpp"
#include "coherence/pool/pool_lock.hpp"
#include "tests/support/eventually.hpp"

namespace coherence {

class Leaving : public ClusterTest {
 protected:
  static constexpr uint32_t kLines = 2 * kPages;

  // The first to be given a line gets the last one, and lines leave in order.
  PageId last_to_leave() const { return page(0); }
  void fill(TestNode& n, Session& session) {
    for (uint8_t memory_node = 0; memory_node < 2; memory_node++)
      for (uint64_t i = 0; i < kPages; i++) {
        Line& l = n.line(session, page(i, memory_node));
        ASSERT_TRUE(session.lock_exclusive(l, page(i, memory_node)).ok());
        write_word(*n.node, l, i + 1);
        session.unlock_exclusive(l);
      }
  }
  Problem problem;
};

// Asked for each page that leaves; among them, a peer asks for the one that would leave last.
class AskedAmongThem : public LogHorizon {
 public:
  static constexpr int kAskedAt = 40;
  AskedAmongThem(TestNode& leaver, TestNode& peer, std::atomic<bool>& ask) : leaver_(leaver), peer_(peer), ask_(ask) {}
  Lsn flushed() noexcept override {
    ++seen_;
    if (seen_ == kAskedAt) {
      const uint64_t before = peer_.count(Counter::kPeerWaits);
      ask_ = true;
      EXPECT_TRUE(gcl_test::eventually([&] { return peer_.count(Counter::kPeerWaits) > before; }));
    }
    if (answered_at == 0 && leaver_.count(Counter::kPeerWrReceived) > 0) answered_at = seen_;
    return {~uint64_t{0}};
  }
  void request_flush(Lsn) noexcept override {}

  int answered_at = 0;

 private:
  TestNode& leaver_;
  TestNode& peer_;
  std::atomic<bool>& ask_;
  int seen_ = 0;
};

TEST_F(Leaving, APeerIsAnsweredAmongThePagesThatAreGivenBack) {
  TestNode& n0 = add_node(kLines, false);
  TestNode& n1 = add_node();
  Session s0(*n0.node, SessionId{0}, nullptr);
  fill(n0, s0);
  std::atomic<bool> ask{false};
  std::thread peer([&] {
    Session s1(*n1.node, SessionId{0}, nullptr);
    Line& l = n1.line(s1, last_to_leave());
    while (!ask) std::this_thread::yield();
    ASSERT_TRUE(s1.lock_exclusive(l, last_to_leave()).ok());
    EXPECT_EQ(read_word(*n1.node, l), 1u);
    s1.unlock_exclusive(l);
  });
  AskedAmongThem horizon(n0, n1, ask);
  n0.node->set_upcalls(&n0.directory, &horizon);
  bool last = true;
  EXPECT_TRUE(n0.node->leave(s0, &last, &problem).ok()) << problem.text;
  peer.join();
  EXPECT_FALSE(last);
  EXPECT_GT(horizon.answered_at, 0);
  EXPECT_LE(horizon.answered_at - AskedAmongThem::kAskedAt, 40) << "pages left before a peer was answered";
  n0.node->set_upcalls(&n0.directory, &n0.horizon);
}

// Under the pool's lock file a server makes its arena: that takes as long as its cache is large.
TEST_F(Leaving, WhoWaitsForThePoolsLockServesMeanwhile) {
  TestNode& n0 = add_node(16, false);
  TestNode& n1 = add_node();
  const NodeEntry& entry = pool->table().node[0];
  std::thread leaver;
  {
    PoolLock joining(path.c_str());
    ASSERT_TRUE(joining.held());
    leaver = std::thread([&] {
      Session s0(*n0.node, SessionId{0}, nullptr);
      bool last = true;
      EXPECT_TRUE(n0.node->leave(s0, &last, &problem).ok()) << problem.text;
    });
    EXPECT_TRUE(gcl_test::eventually([&] { return entry.state == Membership::kLeaving; }));
    for (int beats = 0; beats < 2; beats++) {  // serve() has one every quarter of a second
      const uint64_t before = entry.heartbeat_ns;
      EXPECT_TRUE(gcl_test::eventually([&] { return entry.heartbeat_ns != before; }, std::chrono::seconds(5)));
    }
    EXPECT_EQ(n1.node->live(), NodeSet::of(NodeId{1}));
    EXPECT_EQ(entry.state, Membership::kLeaving);
  }
  leaver.join();
  EXPECT_EQ(entry.state, Membership::kAbsent);
}

}  // namespace coherence
