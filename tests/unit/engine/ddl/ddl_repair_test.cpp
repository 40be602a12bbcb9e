// What dead nodes have left in the DDL channel is ended by those that live (ddl_log.one-heir).
#include <atomic>
#include <thread>

#include "tests/unit/engine/ddl/ddl_repair_fixture.hpp"

namespace gcl_test {
namespace {

using engine::DdlLocks;

TEST_F(DdlRepairTest, AnOpenTransactionIsRolledBackAndThenItsLocksAreFree) {
  coordinate([](Coordinator& it) {
    ASSERT_TRUE(it.begin());
    it.post(DdlKind::kStatement);
  });
  const DdlHolder dead = holder_of_lock();
  ASSERT_EQ(dead.node(), id(2));
  DdlRepair heir = repair(0, host_);
  EXPECT_TRUE(heir.names(id(2)));
  heir.take_over(NodeSet::of(id(2)));
  EXPECT_FALSE(heir.names(id(2)));
  EXPECT_EQ(holder_of_lock(), dead) << "the participants are still at work";
  EXPECT_FALSE(heir.tend());
  EXPECT_EQ(host_.posts, 1);
  EXPECT_EQ(host_.last_to, NodeSet::of(id(0)).with(id(1))) << "all members, the heir's node too";
  EXPECT_EQ(channel(1).slot(0).newest().kind(), DdlKind::kAbort);
  EXPECT_EQ(channel(1).slot(0).cancelled(), 1u) << "who works on the statement stops";
  DdlHeader header;
  ASSERT_TRUE(channel(1).slot(0).read(2, &header));
  EXPECT_EQ(header.transaction, 1u);
  EXPECT_STREQ(header.database, "postgres");
  EXPECT_FALSE(channel(1).slot(0).acknowledge(2, true, {}).valid());
  EXPECT_FALSE(heir.tend());
  EXPECT_EQ(holder_of_lock(), dead);
  EXPECT_EQ(channel(0).slot(0).acknowledge(2, true, {}), id(0)) << "the heir hears of the last answer";
  EXPECT_TRUE(heir.tend());
  EXPECT_EQ(host_.posts, 1);
  EXPECT_FALSE(holder_of_lock().held());
  EXPECT_FALSE(channel(1).slot(0).owner().held());
}

TEST_F(DdlRepairTest, ATransactionThatHasCommittedIsCommittedEverywhere) {
  coordinate([](Coordinator& it) {
    ASSERT_TRUE(it.begin());
    it.post(DdlKind::kStatement);
    it.slot.set_txn(kTxn);
    it.post(DdlKind::kPrepare);
  });
  host_.said = DdlOutcome::kCommitted;
  DdlRepair heir = repair(1, host_);
  heir.take_over(NodeSet::of(id(2)));
  EXPECT_FALSE(heir.tend());
  EXPECT_EQ(channel(0).slot(0).newest().kind(), DdlKind::kCommit);
  EXPECT_EQ(channel(0).slot(0).cancelled(), 0u);
  for (int n : {0, 1}) (void)channel(n).slot(0).acknowledge(3, true, {});
  EXPECT_TRUE(heir.tend());
  EXPECT_FALSE(holder_of_lock().held());
}

TEST_F(DdlRepairTest, WhatIsInDoubtStaysUntilItIsDecided) {
  die_in_doubt();
  DdlRepair heir = repair(0, host_);
  heir.take_over(NodeSet::of(id(2)));
  EXPECT_FALSE(heir.names(id(2))) << "its name may be free again";
  EXPECT_TRUE(heir.tend());
  EXPECT_EQ(host_.posts, 0);
  EXPECT_EQ(channel(1).slot(0).owner().node(), id(2));
  DdlHolder other;
  EXPECT_FALSE(channel(1).locks().try_lock(1, nodes_[1]->me, 1, &other) &&
               channel(1).locks().try_lock(DdlLocks::kWholeCluster, nodes_[1]->me, 1, &other))
      << "nothing of its database follows, and nobody joins";
  (void)channel(1).locks().unlock_all(nodes_[1]->me);
  // The node comes back, and says what became of it.
  comes_back(2);
  DdlRepair back = repair(2, other_host_);
  other_host_.said = DdlOutcome::kUndecided;
  back.take_over_former_life();
  EXPECT_TRUE(back.tend());
  EXPECT_TRUE(holder_of_lock().held());
  other_host_.said = DdlOutcome::kCommitted;
  back.take_over_former_life();
  EXPECT_FALSE(back.tend());
  EXPECT_EQ(channel(1).slot(0).newest().kind(), DdlKind::kCommit);
  for (int n : {0, 1}) (void)channel(n).slot(0).acknowledge(2, true, {});
  EXPECT_TRUE(back.tend());
  EXPECT_FALSE(holder_of_lock().held());
}

TEST_F(DdlRepairTest, WhatIsDecidedWhileItsNodeIsAwayIsEndedByOneOfTheOthers) {
  die_in_doubt();
  DdlRepair heir = repair(0, host_);
  const auto absent = [](coherence::NodeId node) { return node == id(2); };
  heir.take_over(NodeSet::of(id(2)));
  heir.take_over_decided(absent);
  EXPECT_TRUE(heir.tend());
  EXPECT_TRUE(holder_of_lock().held()) << "it is still in doubt";
  host_.said = DdlOutcome::kRolledBack;
  heir.take_over_decided([](coherence::NodeId) { return false; });
  EXPECT_TRUE(heir.tend()) << "its node is there, and is the heir itself";
  heir.take_over_decided(absent);
  EXPECT_FALSE(heir.tend());
  EXPECT_EQ(channel(1).slot(0).newest().kind(), DdlKind::kAbort);
  EXPECT_TRUE(holder_of_lock().held());
  for (int n : {0, 1}) (void)channel(n).slot(0).acknowledge(2, true, {});
  EXPECT_TRUE(heir.tend());
  EXPECT_FALSE(holder_of_lock().held());
  EXPECT_FALSE(channel(1).slot(0).owner().held());
}

// Nothing was posted, so there is nobody to tell; an heir that dies between slot and locks leaves the locks to the
// next.
TEST_F(DdlRepairTest, LocksOfAnAbsentNodeThatNothingKeepsAreFreed) {
  coordinate([](Coordinator& it) {
    ASSERT_TRUE(it.begin());
    it.slot.set_txn(kTxn);
  });
  host_.said = DdlOutcome::kUndecided;
  DdlRepair heir = repair(0, host_);
  const auto absent = [](coherence::NodeId node) { return node == id(2); };
  heir.take_over_decided(absent);
  EXPECT_TRUE(holder_of_lock().held());
  EXPECT_TRUE(channel(1).slot(0).replace_owner(channel(1).slot(0).owner(), {}));
  heir.take_over_decided(absent);
  EXPECT_FALSE(holder_of_lock().held());
}

TEST_F(DdlRepairTest, AnEndThatTheDeadHasPostedIsNotPostedAgain) {
  coordinate([](Coordinator& it) {
    ASSERT_TRUE(it.begin());
    it.slot.set_txn(kTxn);
    it.post(DdlKind::kPrepare);
    it.post(DdlKind::kCommit);
  });
  host_.said = DdlOutcome::kCommitted;
  (void)channel(0).slot(0).acknowledge(2, true, {});
  DdlRepair heir = repair(0, host_);
  heir.take_over(NodeSet::of(id(2)));
  EXPECT_FALSE(heir.tend()) << "node 1 is still at it";
  EXPECT_TRUE(holder_of_lock().held());
  EXPECT_EQ(channel(1).slot(0).acknowledge(2, true, {}), id(0));
  EXPECT_TRUE(heir.tend());
  EXPECT_EQ(host_.posts, 0);
  EXPECT_FALSE(holder_of_lock().held());
}

TEST_F(DdlRepairTest, LocksWithoutATransactionAreFreeAtOnce) {
  coordinate([this](Coordinator& it) {
    DdlHolder other;
    ASSERT_TRUE(it.channel.locks().try_lock(it.lock, it.me, 1, &other));
    ASSERT_FALSE(it.channel.locks().try_lock(DdlLocks::kWholeCluster, nodes_[0]->me, 1, &other)) << "it waits for it";
    ASSERT_TRUE(it.slot.take(it.me, 1));
  });
  DdlHolder other;
  EXPECT_FALSE(channel(0).locks().try_lock(DdlLocks::kWholeCluster, nodes_[0]->me, 1, &other));
  DdlRepair heir = repair(0, host_);
  heir.take_over(NodeSet::of(id(2)));
  EXPECT_GT(host_.wakes, 0);
  EXPECT_TRUE(channel(0).locks().try_lock(DdlLocks::kWholeCluster, nodes_[0]->me, 1, &other));
  EXPECT_FALSE(channel(0).slot(0).owner().held());
  EXPECT_TRUE(heir.tend());
  EXPECT_EQ(host_.posts, 0);
}

// It has taken a slot whose newest message is of a session that lives, and has another lock by now.
TEST_F(DdlRepairTest, ALockOfASessionThatLivesIsLeftAlone) {
  Coordinator former(channel(1), nodes_[1]->me);
  ASSERT_TRUE(former.begin());
  former.post(DdlKind::kAbort);
  (void)channel(0).slot(0).acknowledge(1, true, {});
  (void)channel(2).slot(0).acknowledge(1, true, {});
  former.end();
  DdlHolder other;
  const int another = channel(1).locks().lock_of("another");
  ASSERT_TRUE(channel(1).locks().try_lock(another, former.me, 1, &other));
  coordinate([](Coordinator& it) { ASSERT_TRUE(it.begin()); });
  DdlRepair heir = repair(0, host_);
  heir.take_over(NodeSet::of(id(2)));
  EXPECT_TRUE(heir.tend());
  EXPECT_EQ(DdlHolder{channel(0).locks().words(another).holder}, former.me);
  EXPECT_FALSE(channel(0).slot(0).owner().held());
}

TEST_F(DdlRepairTest, ADeadNodeIsNotWaitedFor) {
  Coordinator coordinator(channel(0), nodes_[0]->me);
  ASSERT_TRUE(coordinator.begin());
  coordinator.post(DdlKind::kPrepare);
  const auto members = channel(0).members();
  (void)channel(1).slot(0).acknowledge(1, true, {});
  die(2);
  await_repairable(2);
  EXPECT_EQ(coordinator.slot.reply_of(id(2), members.incarnation[2], 1), engine::DdlReply::kPending);
  channel(0).set_applied(id(2), engine::DdlApplied::upto(5));
  DdlRepair heir = repair(1, host_);
  heir.take_over(NodeSet::of(id(2)));
  EXPECT_GT(host_.wakes, 0);
  EXPECT_EQ(coordinator.slot.reply_of(id(2), members.incarnation[2], 1), engine::DdlReply::kGone);
  EXPECT_TRUE(coordinator.slot.all_have_dealt());
  EXPECT_EQ(channel(0).members().nodes, NodeSet::of(id(1)));
  EXPECT_EQ(channel(0).applied(id(2)).number(), 5u) << "the log is kept for it";
  EXPECT_EQ(coordinator.slot.owner(), coordinator.me) << "who lives keeps what it has";
  EXPECT_EQ(holder_of_lock(), coordinator.me);
}

TEST_F(DdlRepairTest, AnHeirThatDiesHasAnHeir) {
  coordinate([](Coordinator& it) {
    ASSERT_TRUE(it.begin());
    it.post(DdlKind::kStatement);
  });
  DdlRepair first = repair(1, host_);
  first.take_over(NodeSet::of(id(2)));
  EXPECT_FALSE(first.tend());
  (void)channel(0).slot(0).acknowledge(2, true, {});
  die(1);
  await_repairable(1);
  DdlRepair second = repair(0, other_host_);
  EXPECT_TRUE(second.names(id(1)));
  second.take_over(NodeSet::of(id(1)).with(id(2)));
  EXPECT_FALSE(second.names(id(1)));
  EXPECT_TRUE(second.tend()) << "all that are left have dealt with what the first one has posted";
  EXPECT_EQ(other_host_.posts, 0);
  EXPECT_FALSE(holder_of_lock().held());
  EXPECT_FALSE(channel(0).slot(0).owner().held());
}

TEST_F(DdlRepairTest, OfTwoSurvivorsOneIsTheHeir) {
  for (int round = 0; round < 10; ++round) {
    coordinate([](Coordinator& it) {
      ASSERT_TRUE(it.begin());
      it.post(DdlKind::kStatement);
    });
    host_.posts = other_host_.posts = 0;
    std::atomic<int> ready{0};
    const auto both = [&](int n, Host& host) {
      DdlRepair mine = repair(n, host);
      Participant participant(channel(n), id(n));
      ++ready;
      while (ready < 2) {
      }
      mine.take_over(NodeSet::of(id(2)));
      EXPECT_TRUE(gcl_test::eventually([&] { return participant.serve(0), mine.tend(); }));
      ++ready;
      while (ready < 4) participant.serve(0);
    };
    std::thread other([&] { both(1, other_host_); });
    both(0, host_);
    other.join();
    EXPECT_EQ(host_.posts + other_host_.posts, 1);
    EXPECT_FALSE(holder_of_lock().held());
    EXPECT_FALSE(channel(0).slot(0).owner().held());
    comes_back(2);
    channel(2).join(uint64_t(200 + round));
  }
}

TEST_F(DdlRepairTest, ASessionOfTheNextIncarnationIsNotTakenForADeadOne) {
  coordinate([](Coordinator& it) {
    ASSERT_TRUE(it.begin());
    it.post(DdlKind::kStatement);
  });
  DdlRepair heir = repair(0, host_);
  heir.take_over(NodeSet::of(id(2)));
  EXPECT_FALSE(heir.tend());
  comes_back(2);  // its sessions and processes have the same numbers
  DdlRepair back = repair(2, other_host_);
  back.take_over_former_life();
  EXPECT_TRUE(back.tend());
  DdlHolder other;
  const int lock = channel(2).locks().lock_of("postgres");
  EXPECT_FALSE(channel(2).locks().try_lock(lock, nodes_[2]->me, 2, &other)) << "its heir frees it";
  for (int n : {0, 1}) (void)channel(n).slot(0).acknowledge(2, true, {});
  EXPECT_TRUE(heir.tend());
  EXPECT_TRUE(channel(2).locks().try_lock(lock, nodes_[2]->me, 2, &other));
  heir.take_over(NodeSet{});
  back.take_over_former_life();
  EXPECT_EQ(holder_of_lock(), nodes_[2]->me) << "it lives";
}

}  // namespace
}  // namespace gcl_test
