// As many nodes as there can be, and one more.
#include "cluster.hpp"
#include "tests/support/eventually.hpp"

namespace coherence {

class Crowd : public ClusterTest {
 protected:
  Crowd() { nodes_max = uint32_t(kNodesMax); }
  void SetUp() override {
    ClusterTest::SetUp();
    for (int n = 0; n < kNodesMax; ++n) {
      add_node();
      sessions.push_back(std::make_unique<Session>(*nodes.back()->node, SessionId{0}, nullptr));
    }
  }
  void TearDown() override {
    sessions.clear();
    ClusterTest::TearDown();
  }
  uint64_t read(int n, PageId p) {
    Line& l = nodes[n]->line(*sessions[n], p);
    EXPECT_TRUE(sessions[n]->lock_shared(l, p).ok());
    const uint64_t value = read_word(*nodes[n]->node, l);
    sessions[n]->unlock_shared(l);
    return value;
  }
  uint64_t change(int n, PageId p, uint64_t add) {
    Line& l = nodes[n]->line(*sessions[n], p);
    EXPECT_TRUE(sessions[n]->lock_exclusive(l, p).ok());
    const uint64_t value = read_word(*nodes[n]->node, l) + add;
    write_word(*nodes[n]->node, l, value);
    sessions[n]->unlock_exclusive(l);
    return value;
  }
  std::vector<std::unique_ptr<Session>> sessions;
};

TEST_F(Crowd, FiftyEightNodesShareAPageAndEachWriterInvalidatesAllTheOthers) {
  uint64_t expected = 0;
  for (const int writer : {0, 57, 31}) {
    for (int n = 0; n < kNodesMax; ++n) EXPECT_EQ(read(n, page(3)), expected) << "node " << n;
    LatchWord word = pool->peek_latch(page(3));
    EXPECT_FALSE(word.has_owner());
    EXPECT_EQ(word.readers().count(), kNodesMax);
    const uint64_t asked = nodes[writer]->count(Counter::kPeerInvSent);
    expected = change(writer, page(3), 1000);
    EXPECT_EQ(nodes[writer]->count(Counter::kPeerInvSent) - asked, uint64_t(kNodesMax - 1));
    word = pool->peek_latch(page(3));
    ASSERT_TRUE(word.has_owner());
    EXPECT_EQ(word.owner(), NodeId{uint8_t(writer)});
    EXPECT_TRUE(word.readers().empty());
    for (int n = 0; n < kNodesMax; ++n) {
      // A node that gave its share up answers first, and then lets go of the latch, whose word says so.
      const MsiState msi = n == writer ? MsiState::kModified : MsiState::kInvalid;
      EXPECT_TRUE(gcl_test::eventually([&] { return nodes[n]->directory.find(page(3))->msi() == msi; }))
          << "node " << n;
    }
  }
  EXPECT_EQ(expected, 3000u);
}

TEST_F(Crowd, AllWriteAtOnceAndLeave) {
  constexpr int kChanges = 20, kHot = 3;
  std::vector<std::thread> threads;
  for (int n = 0; n < kNodesMax; ++n)
    threads.emplace_back([&, n] {
      for (int i = 0; i < kChanges; ++i) change(n, page(uint64_t((n + i) % kHot), uint8_t(i % 2)), 1);
    });
  for (std::thread& t : threads) t.join();
  uint64_t sum = 0;
  for (uint64_t p = 0; p < kHot; ++p)
    for (uint8_t m = 0; m < 2; ++m) {
      const uint64_t value = read(0, page(p, m));
      EXPECT_EQ(read(57, page(p, m)), value);
      sum += value;
    }
  EXPECT_EQ(sum, uint64_t(kNodesMax * kChanges));
  Problem problem;
  for (int n = kNodesMax; n-- > 0;) {
    nodes[n]->stop();
    bool last = false;
    EXPECT_TRUE(nodes[n]->node->leave(*sessions[n], &last, &problem).ok()) << problem.text;
    EXPECT_EQ(last, n == 0);
  }
  for (uint64_t p = 0; p < kHot; ++p) EXPECT_EQ(pool->peek_latch(page(p)), LatchWord::free());
}

TEST_F(Crowd, AFiftyNinthIsRefused) {
  Problem problem;
  const ArenaSpec arena{.frames = 16, .sessions_max = 16, .private_bytes = 4096};
  EXPECT_EQ(Node::join(*pool, NodeId{58}, arena, &problem, shm_transport()).error(), Errc::kNotFound);
  EXPECT_STREQ(problem.text, "the pool has room for nodes 0 to 57, not for 58");
  const std::string other = path + "-other";
  EXPECT_EQ(LocalPool::create({other.c_str(), nullptr, ""}, {.nodes_max = 59}, &problem).error(), Errc::kIncompatible);
  EXPECT_NE(strstr(problem.text, "1 to 58 nodes"), nullptr) << problem.text;
  EXPECT_NE(access(other.c_str(), F_OK), 0);
  for (int n = 0; n < kNodesMax; ++n) EXPECT_FALSE(nodes[n]->node->fenced());
}

}  // namespace coherence
