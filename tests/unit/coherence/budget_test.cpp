// What each access costs in batches and messages, counted; the same whichever memory node holds the page.
#include "cluster.hpp"

namespace coherence {

class Budget : public ClusterTest, public testing::WithParamInterface<int> {
 protected:
  struct Cost {
    uint64_t batches, requests, replies;
    bool operator==(const Cost&) const = default;
  };
  friend std::ostream& operator<<(std::ostream& o, const Cost& c) {
    return o << c.batches << " batches, " << c.requests << " requests, " << c.replies << " replies";
  }
  static PageId page(uint64_t n) { return ClusterTest::page(n, uint8_t(GetParam())); }
  void SetUp() override {
    ClusterTest::SetUp();
    for (int i = 0; i < 4; i++) add_node();
    for (int i = 0; i < 4; i++) sessions.push_back(std::make_unique<Session>(*nodes[i]->node, SessionId{0}, nullptr));
  }
  void TearDown() override {
    sessions.clear();
    ClusterTest::TearDown();
  }
  Cost total(const TestNode& n) const {
    return {n.count(Counter::kBatches),
            n.count(Counter::kPeerRdSent) + n.count(Counter::kPeerWrSent) + n.count(Counter::kPeerInvSent),
            n.count(Counter::kGrantSSent) + n.count(Counter::kGrantMSent) + n.count(Counter::kDoneSent) +
                n.count(Counter::kDroppedSent)};
  }
  // What node `n` spent on `act`.
  template <class F>
  Cost cost(int n, F act) {
    Cost before = total(*nodes[n]);
    act();
    Cost after = total(*nodes[n]);
    return {after.batches - before.batches, after.requests - before.requests, after.replies - before.replies};
  }
  void read(int n) {
    Line& l = nodes[n]->line(*sessions[n], p);
    ASSERT_TRUE(sessions[n]->lock_shared(l, p).ok());
    seen = read_word(*nodes[n]->node, l);
    sessions[n]->unlock_shared(l);
  }
  void write(int n, uint64_t value) {
    Line& l = nodes[n]->line(*sessions[n], p);
    ASSERT_TRUE(sessions[n]->lock_exclusive(l, p).ok());
    write_word(*nodes[n]->node, l, value);
    sessions[n]->unlock_exclusive(l);
  }
  // Evicts pages of node 0; how many were.
  int evict(const std::vector<Line*>& lines, const std::vector<PageId>& pages) {
    TestTaker taker(*nodes[0], *sessions[0]);
    EvictionWindow window(*sessions[0], taker);
    window.add(lines.data(), pages.data(), int(lines.size()));
    window.finish();
    for (PageId taken : taker.taken) EXPECT_EQ(pool->peek_latch(taken), LatchWord::free());
    return int(taker.taken.size());
  }
  PageId p = page(5);
  uint64_t seen = 0;
  std::vector<std::unique_ptr<Session>> sessions;
};

INSTANTIATE_TEST_SUITE_P(MemoryNode, Budget, testing::Values(0, 1), testing::PrintToStringParamName());

TEST_P(Budget, AMissOfAFreePageIsOneBatch) {
  EXPECT_EQ(cost(0, [&] { read(0); }), (Cost{1, 0, 0}));
  p = page(6);
  EXPECT_EQ(cost(0, [&] { write(0, 1); }), (Cost{1, 0, 0}));
}

TEST_P(Budget, HitsCostNothing) {
  read(0);
  EXPECT_EQ(cost(0, [&] { read(0); }), (Cost{0, 0, 0}));
  p = page(6);
  write(0, 1);
  EXPECT_EQ(cost(0, [&] { read(0), write(0, 2), read(0); }), (Cost{0, 0, 0}));
  uint64_t token;
  EXPECT_EQ(cost(0,
                 [&] {
                   Line& l = nodes[0]->line(*sessions[0], p);
                   ASSERT_TRUE(l.begin_optimistic(p, &token));
                   EXPECT_TRUE(l.validate(token));
                 }),
            (Cost{0, 0, 0}));
}

TEST_P(Budget, ASoleReaderUpgradesWithOneBatch) {
  read(0);
  EXPECT_EQ(cost(0, [&] { write(0, 1); }), (Cost{1, 0, 0}));
}

TEST_P(Budget, AReadBehindAnOwnerIsOneFailedAttemptAndTheOwnerSendsOneBatch) {
  write(1, 7);
  Cost there{};
  EXPECT_EQ(cost(0, [&] { there = cost(1, [&] { read(0); }); }), (Cost{1, 1, 0}));
  EXPECT_EQ(there, (Cost{1, 0, 1}));
  EXPECT_EQ(seen, 7u);
  EXPECT_EQ(nodes[1]->count(Counter::kGrantSSent), 1u);
  EXPECT_EQ(pool->peek_latch(p).readers().count(), 2);
}

TEST_P(Budget, AWriteBehindAnOwnerIsOneFailedAttemptAndTheOwnerSendsOneBatch) {
  write(1, 7);
  Cost there{};
  EXPECT_EQ(cost(0, [&] { there = cost(1, [&] { write(0, 8); }); }), (Cost{1, 1, 0}));
  EXPECT_EQ(there, (Cost{1, 0, 1}));
  EXPECT_EQ(nodes[1]->count(Counter::kGrantMSent), 1u);
  EXPECT_EQ(pool->peek_latch(p), LatchWord::owned_by(NodeId{0}));
}

TEST_P(Budget, AWriteWithKSharersIsTwoAttemptsAndKRequests) {
  read(1), read(2), read(3);
  EXPECT_EQ(cost(0, [&] { write(0, 8); }), (Cost{2, 3, 0}));
  for (int n = 1; n <= 3; n++) EXPECT_EQ(nodes[n]->count(Counter::kDoneSent), 1u);
  read(2);
  EXPECT_EQ(seen, 8u);
}

TEST_P(Budget, AnUpgradeWithKSharersIsTwoAttemptsAndKRequests) {
  read(0), read(1), read(2);
  EXPECT_EQ(cost(0, [&] { write(0, 9); }), (Cost{2, 2, 0}));
}

// One exchange brings the page for good; without the intent it would be two.
TEST_P(Budget, AReadByASessionAboutToWriteBringsThePageForBoth) {
  auto read_to_write = [&](int n) {
    Line& l = nodes[n]->line(*sessions[n], p);
    ASSERT_TRUE(sessions[n]->lock_shared(l, p, Intent::kWrite).ok());
    EXPECT_TRUE(l.word().shared() && !l.word().exclusive());  // others of the node may read beside it
    seen = read_word(*nodes[n]->node, l);
    sessions[n]->unlock_shared(l);
  };
  write(1, 7);
  EXPECT_EQ(cost(0, [&] { read_to_write(0); }), (Cost{1, 1, 0}));
  EXPECT_EQ(seen, 7u);
  EXPECT_EQ(pool->peek_latch(p), LatchWord::owned_by(NodeId{0}));
  EXPECT_EQ(cost(0, [&] { write(0, 8); }), (Cost{0, 0, 0}));
  write(1, 9);
  EXPECT_EQ(cost(0, [&] { read(0), write(0, 10); }), (Cost{3, 2, 0}));
}

TEST_P(Budget, APageThatWasNotWrittenAfterAllIsSharedTheNextTime) {
  auto read_to_write = [&](int n) {
    Line& l = nodes[n]->line(*sessions[n], p);
    ASSERT_TRUE(sessions[n]->lock_shared(l, p, Intent::kWrite).ok());
    sessions[n]->unlock_shared(l);
  };
  read(1);
  read_to_write(0);
  EXPECT_EQ(pool->peek_latch(p), LatchWord::owned_by(NodeId{0}));
  read_to_write(1), read_to_write(0);
  for (int i = 0; i < 3; i++) EXPECT_EQ(cost(i % 2, [&] { read_to_write(i % 2); }), (Cost{0, 0, 0}));  // both share it
  write(0, 1), read_to_write(1), write(1, 2);
  EXPECT_EQ(cost(0, [&] { read_to_write(0), write(0, 3); }), (Cost{1, 1, 0}));
}

TEST_P(Budget, ASessionAboutToWriteReadsAShareAsItIs) {
  read(0), read(1);
  Line& l = nodes[0]->line(*sessions[0], p);
  EXPECT_EQ(cost(0,
                 [&] {
                   ASSERT_TRUE(sessions[0]->lock_shared(l, p, Intent::kWrite).ok());
                   sessions[0]->unlock_shared(l);
                 }),
            (Cost{0, 0, 0}));
}

TEST_P(Budget, EvictionsOfAGroupShareOneBatch) {
  std::vector<Line*> lines;
  std::vector<PageId> pages;
  for (uint64_t i = 10; i < 15; i++) {
    p = page(i);
    if (i % 2)
      write(0, i);
    else
      read(0);
    pages.push_back(p);
    lines.push_back(&nodes[0]->line(*sessions[0], p));
  }
  EXPECT_EQ(cost(0, [&] { EXPECT_EQ(evict(lines, pages), 5); }), (Cost{1, 0, 0}));
  EXPECT_EQ(nodes[0]->count(Counter::kEvictDirty), 2u);
  EXPECT_EQ(nodes[0]->count(Counter::kEvictClean), 3u);
  p = page(11);
  read(1);
  EXPECT_EQ(seen, 11u);
}

// One batch for each memory node that pages of the group belong to, however they are mixed.
TEST_P(Budget, EvictionsOfAGroupShareOneBatchPerMemoryNode) {
  std::vector<Line*> lines;
  std::vector<PageId> pages;
  for (uint64_t i = 0; i < 8; i++) {
    p = ClusterTest::page(20 + i, uint8_t(i % 2));
    write(0, i);
    pages.push_back(p);
    lines.push_back(&nodes[0]->line(*sessions[0], p));
  }
  EXPECT_EQ(cost(0, [&] { EXPECT_EQ(evict(lines, pages), 8); }), (Cost{2, 0, 0}));
  for (uint64_t i = 0; i < 8; i++) {
    p = pages[i];
    read(1);
    EXPECT_EQ(seen, i);
  }
}

TEST_P(Budget, OnlyDirtyBytesAreWrittenBack) {
  write(0, 3);
  uint64_t before = nodes[0]->count(Counter::kBytesWritten);
  Line& l = nodes[0]->line(*sessions[0], p);
  ASSERT_TRUE(sessions[0]->write_back(l, p).ok());
  EXPECT_EQ(nodes[0]->count(Counter::kBytesWritten) - before, 64u);
  EXPECT_FALSE(l.is_dirty());
  EXPECT_EQ(l.first_change(), Line::kNoChange);
  EXPECT_EQ(pool->peek_latch(p), LatchWord::owned_by(NodeId{0}));
}

}  // namespace coherence
