// What a Session promises, one sentence at a time.
#include "cluster.hpp"
#include "tests/support/eventually.hpp"

namespace coherence {

using gcl_test::eventually;

class Sessions : public ClusterTest {
 protected:
  void SetUp() override {
    ClusterTest::SetUp();
    add_node(), add_node();
    a = std::make_unique<Session>(*nodes[0]->node, SessionId{0}, &stop_a);
    b = std::make_unique<Session>(*nodes[1]->node, SessionId{0}, &stop_b);
  }
  void TearDown() override {
    a.reset(), b.reset();
    ClusterTest::TearDown();
  }
  Line& line_a() { return nodes[0]->line(*a, p); }
  Line& line_b() { return nodes[1]->line(*b, p); }
  PageId p = page(3);
  TestInterrupts stop_a, stop_b;
  std::unique_ptr<Session> a, b;
};

TEST_F(Sessions, ALatchIsGivenToAPeerWhenItsGuardEnds) {
  ASSERT_TRUE(a->lock_exclusive(line_a(), p).ok());
  std::atomic<bool> got{false};
  std::thread other([&] {
    ASSERT_TRUE(b->lock_exclusive(line_b(), p).ok());
    EXPECT_EQ(read_word(*nodes[1]->node, line_b()), 42u);
    got = true;
    b->unlock_exclusive(line_b());
  });
  ASSERT_TRUE(eventually([&] { return nodes[0]->count(Counter::kParked) == 1; }));
  EXPECT_FALSE(got);
  EXPECT_TRUE(line_a().word().pending());
  write_word(*nodes[0]->node, line_a(), 42);
  a->unlock_exclusive(line_a());
  other.join();
  EXPECT_TRUE(got);
  EXPECT_EQ(nodes[0]->count(Counter::kServedByUnlocker), 1u);
  EXPECT_FALSE(line_a().word().pending());
}

// Each time before the peer has what it asked for, and not when a share stays.
TEST_F(Sessions, TheLayerAboveIsToldWhatAPeerHasTaken) {
  const auto lost = [&] { return std::pair(nodes[0]->directory.losses.load(), nodes[1]->directory.losses.load()); };
  ASSERT_TRUE(a->lock_exclusive(line_a(), p).ok());
  a->unlock_exclusive(line_a());
  ASSERT_TRUE(b->lock_shared(line_b(), p).ok());
  b->unlock_shared(line_b());
  EXPECT_EQ(lost(), std::pair(0, 0));
  ASSERT_TRUE(a->lock_exclusive(line_a(), p).ok());  // the share of b is gone
  a->unlock_exclusive(line_a());
  EXPECT_TRUE(eventually([&] { return lost() == std::pair(0, 1); }));
  ASSERT_TRUE(b->lock_exclusive(line_b(), p).ok());  // handed over
  b->unlock_exclusive(line_b());
  EXPECT_TRUE(eventually([&] { return lost() == std::pair(1, 1); }));
  ASSERT_TRUE(eventually([&] { return nodes[1]->evict(*b, p); }));  // not while the grant is in flight
  EXPECT_EQ(lost(), std::pair(1, 1));
}

TEST_F(Sessions, AnInterruptedWaiterLeavesAndTheWorkerFinishes) {
  ASSERT_TRUE(a->lock_exclusive(line_a(), p).ok());
  std::thread other([&] { EXPECT_EQ(b->lock_exclusive(line_b(), p).error(), Errc::kInterrupted); });
  ASSERT_TRUE(eventually([&] { return nodes[0]->count(Counter::kParked) == 1; }));
  stop_b.raised = true;
  other.join();
  stop_b.raised = false;
  a->unlock_exclusive(line_a());
  ASSERT_TRUE(eventually([&] { return pool->peek_latch(p) == LatchWord::owned_by(NodeId{1}); }));
  ASSERT_TRUE(eventually([&] { return line_b().word().free(); }));
  EXPECT_TRUE(b->try_lock_exclusive(line_b(), p).ok());  // the node owns it, no session holds it
  b->unlock_exclusive(line_b());
}

TEST_F(Sessions, AChangedPageStaysUntilItsLogIsFlushed) {
  ASSERT_TRUE(a->lock_exclusive(line_a(), p).ok());
  write_word(*nodes[0]->node, line_a(), 1, Lsn{100});
  a->unlock_exclusive(line_a());
  EXPECT_EQ(a->try_evict(line_a(), p).error(), Errc::kWouldBlock);
  std::atomic<bool> got{false};
  std::thread other([&] {
    ASSERT_TRUE(b->lock_shared(line_b(), p).ok());
    got = true;
    b->unlock_shared(line_b());
  });
  ASSERT_TRUE(
      eventually([&] { return nodes[0]->horizon.requested == 100 && nodes[0]->count(Counter::kFlushWaits) > 0; }));
  EXPECT_FALSE(got);
  nodes[0]->horizon.flushed_lsn = 100;
  other.join();
  EXPECT_TRUE(got);
}

TEST_F(Sessions, ASessionThatFlushedTheLogAnswersWhatWaitedForThat) {
  nodes[0]->stop();  // no worker: what is answered, a has answered
  ASSERT_TRUE(a->lock_exclusive(line_a(), p).ok());
  write_word(*nodes[0]->node, line_a(), 1, Lsn{100});
  a->unlock_exclusive(line_a());
  std::atomic<bool> got{false};
  std::thread other([&] {
    ASSERT_TRUE(b->lock_exclusive(line_b(), p).ok());
    got = true;
    b->unlock_exclusive(line_b());
  });
  const PageId another = page(4);
  ASSERT_TRUE(eventually([&] {  // a session that unlocks looks into the inbox
    EXPECT_TRUE(a->lock_shared(nodes[0]->line(*a, another), another).ok());
    a->unlock_shared(nodes[0]->line(*a, another));
    return nodes[0]->count(Counter::kFlushWaits) > 0;
  }));
  a->serve_flushed();
  EXPECT_FALSE(got);
  nodes[0]->horizon.flushed_lsn = 100;
  a->serve_flushed();
  other.join();
  EXPECT_EQ(nodes[0]->count(Counter::kServedByUnlocker), 1u);
}

TEST_F(Sessions, ATransactionLongHoldKeepsThePageHere) {
  ASSERT_TRUE(a->lock_shared(line_a(), p).ok());
  a->hold(line_a(), false);
  a->unlock_shared(line_a());
  for (int i = 0; i < 40; i++) {  // more than gamma: the owner itself is never kept out
    EXPECT_EQ(b->lock_exclusive(line_b(), p).error(), Errc::kHeld);
    ASSERT_TRUE(a->lock_shared(line_a(), p).ok());
    a->unlock_shared(line_a());
  }
  EXPECT_EQ(a->try_evict(line_a(), p).error(), Errc::kWouldBlock);
  a->drop_hold(line_a(), false);
  ASSERT_TRUE(b->lock_exclusive(line_b(), p).ok());
  b->unlock_exclusive(line_b());
}

TEST_F(Sessions, APeerGetsItsTurnAgainstABusyNode) {
  std::atomic<bool> stop{false};
  std::vector<std::thread> busy;
  for (uint16_t t = 2; t < 5; t++)
    busy.emplace_back([&, t] {
      Session s(*nodes[0]->node, SessionId{t}, nullptr);
      Line& l = nodes[0]->line(s, p);
      while (!stop) {
        if (t == 2 ? s.lock_exclusive(l, p).ok() : s.lock_shared(l, p).ok())
          t == 2 ? s.unlock_exclusive(l) : s.unlock_shared(l);
      }
    });
  for (int i = 0; i < 50; i++) {
    ASSERT_TRUE(b->lock_exclusive(line_b(), p).ok());
    b->unlock_exclusive(line_b());
  }
  stop = true;
  for (auto& t : busy) t.join();
}

// A late session has the line from a look-up of before; a peer's claim asks the directory.
TEST_F(Sessions, ALineIsFoundBeforeALateSessionCanFetchItsPage) {
  Line& line = line_a();
  ASSERT_TRUE(nodes[0]->evict(*a, p));
  Session late(*nodes[0]->node, SessionId{7}, nullptr);
  std::atomic<bool> has_it{false};
  std::thread reader;
  ASSERT_TRUE(a->assign(line, p, [&] {
                 reader = std::thread([&] {
                   EXPECT_TRUE(late.lock_shared(line, p).ok());
                   has_it = true;
                 });
                 EXPECT_TRUE(gcl_test::eventually([&] { return late.counters().get(Counter::kLocalWaits) > 0; }));
                 EXPECT_TRUE(line.word().exclusive());
                 EXPECT_FALSE(has_it);
                 nodes[0]->directory.at(p).store(&line);
               }).ok());
  reader.join();
  EXPECT_EQ(pool->peek_latch(p), LatchWord::shared_by(NodeSet::of(nodes[0]->node->id())));
  late.unlock_shared(line);
}

TEST_F(Sessions, TryNeverWaitsAndNeverFetches) {
  EXPECT_EQ(a->try_lock_shared(line_a(), p).error(), Errc::kWouldBlock);
  EXPECT_EQ(pool->peek_latch(p), LatchWord::free());
  ASSERT_TRUE(a->lock_shared(line_a(), p).ok());
  EXPECT_EQ(a->try_lock_exclusive(line_a(), p).error(), Errc::kWouldBlock);
  a->unlock_shared(line_a());
  EXPECT_TRUE(a->try_lock_shared(line_a(), p).ok());
  a->unlock_shared(line_a());
}

// A session that is interrupted where the line has become free just before it said that it waits leaves that mark, and
// perhaps no other one comes there again.
TEST_F(Sessions, WhatAWaiterLeftAtAFreeLineKeepsNobodyFromWritingItBack) {
  ASSERT_TRUE(a->lock_exclusive(line_a(), p).ok());
  write_word(*nodes[0]->node, line_a(), 42);
  a->unlock_exclusive(line_a());
  fields(line_a()).latch.fetch_or(LocalWord::kExclusiveWaiters);
  EXPECT_EQ(a->write_back(line_a(), p).error(), Errc::kOk);
  EXPECT_EQ(line_a().first_change(), Line::kNoChange);
  EXPECT_FALSE(line_a().word().has_waiters());
}

// Readers may come as long as the line is not free: it writes nothing back before them.
TEST_F(Sessions, AWriteBackStandsBehindAWriterThatWaitsForReaders) {
  ASSERT_TRUE(a->lock_exclusive(line_a(), p).ok());
  write_word(*nodes[0]->node, line_a(), 42);
  a->downgrade(line_a());
  fields(line_a()).latch.fetch_or(LocalWord::kExclusiveWaiters);
  EXPECT_EQ(a->write_back(line_a(), p).error(), Errc::kWouldBlock);
  a->unlock_shared(line_a());
  EXPECT_EQ(a->write_back(line_a(), p).error(), Errc::kOk);
}

TEST_F(Sessions, AnOptimisticReaderIsToldOfAWriter) {
  ASSERT_TRUE(a->lock_exclusive(line_a(), p).ok());
  a->unlock_exclusive(line_a());
  uint64_t token;
  ASSERT_TRUE(line_a().begin_optimistic(p, &token));
  EXPECT_TRUE(line_a().validate(token));
  EXPECT_FALSE(line_a().begin_optimistic(page(4), &token));
  ASSERT_TRUE(line_a().begin_optimistic(p, &token));
  ASSERT_TRUE(a->try_upgrade(line_a(), p, token).ok());
  EXPECT_FALSE(line_a().validate(token));
  a->unlock_exclusive(line_a());
  EXPECT_EQ(a->try_upgrade(line_a(), p, token).error(), Errc::kRestart);
  ASSERT_TRUE(line_a().begin_optimistic(p, &token));
  ASSERT_TRUE(b->lock_exclusive(line_b(), p).ok());
  b->unlock_exclusive(line_b());
  EXPECT_FALSE(line_a().validate(token));
}

TEST_F(Sessions, AnotherPagesLineSaysRestart) {
  ASSERT_TRUE(a->lock_shared(line_a(), p).ok());
  a->unlock_shared(line_a());
  Line& l = line_a();
  EXPECT_EQ(a->lock_shared(l, page(9)).error(), Errc::kRestart);
  EXPECT_EQ(a->lock_exclusive(l, page(9)).error(), Errc::kRestart);
  EXPECT_TRUE(l.word().free());
  ASSERT_TRUE(nodes[0]->evict(*a, p));
  EXPECT_EQ(a->lock_shared(l, p).error(), Errc::kRestart);
}

TEST_F(Sessions, TheFenceEndsEveryWait) {
  ASSERT_TRUE(a->lock_exclusive(line_a(), p).ok());
  std::thread remote([&] { EXPECT_EQ(b->lock_shared(line_b(), p).error(), Errc::kFenced); });
  std::thread local([&] {
    Session c(*nodes[0]->node, SessionId{1}, nullptr);
    EXPECT_EQ(c.lock_shared(nodes[0]->line(c, p), p).error(), Errc::kFenced);
  });
  ASSERT_TRUE(eventually([&] { return nodes[0]->count(Counter::kParked) == 1; }));
  nodes[1]->node->fence("a test said so");
  remote.join(), local.join();
  EXPECT_STREQ(nodes[0]->node->fence_reason(), "a test said so");
}

}  // namespace coherence
