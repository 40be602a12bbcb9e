#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <set>
#include <string>
#include <thread>

#include "tests/unit/engine/ddl/ddl_node.hpp"

namespace {

using engine::DdlChannel;
using engine::DdlHeader;
using engine::DdlHolder;
using engine::DdlKind;
using engine::DdlMessage;
using engine::DdlReply;
using engine::DdlWanted;
using gcl_test::Node;

// The slot's newest message, as `node` reads it.
DdlMessage newest(engine::DdlSlot slot) {
  DdlMessage message;
  message.sequence = slot.sequence();
  EXPECT_TRUE(slot.read(message.sequence, &message.header));
  return message;
}

DdlHeader header_for(std::initializer_list<Node*> to, DdlKind kind = DdlKind::kStatement) {
  DdlHeader header{};
  header.kind = kind;
  for (Node* node : to) header.to = header.to.with(node->pool.node());
  std::strcpy(header.database, "postgres");
  return header;
}

TEST(DdlLocks, OnlyOneNodeHasADatabases) {
  gcl_test::Cluster cluster({.nodes = 2});
  Node a(cluster, 0), b(cluster, 1);
  DdlHolder other;
  const int lock = a.channel.locks().lock_of("postgres");
  EXPECT_EQ(b.channel.locks().lock_of("postgres"), lock);
  EXPECT_FALSE(DdlHolder{a.channel.locks().words(lock).holder}.held());
  EXPECT_TRUE(a.channel.locks().try_lock(lock, a.me, 42, &other));
  EXPECT_TRUE(a.channel.locks().try_lock(lock, a.me, 43, &other)) << "has it";
  EXPECT_FALSE(b.channel.locks().try_lock(lock, b.me, 44, &other));
  EXPECT_EQ(other, a.me);
  EXPECT_EQ(b.channel.locks().words(lock).since, 42u);
  EXPECT_STREQ(b.channel.locks().words(lock).database, "postgres");
  EXPECT_EQ(other.node().value, 0);
  EXPECT_EQ(other.pid(), 1000u);
  b.channel.locks().unlock(lock, b.me);  // not the holder: no effect
  EXPECT_FALSE(b.channel.locks().try_lock(lock, b.me, 44, &other));
  a.channel.locks().unlock(lock, a.me);
  EXPECT_TRUE(b.channel.locks().try_lock(lock, b.me, 44, &other));
}

TEST(DdlLocks, DatabasesAreIndependentOfEachOther) {
  gcl_test::Cluster cluster({.nodes = 2});
  Node a(cluster, 0), b(cluster, 1);
  DdlHolder other;
  const int one = a.channel.locks().lock_of("one"), two = b.channel.locks().lock_of("two");
  ASSERT_NE(one, two);
  EXPECT_TRUE(a.channel.locks().try_lock(one, a.me, 1, &other));
  EXPECT_TRUE(b.channel.locks().try_lock(two, b.me, 1, &other));
}

TEST(DdlLocks, EachOfManyDatabasesHasItsOwn) {
  gcl_test::Cluster cluster({.nodes = 2});
  Node a(cluster, 0), b(cluster, 1);
  std::set<int> seen;
  for (int i = 0; i < engine::kDdlDatabasesMax; ++i) {
    const std::string name = "database" + std::to_string(i);
    const int lock = a.channel.locks().lock_of(name);
    EXPECT_TRUE(lock >= 1 && lock <= engine::kDdlDatabasesMax);
    EXPECT_TRUE(seen.insert(lock).second) << name;
    EXPECT_EQ(b.channel.locks().lock_of(name), lock);
  }
  EXPECT_TRUE(seen.contains(a.channel.locks().lock_of("one more"))) << "shares";
}

TEST(DdlLocks, TheWholeClustersExcludesEveryDatabases) {
  gcl_test::Cluster cluster({.nodes = 2});
  Node a(cluster, 0), b(cluster, 1);
  engine::DdlLocks &ours = a.channel.locks(), &theirs = b.channel.locks();
  DdlHolder other;
  const int lock = ours.lock_of("one"), next = ours.lock_of("two");
  EXPECT_TRUE(theirs.try_lock(lock, b.me, 1, &other));
  EXPECT_FALSE(ours.try_lock(engine::DdlLocks::kWholeCluster, a.me, 1, &other));
  EXPECT_EQ(other, b.me);
  // It is kept all the same: no new holder comes in, and a session that had its lock before has it still.
  EXPECT_FALSE(theirs.try_lock(next, b.me, 1, &other));
  EXPECT_EQ(other, a.me);
  EXPECT_EQ(theirs.words(next).holder, 0u) << "let go again";
  EXPECT_TRUE(theirs.try_lock(lock, b.me, 1, &other));
  theirs.unlock(lock, b.me);
  EXPECT_TRUE(ours.try_lock(engine::DdlLocks::kWholeCluster, a.me, 1, &other));
  EXPECT_TRUE(ours.try_lock(next, a.me, 1, &other)) << "its own is in nobody's way";
  EXPECT_FALSE(theirs.try_lock(lock, b.me, 1, &other));
  EXPECT_TRUE(ours.unlock_all(a.me));
  EXPECT_FALSE(ours.unlock_all(a.me));
  EXPECT_TRUE(theirs.try_lock(next, b.me, 1, &other));
}

// A database's lock and the whole cluster's are never held at once (ddl_log.database-or-cluster-lock).
TEST(DdlLocks, TwoNodesNeverBothBelieveThatTheyHaveIt) {
  gcl_test::Cluster cluster({.nodes = 2});
  std::atomic<int> inside{0}, met{0}, rounds{0};
  const auto work = [&](int n) {
    Node node(cluster, n);
    engine::DdlLocks& locks = node.channel.locks();
    const int lock = n == 0 ? engine::DdlLocks::kWholeCluster : locks.lock_of("one");
    for (int i = 0; i < 20000; ++i) {
      DdlHolder other;
      if (locks.try_lock(lock, node.me, 1, &other)) {
        met += inside.fetch_add(1);
        inside.fetch_sub(1);
        ++rounds;
      }
      locks.unlock(lock, node.me);
    }
  };
  std::thread other(work, 1);
  work(0);
  other.join();
  EXPECT_EQ(met.load(), 0);
  EXPECT_GT(rounds.load(), 0);
}

TEST(DdlLocks, AHolderThatGivesOneBackHearsOnceOfThoseThatWant) {
  gcl_test::Cluster cluster({.nodes = 2});
  Node a(cluster, 0), b(cluster, 1);
  const auto taken = [&] { return a.channel.locks().take_wanted(); };
  EXPECT_FALSE(taken().any());
  b.channel.locks().want(DdlWanted::slot());
  b.channel.locks().want(DdlWanted::slot());
  EXPECT_TRUE(taken().any());
  EXPECT_FALSE(taken().any());
  b.channel.locks().want(DdlWanted::of(3));
  EXPECT_TRUE(taken().any());
}

TEST(DdlLocks, ThatWhichIsWantedSaysWhoseHolderIsWaitedFor) {
  gcl_test::Cluster cluster({.nodes = 2});
  Node a(cluster, 0), b(cluster, 1);
  engine::DdlLocks& locks = b.channel.locks();
  constexpr int kWhole = engine::DdlLocks::kWholeCluster, kLast = engine::kDdlDatabasesMax;
  locks.want(DdlWanted::slot());
  EXPECT_FALSE(a.channel.locks().take_wanted().waits_for_holder_of(kWhole));
  locks.want(DdlWanted::of(5));
  locks.want(DdlWanted::of(kLast));
  const DdlWanted some = a.channel.locks().take_wanted();
  EXPECT_TRUE(some.waits_for_holder_of(kWhole));
  EXPECT_TRUE(some.waits_for_holder_of(5));
  EXPECT_TRUE(some.waits_for_holder_of(kLast));
  EXPECT_FALSE(some.waits_for_holder_of(6));
  locks.want(DdlWanted::of(kWhole));
  EXPECT_TRUE(a.channel.locks().take_wanted().waits_for_holder_of(6)) << "who wants the whole waits for all";

  DdlHolder other;
  ASSERT_TRUE(locks.try_lock(5, b.me, 1, &other));
  const auto holders = a.channel.locks().holders();
  EXPECT_EQ(holders[5], b.me);
  EXPECT_FALSE(holders[kWhole].held());
  EXPECT_FALSE(holders[kLast].held());
}

TEST(DdlSlot, OnlyTheLastNodeToAnswerTellsTheCoordinator) {
  gcl_test::Cluster cluster({.nodes = 3});
  Node a(cluster, 0), b(cluster, 1), c(cluster, 2);
  a.channel.join(1);
  b.channel.join(2);
  c.channel.join(3);
  engine::DdlSlot ours = a.channel.slot(0), first = b.channel.slot(0), last = c.channel.slot(0);
  EXPECT_EQ(1u, ours.post(header_for({&b, &c}), nullptr));
  EXPECT_FALSE(first.acknowledge(1, true, {}).valid());
  EXPECT_TRUE(last.acknowledge(1, true, {}).valid());
  // An error is told at once: it is not waited for more than one.
  EXPECT_EQ(2u, ours.post(header_for({&b, &c}), nullptr));
  EXPECT_TRUE(first.acknowledge(2, false, "22012\ndivision by zero").valid());
  EXPECT_TRUE(last.acknowledge(2, true, {}).valid());
  // A node that has left is not waited for.
  EXPECT_EQ(3u, ours.post(header_for({&b, &c}), nullptr));
  c.channel.leave();
  EXPECT_TRUE(first.acknowledge(3, true, {}).valid());
}

TEST(DdlSlot, AMessageIsReadAndAnsweredByEveryMember) {
  gcl_test::Cluster cluster({.nodes = 3});
  Node a(cluster, 0), b(cluster, 1), c(cluster, 2);
  a.channel.join(1);
  b.channel.join(2);
  const auto members = a.channel.members();
  EXPECT_EQ(members.nodes, coherence::NodeSet::of(b.pool.node()))
      << "without the coordinator, and without who did not join";

  const std::string body = "create table t(a int) using gcl";
  DdlHeader header = header_for({&b});
  header.bytes = header.total = uint32_t(body.size());
  engine::DdlSlot ours = a.channel.slot(0), theirs = b.channel.slot(0);
  const uint64_t number = ours.post(header, body.data());
  EXPECT_EQ(ours.reply_of(b.pool.node(), 2, number), DdlReply::kPending);

  const DdlMessage message = newest(theirs);
  EXPECT_EQ(message.sequence, number);
  EXPECT_STREQ(message.header.database, "postgres");
  std::string copy(message.header.bytes, 0);
  ASSERT_TRUE(theirs.read_body(message, copy.data()));
  EXPECT_EQ(copy, body);

  (void)theirs.acknowledge(number, false, "42P07\nrelation \"t\" already exists");
  EXPECT_EQ(ours.reply_of(b.pool.node(), 2, number), DdlReply::kFailed);
  char text[engine::kDdlReplyBytes];
  EXPECT_EQ(std::string(text, ours.reply_text(b.pool.node(), text)), "42P07\nrelation \"t\" already exists");
  EXPECT_EQ(ours.reply_of(b.pool.node(), 2, number + 1), DdlReply::kPending);
}

TEST(DdlSlot, SlotsKnowNothingOfEachOther) {
  gcl_test::Cluster cluster({.nodes = 2});
  Node a(cluster, 0), b(cluster, 1);
  ASSERT_GE(a.channel.slots(), 8);
  a.channel.join(1);
  b.channel.join(2);
  const auto last = a.channel.slots() - 1;
  const std::string one(a.channel.slot(0).window_bytes(), '1'), two(one.size(), '2');
  DdlHeader header = header_for({&b});
  header.bytes = header.total = uint32_t(one.size());
  a.channel.slot(0).post(header, one.data());
  for (int slot = 1; slot <= last; ++slot) b.channel.slot(slot).post(header, two.data());
  (void)b.channel.slot(last).acknowledge(1, true, {});
  EXPECT_EQ(a.channel.slot(0).reply_of(b.pool.node(), 2, 1), DdlReply::kPending);
  std::string copy(one.size(), 0);
  ASSERT_TRUE(b.channel.slot(0).read_body(newest(b.channel.slot(0)), copy.data()));
  EXPECT_EQ(copy, one);
  ASSERT_TRUE(a.channel.slot(last).read_body(newest(a.channel.slot(last)), copy.data()));
  EXPECT_EQ(copy, two);
}

TEST(DdlSlot, ANodeThatLeftOrCameBackIsNotWaitedFor) {
  gcl_test::Cluster cluster({.nodes = 2});
  Node a(cluster, 0), b(cluster, 1);
  engine::DdlSlot slot = a.channel.slot(3);
  b.channel.join(5);
  b.channel.slot(3).begin(1);
  const uint64_t number = slot.post(header_for({&b}), nullptr);
  EXPECT_EQ(slot.reply_of(b.pool.node(), 5, number), DdlReply::kPending);
  EXPECT_FALSE(slot.all_have_dealt());
  b.channel.leave();
  EXPECT_EQ(slot.reply_of(b.pool.node(), 5, number), DdlReply::kGone);
  EXPECT_TRUE(slot.all_have_dealt());
  EXPECT_TRUE(b.channel.slot(3).has_begun(1));
  b.channel.join(6);
  EXPECT_EQ(slot.reply_of(b.pool.node(), 5, number), DdlReply::kDone) << "a joiner has dealt with all before it";
  EXPECT_EQ(slot.reply_of(b.pool.node(), 5, number + 1), DdlReply::kGone);
  EXPECT_FALSE(b.channel.slot(3).has_begun(1)) << "and has begun nothing";
}

TEST(DdlSlot, AReaderNoticesThatAnotherMessageTookThePlace) {
  gcl_test::Cluster cluster({.nodes = 2});
  Node a(cluster, 0), b(cluster, 1);
  const uint64_t first = a.channel.slot(0).post(DdlHeader{}, nullptr);
  a.channel.slot(0).post(DdlHeader{}, nullptr);
  DdlHeader header;
  EXPECT_FALSE(b.channel.slot(0).read(first, &header));
  EXPECT_TRUE(b.channel.slot(0).read(first + 1, &header));
}

TEST(DdlSlot, OneOwnerAtATimeAndTheFreeOneWhereOthersAreReadyIsLikedBest) {
  gcl_test::Cluster cluster({.nodes = 2});
  Node a(cluster, 0), b(cluster, 1);
  b.channel.join(1);
  EXPECT_EQ(a.channel.free_slot("postgres"), 0);
  EXPECT_TRUE(a.channel.slot(0).take(a.me, 42));
  EXPECT_FALSE(b.channel.slot(0).take(b.me, 43));
  uint64_t since = 0;
  EXPECT_EQ(b.channel.slot(0).owner(&since), a.me);
  EXPECT_EQ(since, 42u);
  EXPECT_EQ(b.channel.free_slot("postgres"), 1);
  // One that was about this database; but not while a node has something to do there.
  a.channel.slot(5).post(header_for({&b}), nullptr);
  EXPECT_EQ(a.channel.free_slot("postgres"), 1);
  (void)b.channel.slot(5).acknowledge(1, true, {});
  EXPECT_EQ(a.channel.free_slot("postgres"), 5);
  EXPECT_EQ(a.channel.free_slot("another"), 1);
  for (int i = 1; i < a.channel.slots(); ++i) EXPECT_TRUE(b.channel.slot(i).take(b.me, 1));
  EXPECT_EQ(a.channel.free_slot("postgres"), -1);
  a.channel.slot(0).give_up(b.me);  // not the owner
  EXPECT_EQ(a.channel.free_slot("postgres"), -1);
  a.channel.slot(0).give_up(a.me);
  EXPECT_EQ(a.channel.free_slot("postgres"), 0);
}

TEST(DdlSlot, WhatIsGrantedIsReadByANodeThatJoins) {
  gcl_test::Cluster cluster({.nodes = 2});
  Node a(cluster, 0), b(cluster, 1);
  engine::DdlSlot ours = a.channel.slot(0), theirs = b.channel.slot(0);
  engine::DdlGranted granted;
  ASSERT_TRUE(theirs.read_granted(&granted));
  EXPECT_EQ(granted.transaction, 0u);
  ASSERT_TRUE(ours.take(a.me, 1));
  DdlHeader header = header_for({}, DdlKind::kLock);
  header.transaction = 1;
  ours.post(header, nullptr);
  ours.list_target(0, {1111, 8});
  ours.list_target(1, {2222, 5});
  ASSERT_TRUE(theirs.read_granted(&granted));
  EXPECT_EQ(granted.transaction, 1u);
  EXPECT_EQ(granted.count, 0u) << "listed, and not granted yet";
  ours.set_granted(2);
  ASSERT_TRUE(theirs.read_granted(&granted));
  ASSERT_EQ(granted.count, 2u);
  EXPECT_EQ(granted.owner, a.me);
  EXPECT_EQ(granted.target[1].relation, 2222u);
  EXPECT_EQ(granted.target[1].mode, 5u);
  ours.set_granted(engine::kDdlTargetsMax + 1);
  ASSERT_TRUE(theirs.read_granted(&granted));
  EXPECT_EQ(granted.count, engine::kDdlMoreTargets);
  // Over: nothing is read, and the next owner begins with nothing.
  header.kind = DdlKind::kAbort;
  ours.post(header, nullptr);
  ASSERT_TRUE(theirs.read_granted(&granted));
  EXPECT_EQ(granted.transaction, 0u);
  ours.give_up(a.me);
  ASSERT_TRUE(theirs.take(b.me, 1));
  header.kind = DdlKind::kLock;
  header.transaction = 3;
  theirs.post(header, nullptr);
  ASSERT_TRUE(ours.read_granted(&granted));
  EXPECT_EQ(granted.transaction, 3u);
  EXPECT_EQ(granted.count, 0u);
}

// A coordinator says that it is granted and then reads the members; a joining node becomes one and then reads what is
// granted (ddl_log.joiner-takes-locks).
TEST(DdlSlot, ACoordinatorAndAJoiningNodeDoNotMissEachOther) {
  gcl_test::Cluster cluster({.nodes = 2});
  Node a(cluster, 0), b(cluster, 1);
  for (int round = 0; round < 300; ++round) {
    engine::DdlSlot slot = a.channel.slot(0);
    ASSERT_TRUE(slot.take(a.me, 1));
    DdlHeader header = header_for({}, DdlKind::kLock);
    header.transaction = slot.sequence() + 1;
    slot.post(header, nullptr);
    slot.list_target(0, {7, 8});
    std::atomic<int> ready{0};
    bool seen_by_coordinator = false, seen_by_joiner = false;
    std::thread joiner([&] {
      ++ready;
      while (ready < 2) {
      }
      b.channel.join(uint64_t(round) + 1);
      engine::DdlGranted granted;
      while (!b.channel.slot(0).read_granted(&granted)) {
      }
      seen_by_joiner = granted.count == 1;
    });
    ++ready;
    while (ready < 2) {
    }
    slot.set_granted(1);
    seen_by_coordinator = a.channel.members().nodes.has(b.pool.node());
    joiner.join();
    EXPECT_TRUE(seen_by_coordinator || seen_by_joiner);
    header.kind = DdlKind::kAbort;
    slot.post(header, nullptr);
    slot.give_up(a.me);
    b.channel.leave();
  }
}

TEST(DdlChannel, TheLeastThatANodeHasAppliedIsWhatAllHave) {
  gcl_test::Cluster cluster({.nodes = 3});
  Node a(cluster, 0), b(cluster, 1);
  coherence::NodeId behind;
  EXPECT_FALSE(a.channel.applied_by_all(&behind).known()) << "nobody is waited for";
  a.channel.set_applied(a.pool.node(), engine::DdlApplied::upto(7));
  b.channel.set_applied(b.pool.node(), engine::DdlApplied::upto(0));
  EXPECT_EQ(a.channel.applied_by_all(&behind).number(), 0u);
  EXPECT_EQ(behind, b.pool.node());
  b.channel.set_applied(b.pool.node(), engine::DdlApplied::upto(9));
  EXPECT_EQ(b.channel.applied_by_all(&behind).number(), 7u);
  EXPECT_EQ(behind, a.pool.node());
  b.channel.set_applied(a.pool.node(), engine::DdlApplied{});
  EXPECT_EQ(b.channel.applied_by_all(&behind).number(), 9u) << "a is forgotten";
}

}  // namespace
