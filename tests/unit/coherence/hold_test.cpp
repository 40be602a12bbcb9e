// Pages that a transaction holds until its end (coherence.held-until-end), and copies of them
// (coherence.copy-owns-nothing).
#include "cluster.hpp"
#include "tests/support/eventually.hpp"

namespace coherence {

using gcl_test::eventually;

class Holds : public ClusterTest {
 protected:
  void SetUp() override {
    ClusterTest::SetUp();
    for (int i = 0; i < 3; i++) add_node();
    for (int i = 0; i < 3; i++) sessions.push_back(std::make_unique<Session>(*nodes[i]->node, SessionId{0}, nullptr));
  }
  void TearDown() override {
    sessions.clear();
    ClusterTest::TearDown();
  }
  Line& line(int n) { return nodes[n]->line(*sessions[n], p); }
  // Node n's transaction `by` writes the page and holds it.
  void write_and_hold(int n, uint64_t value, uint64_t by) {
    ASSERT_TRUE(sessions[n]->lock_exclusive(line(n), p).ok());
    write_word(*nodes[n]->node, line(n), value);
    sessions[n]->hold(line(n), true, by);
    sessions[n]->unlock_exclusive(line(n));
  }
  void read_and_hold(int n, uint64_t by) {
    ASSERT_TRUE(sessions[n]->lock_shared(line(n), p).ok());
    sessions[n]->hold(line(n), false, by);
    sessions[n]->unlock_shared(line(n));
  }
  Status look(int n, ReadAccess* how, uint64_t* seen) {
    GCL_TRY(sessions[n]->begin_read(line(n), p, how));
    *seen = read_word(*nodes[n]->node, line(n));
    sessions[n]->end_read(line(n), *how);
    return {};
  }
  PageId p = page(3);
  std::vector<std::unique_ptr<Session>> sessions;
};

TEST_F(Holds, ARequesterOfAPageHeldExclusivelyIsToldTheHolder) {
  write_and_hold(1, 5, 4711);
  const LatchWord word = pool->peek_latch(p);
  EXPECT_EQ(sessions[0]->lock_shared(line(0), p).error(), Errc::kHeld);
  EXPECT_EQ(sessions[0]->holder().node, NodeId{1});
  EXPECT_EQ(sessions[0]->holder().by, 4711u);
  EXPECT_EQ(sessions[2]->lock_exclusive(line(2), p).error(), Errc::kHeld);
  EXPECT_EQ(sessions[2]->holder().by, 4711u);
  EXPECT_EQ(sessions[2]->lock_shared(line(2), p, Intent::kWrite).error(), Errc::kHeld);
  EXPECT_EQ(pool->peek_latch(p), word);  // no pending-reader bit stays behind
  EXPECT_TRUE(line(0).word().free() && line(2).word().free());
  EXPECT_EQ(line(1).word().pending(), false);
  sessions[1]->drop_hold(line(1), true, 4711);
  ASSERT_TRUE(sessions[0]->lock_shared(line(0), p).ok());
  EXPECT_EQ(read_word(*nodes[0]->node, line(0)), 5u);
  sessions[0]->unlock_shared(line(0));
}

TEST_F(Holds, ASharedHoldStopsWritersOnly) {
  read_and_hold(1, 7);
  ASSERT_TRUE(sessions[0]->lock_shared(line(0), p).ok());
  sessions[0]->unlock_shared(line(0));
  EXPECT_EQ(sessions[0]->lock_exclusive(line(0), p).error(), Errc::kHeld);  // an upgrade
  EXPECT_EQ(sessions[0]->holder().node, NodeId{1});
  EXPECT_EQ(line(0).msi(), MsiState::kShared);  // and what it had, it has
  EXPECT_EQ(sessions[2]->lock_exclusive(line(2), p).error(), Errc::kHeld);
  EXPECT_EQ(line(1).msi(), MsiState::kShared);
  sessions[1]->drop_hold(line(1), false, 7);
  ASSERT_TRUE(sessions[2]->lock_exclusive(line(2), p).ok());
  sessions[2]->unlock_exclusive(line(2));
}

// A session that intends to write, and may only read, is given that.
TEST_F(Holds, AReadersIntentGivesWay) {
  read_and_hold(1, 7);
  ASSERT_TRUE(sessions[0]->lock_shared(line(0), p, Intent::kWrite).ok());
  EXPECT_EQ(line(0).msi(), MsiState::kShared);
  sessions[0]->unlock_shared(line(0));
  sessions[1]->drop_hold(line(1), false, 7);
}

// Two transactions share a page and both want to write it: both are told, neither loses its share.
TEST_F(Holds, TwoUpgradersThatHoldAreBothTold) {
  read_and_hold(0, 10), read_and_hold(1, 11);
  EXPECT_EQ(sessions[0]->lock_exclusive(line(0), p).error(), Errc::kHeld);
  EXPECT_EQ(sessions[0]->holder().by, 11u);
  EXPECT_EQ(sessions[1]->lock_exclusive(line(1), p).error(), Errc::kHeld);
  EXPECT_EQ(sessions[1]->holder().by, 10u);
  EXPECT_EQ(line(0).msi(), MsiState::kShared);
  EXPECT_EQ(line(1).msi(), MsiState::kShared);
  sessions[1]->drop_hold(line(1), false, 11);
  ASSERT_TRUE(sessions[0]->lock_exclusive(line(0), p).ok());
  sessions[0]->unlock_exclusive(line(0));
  sessions[0]->drop_hold(line(0), false, 10);
}

class RefusedWriter : public Holds {
 protected:
  // A writer at node 2 is refused by a hold of node 0, then by one of node 1, and node 0 has given its share up.
  void SetUp() override {
    Holds::SetUp();
    read_and_hold(0, 10);
    EXPECT_EQ(sessions[2]->lock_exclusive(line(2), p).error(), Errc::kHeld);
    read_and_hold(1, 11);
    sessions[0]->drop_hold(line(0), false, 10);
    EXPECT_EQ(sessions[2]->lock_exclusive(line(2), p).error(), Errc::kHeld);
    EXPECT_TRUE(eventually([&] { return line(0).msi() == MsiState::kInvalid; }));  // the answer may come first
  }
  void read(int n) {
    ASSERT_TRUE(sessions[n]->lock_shared(line(n), p).ok());
    sessions[n]->unlock_shared(line(n));
  }
};

TEST_F(RefusedWriter, IsRememberedWhileTheNextHolderRefusesIt) {
  read(0);
  EXPECT_EQ(line(0).msi(), MsiState::kShared);
  EXPECT_TRUE(line(0).refused_writer() && line(1).refused_writer());
  sessions[1]->drop_hold(line(1), false, 11);
}

TEST_F(RefusedWriter, IsForgottenWhenThePageComesBackChanged) {
  sessions[1]->drop_hold(line(1), false, 11);
  ASSERT_TRUE(sessions[2]->lock_exclusive(line(2), p).ok());
  write_word(*nodes[2]->node, line(2), 5);
  sessions[2]->unlock_exclusive(line(2));
  read(1);  // so that it comes to node 0 out of the pool
  EXPECT_TRUE(line(0).refused_writer());
  read(0);
  EXPECT_FALSE(line(0).refused_writer() || line(1).refused_writer());
}

TEST_F(RefusedWriter, IsForgottenWhenAChangedPageIsLookedAt) {
  sessions[1]->drop_hold(line(1), false, 11);
  write_and_hold(2, 5, 12);
  ReadAccess how;
  uint64_t seen = 0;
  ASSERT_TRUE(look(0, &how, &seen).ok());
  EXPECT_EQ(how, ReadAccess::kCopied);
  EXPECT_FALSE(line(0).refused_writer());
  sessions[2]->drop_hold(line(2), true, 12);
}

TEST_F(Holds, OfSeveralTheNewestIsTold) {
  read_and_hold(1, 7), read_and_hold(1, 8);
  EXPECT_EQ(sessions[0]->lock_exclusive(line(0), p).error(), Errc::kHeld);
  EXPECT_EQ(sessions[0]->holder().by, 8u);
  sessions[1]->drop_hold(line(1), false, 8);
  EXPECT_EQ(sessions[0]->lock_exclusive(line(0), p).error(), Errc::kHeld);
  EXPECT_EQ(sessions[0]->holder().by, 0u);
  sessions[1]->drop_hold(line(1), false, 7);
  EXPECT_TRUE(sessions[0]->lock_exclusive(line(0), p).ok());
  sessions[0]->unlock_exclusive(line(0));
}

TEST_F(Holds, WhenTheNewestEndsAnotherHolderIsTold) {
  read_and_hold(1, 7), read_and_hold(1, 8), read_and_hold(1, 9);
  EXPECT_TRUE(line(1).held());
  sessions[1]->drop_hold(line(1), false, 8, 7);
  EXPECT_EQ(sessions[0]->lock_exclusive(line(0), p).error(), Errc::kHeld);
  EXPECT_EQ(sessions[0]->holder().by, 9u);
  sessions[1]->drop_hold(line(1), false, 9, 7);
  EXPECT_EQ(sessions[0]->lock_exclusive(line(0), p).error(), Errc::kHeld);
  EXPECT_EQ(sessions[0]->holder().by, 7u);
  sessions[1]->drop_hold(line(1), false, 7);
  EXPECT_FALSE(line(1).held());
  EXPECT_TRUE(sessions[0]->lock_exclusive(line(0), p).ok());
  sessions[0]->unlock_exclusive(line(0));
}

TEST_F(Holds, ALookAtAHeldPageIsACopyAndLeavesNothing) {
  write_and_hold(1, 5, 1);
  const LatchWord word = pool->peek_latch(p);
  for (uint64_t i = 0; i < 3; i++) {
    ReadAccess how;
    uint64_t seen = 0;
    const uint64_t batches = nodes[0]->count(Counter::kBatches);
    ASSERT_TRUE(look(0, &how, &seen).ok());
    EXPECT_EQ(how, ReadAccess::kCopied);
    EXPECT_EQ(seen, 5 + i);
    EXPECT_EQ(nodes[0]->count(Counter::kBatches) - batches, 2u);  // the attempt; the pending-reader bit is taken back
    EXPECT_EQ(nodes[1]->count(Counter::kCopySent), i + 1);
    EXPECT_EQ(line(0).msi(), MsiState::kInvalid);
    EXPECT_TRUE(line(0).word().free());
    EXPECT_EQ(pool->peek_latch(p), word);
    uint64_t token;
    EXPECT_FALSE(line(0).begin_optimistic(p, &token));
    ASSERT_TRUE(sessions[1]->lock_exclusive(line(1), p).ok());  // the holder goes on
    write_word(*nodes[1]->node, line(1), 6 + i);
    sessions[1]->unlock_exclusive(line(1));
  }
  EXPECT_TRUE(nodes[0]->evict(*sessions[0], p));
  sessions[1]->drop_hold(line(1), true, 1);
}

TEST_F(Holds, ALookAtAPageThatNobodyHoldsSharesIt) {
  ASSERT_TRUE(sessions[1]->lock_exclusive(line(1), p).ok());
  write_word(*nodes[1]->node, line(1), 9);
  sessions[1]->unlock_exclusive(line(1));
  for (int i = 0; i < 2; i++) {
    ReadAccess how;
    uint64_t seen = 0;
    ASSERT_TRUE(look(0, &how, &seen).ok());
    EXPECT_EQ(how, ReadAccess::kShared);
    EXPECT_EQ(seen, 9u);
  }
  EXPECT_EQ(line(0).msi(), MsiState::kShared);
  EXPECT_EQ(nodes[0]->count(Counter::kPeerRdSent), 1u);
}

// coherence.log-first holds for copies, too.
TEST_F(Holds, ACopyWaitsForTheLog) {
  ASSERT_TRUE(sessions[1]->lock_exclusive(line(1), p).ok());
  write_word(*nodes[1]->node, line(1), 5, Lsn{100});
  sessions[1]->hold(line(1), true, 1);
  sessions[1]->unlock_exclusive(line(1));
  std::atomic<bool> got{false};
  std::thread other([&] {
    ReadAccess how;
    uint64_t seen = 0;
    EXPECT_TRUE(look(0, &how, &seen).ok());
    EXPECT_EQ(how, ReadAccess::kCopied);
    EXPECT_EQ(seen, 5u);
    got = true;
  });
  ASSERT_TRUE(
      eventually([&] { return nodes[1]->horizon.requested == 100 && nodes[1]->count(Counter::kFlushWaits) > 0; }));
  EXPECT_FALSE(got);
  nodes[1]->horizon.flushed_lsn = 100;
  other.join();
  sessions[1]->drop_hold(line(1), true, 1);
}

// A request that was parked before the hold began is told when the latch is free.
TEST_F(Holds, ARequestThatWaitedForTheLatchIsToldOfTheHold) {
  ASSERT_TRUE(sessions[1]->lock_exclusive(line(1), p).ok());
  std::thread other([&] { EXPECT_EQ(sessions[0]->lock_exclusive(line(0), p).error(), Errc::kHeld); });
  ASSERT_TRUE(eventually([&] { return nodes[1]->count(Counter::kParked) == 1; }));
  sessions[1]->hold(line(1), true, 2);
  sessions[1]->unlock_exclusive(line(1));
  other.join();
  EXPECT_FALSE(line(1).word().pending());
  sessions[1]->drop_hold(line(1), true, 2);
}

// Copies while the holder changes the page again and again: whole, and never older than the last one.
TEST_F(Holds, CopiesAreWholeAndInOrder) {
  write_and_hold(1, 0, 1);
  write_word(*nodes[1]->node, line(1), 0, {}, 4096);
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    Session s(*nodes[1]->node, SessionId{1}, nullptr);
    for (uint64_t v = 1; !stop; v++) {
      ASSERT_TRUE(s.lock_exclusive(line(1), p).ok());
      write_word(*nodes[1]->node, line(1), v);
      write_word(*nodes[1]->node, line(1), v, {}, 4096);
      s.unlock_exclusive(line(1));
    }
  });
  std::vector<std::thread> readers;
  for (int n : {0, 2})
    readers.emplace_back([&, n] {
      uint64_t last = 0;
      int changes = 0;  // that were seen
      const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(gcl_test::kPatienceMs);
      for (int i = 0; i < 300 || (changes < 20 && std::chrono::steady_clock::now() < until); i++) {
        ReadAccess how;
        ASSERT_TRUE(sessions[n]->begin_read(line(n), p, &how).ok());
        EXPECT_EQ(how, ReadAccess::kCopied);
        const uint64_t a = read_word(*nodes[n]->node, line(n)), b = read_word(*nodes[n]->node, line(n), 4096);
        sessions[n]->end_read(line(n), how);
        EXPECT_EQ(a, b);
        EXPECT_GE(a, last);
        changes += a > last;
        last = a;
      }
      EXPECT_GE(changes, 20);
    });
  for (auto& t : readers) t.join();
  stop = true;
  writer.join();
  sessions[1]->drop_hold(line(1), true, 1);
}

TEST_F(Holds, ALookerThatLeavesLeavesNothingLocked) {
  nodes[1]->stop();  // no worker answers
  write_and_hold(1, 5, 1);
  TestInterrupts stop;
  stop.raised = true;
  Session hurried(*nodes[0]->node, SessionId{1}, &stop);
  ReadAccess how;
  EXPECT_EQ(hurried.begin_read(line(0), p, &how).error(), Errc::kInterrupted);
  const LatchWord word = pool->peek_latch(p);
  EXPECT_TRUE(word.readers().has(NodeId{0}));
  ASSERT_TRUE(eventually([&] {
    (void)sessions[1]->serve(1);  // the request comes, some time
    return pool->peek_latch(p) == LatchWord::owned_by(NodeId{1});
  }));
  ASSERT_TRUE(eventually([&] { return line(0).word().free(); }));
  EXPECT_EQ(line(0).msi(), MsiState::kInvalid);
  sessions[1]->drop_hold(line(1), true, 1);
}

}  // namespace coherence
