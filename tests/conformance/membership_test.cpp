// What every Membership does when nodes join and leave, and when the pool is fenced (coherence/member/membership.hpp).
#include <signal.h>
#include <sys/wait.h>

#include <cstring>
#include <utility>

#include "members.hpp"
#include "tests/support/processes.hpp"

namespace conformance {

using gcl_test::eventually;

INSTANTIATE_TEST_SUITE_P(Transport, MembersContract, testing::ValuesIn(members_kinds()),
                         [](const auto& info) { return std::string(info.param.name); });
INSTANTIATE_TEST_SUITE_P(Transport, MembersOfProcesses, testing::ValuesIn(members_kinds_of_processes()),
                         [](const auto& info) { return std::string(info.param.name); });

namespace {

// One that joins beside the test, in a thread that lives as long as what it may have forked.
class JoinsBeside {
 public:
  JoinsBeside(const std::function<Status()>& join)
      : thread_([this, join] {
          ok_ = join().ok();
          returned_ = true;
          while (!over_.load()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }) {}
  ~JoinsBeside() {
    over_ = true;
    thread_.join();
  }
  JoinsBeside(const JoinsBeside&) = delete;
  bool returned() const { return returned_.load(); }
  bool ok() const { return ok_.load(); }

 private:
  std::atomic<bool> returned_{false}, ok_{false}, over_{false};
  std::thread thread_;
};

}  // namespace

// --- joining

// member.join-seen-by-all
TEST_P(MembersContract, ANewcomerIsThereForAllWhenItHasJoined) {
  Candidate &first = join(0), &second = join(1);
  for (uint8_t round = 0; round < 10; round++) {
    Candidate& comes = join(2);
    for (Candidate* by : {&first, &second, &comes}) ASSERT_TRUE(is(*by, comes, MemberState::kLive)) << int(round);
    EXPECT_FALSE(leave(comes));
  }
}

// member.join-seen-by-all, also of a node that learns nothing for a while.
TEST_P(MembersContract, AJoinWaitsForTheLookOfEachNode) {
  Candidate &first = join(0), &slow = join(1);
  const auto comes = candidate();
  slow.hold();
  {
    JoinsBeside joiner([&] { return join(*comes, 2); });
    EXPECT_TRUE(stays([&] { return !joiner.returned() || is(slow, *comes, MemberState::kLive); }));
    slow.go_on();
    ASSERT_TRUE(eventually([&] { return joiner.returned(); }));
    EXPECT_TRUE(joiner.ok()) << problem.text;
    for (Candidate* by : {&first, &slow}) EXPECT_TRUE(is(*by, *comes, MemberState::kLive));
  }
}

TEST_P(MembersContract, AJoinDoesNotWaitForANodeThatDies) {
  Candidate &first = join(0), &dies = join(1);
  const auto comes = candidate();
  dies.hold();
  {
    JoinsBeside joiner([&] { return join(*comes, 2); });
    (void)stays([&] { return !joiner.returned(); });
    dies.die();
    ASSERT_TRUE(eventually([&] { return joiner.returned(); }));
    EXPECT_TRUE(joiner.ok()) << problem.text;
    EXPECT_TRUE(is(first, *comes, MemberState::kLive));
  }
}

// member.incarnations-grow
TEST_P(MembersContract, AnIncarnationIsGivenOnce) {
  Candidate& stays_here = join(0);
  uint64_t newest = stays_here.incarnation;
  for (uint8_t round = 0; round < 4; round++) {
    const auto tries = candidate();
    ASSERT_TRUE(begin(*tries).ok()) << problem.text;
    ASSERT_TRUE(reserve(*tries, 1).ok()) << problem.text;
    EXPECT_GT(tries->incarnation, newest) << "it is not the first that was reserved";
    newest = tries->incarnation;
    tries->members().end_change();  // it is published never
    Candidate& joins = join(uint8_t(1 + round % 2));
    EXPECT_GT(joins.incarnation, newest);
    newest = joins.incarnation;
    EXPECT_EQ(look(stays_here, joins).incarnation, newest);
    EXPECT_FALSE(leave(joins));
  }
  EXPECT_TRUE(leave(stays_here));
  EXPECT_GT(join(0).incarnation, newest) << "the pool was empty, and saved";
}

TEST_P(MembersContract, AnIdIsOfOneLivingNode) {
  Candidate& first = join(0);
  const auto other = candidate();
  ASSERT_TRUE(begin(*other).ok()) << problem.text;
  EXPECT_EQ(reserve(*other, 0).error(), Errc::kBusy) << problem.text;
  EXPECT_EQ(reserve(*other, kNodesMax).error(), Errc::kNotFound) << problem.text;
  EXPECT_TRUE(other->members().all_dead().empty());
  EXPECT_TRUE(reserve(*other, 1).ok()) << problem.text;
  other->members().end_change();
  EXPECT_TRUE(is(first, first, MemberState::kLive));
}

// region.state-of-incarnation.  What a node was is not seen of the incarnation that it is, or the other way round.
TEST_P(MembersContract, AStateIsSeenWithItsIncarnation) {
  Candidate& looks = join(0);
  std::atomic<bool> over{false};
  std::atomic<int> wrong{0};
  std::thread looker([&] {
    NodeInfo before;
    uint64_t left = 0, view = 0;  // the last incarnation that had ceased to serve
    while (!over.load()) {
      const uint64_t now_view = looks.members().view();
      const NodeInfo now = looks.members().info(NodeId{1});
      wrong += now.incarnation < before.incarnation || now_view < view;
      wrong += now.serves() && now.incarnation <= left;
      if (before.serves() && !now.serves()) left = before.incarnation;
      before = now;
      view = now_view;
    }
  });
  for (int round = 0; round < 20; round++) (void)leave(join(1));
  over = true;
  looker.join();
  EXPECT_EQ(wrong.load(), 0);
}

// region.view-around-change
TEST_P(MembersContract, TheViewGrowsWithEachChange) {
  Candidate &one = join(0), &two = join(1);
  uint64_t seen[2] = {one.members().view(), two.members().view()};
  const auto grew = [&](const char* what) {
    for (const auto& [by, before] : {std::pair{&one, &seen[0]}, {&two, &seen[1]}}) {
      EXPECT_GT(by->members().view(), *before) << what;
      *before = by->members().view();
    }
  };
  const auto both = {&one, &two};
  Candidate& leaves = join(2);
  grew("a join");
  (void)leave(leaves);
  EXPECT_TRUE(all_see(both, leaves, MemberState::kAbsent));
  grew("a leave");
  Candidate& dies = join(3);
  grew("a join");
  dies.die();
  EXPECT_TRUE(all_see(both, dies, MemberState::kDead));
  grew("a death");
  (void)one.members().quiesced(dies.id);
  EXPECT_TRUE(quiesced(two, dies) && quiesced(one, dies));
  grew("repairable");
  EXPECT_TRUE(swept(one, dies) && all_see(both, dies, MemberState::kSwept));
  grew("swept");
  (void)one.members().drained(dies.id);
  EXPECT_TRUE(drained(two, dies) && all_see(both, dies, MemberState::kAbsent));
  grew("absent");
}

// --- changes

// member.change-alone
TEST_P(MembersContract, AChangeIsOneProcesssAtATime) {
  const auto holds = candidate(), waits = candidate();
  ASSERT_TRUE(begin(*holds).ok()) << problem.text;
  Problem busy;
  EXPECT_EQ(waits->members().begin_change(kTry, &busy).error(), Errc::kBusy);
  {
    JoinsBeside waiter([&] { return waits->members().begin_change(kWait, &busy); });
    EXPECT_TRUE(stays([&] { return !waiter.returned(); }));
    ASSERT_TRUE(reserve(*holds, 0).ok()) << problem.text;
    ASSERT_TRUE(holds->publish(holds->id, holds->incarnation, &problem).ok()) << problem.text;
    EXPECT_FALSE(waiter.returned());
    holds->members().end_change();
    EXPECT_TRUE(eventually([&] { return waiter.returned(); }));
    EXPECT_TRUE(waiter.ok()) << busy.text;
  }
  EXPECT_EQ(holds->members().begin_change(kTry, &problem).error(), Errc::kBusy) << "the other one's turn";
}

// member.change-alone.  No node joins here: that takes a while, and a killed process is waited for a short while only.
TEST_P(MembersOfProcesses, AChangeEndsWithItsProcess) {
  make({.repairs_deaths = true}, kShortNs);
  const pid_t dies = gcl_test::child([&] {
    const auto candidate = this->candidate();
    CHILD_VERIFY(begin(*candidate).ok() && reserve(*candidate, 1).ok());
    kill(getpid(), SIGKILL);
  });
  int status = 0;
  ASSERT_EQ(waitpid(dies, &status, 0), dies);
  ASSERT_TRUE(WIFSIGNALED(status)) << status;
  const auto next = candidate();
  ASSERT_TRUE(eventually([&] { return next->members().begin_change(kTry, &problem).ok(); })) << problem.text;
  EXPECT_TRUE(reserve(*next, 1).ok()) << "what was reserved is nobody's: " << problem.text;
  EXPECT_GT(next->incarnation, 1u);
}

// --- leaving

// member.left-is-absent
TEST_P(MembersContract, ANodeThatHasLeftIsAbsentAndNotDead) {
  Candidate &first = join(0), &second = join(1), &leaves = join(2);
  for (Candidate* by : {&first, &second}) (void)by->members().watch(1);
  leaves.members().begin_leaving();
  for (Candidate* by : {&first, &second}) EXPECT_TRUE(comes_to_be(*by, leaves, MemberState::kLeaving));
  EXPECT_TRUE(look(first, leaves).serves());
  EXPECT_FALSE(leave(leaves)) << "two are in the pool";
  leaves.die();  // its processes end
  for (Candidate* by : {&first, &second}) {
    EXPECT_TRUE(eventually([&] {
      EXPECT_FALSE(look(*by, leaves).dead());
      return is(*by, leaves, MemberState::kAbsent);
    }));
    EXPECT_FALSE(by->members().watch(2)) << "nobody has died";
    EXPECT_TRUE(by->members().repairable().empty());
    EXPECT_EQ(by->members().fence_word().load(), 0u);
  }
  Candidate& again = join(2);
  EXPECT_GT(again.incarnation, leaves.incarnation);
  EXPECT_FALSE(leave(again));
  EXPECT_FALSE(leave(second));
  EXPECT_TRUE(leave(first)) << "it was the last";
}

TEST_P(MembersContract, APoolWithADeadNodeIsNotEmpty) {
  Candidate &leaves = join(0), &dies = join(1);
  dies.die();
  EXPECT_TRUE(comes_to_be(leaves, dies, MemberState::kDead));
  EXPECT_FALSE(leave(leaves));
}

// --- the fence

// member.fence-reaches-all
TEST_P(MembersContract, AFenceReachesAllAndKeepsItsReason) {
  Candidate &first = join(0), &second = join(1), &third = join(2);
  const auto late = candidate();
  first.hold();
  first.members().fence("a page is torn");
  EXPECT_NE(first.members().fence_word().load(), 0u) << "here at once";
  first.members().fence("and another");
  first.go_on();
  EXPECT_STREQ(first.members().fence_reason(), "a page is torn");
  for (Candidate* by : {&second, &third}) {
    EXPECT_TRUE(eventually([&] { return by->members().fence_word().load() != 0; }));
    EXPECT_STREQ(by->members().fence_reason(), "a page is torn");
    by->members().fence("a third one");
    EXPECT_FALSE(by->members().is_cut_off()) << "the pool is fenced, not this node alone";
  }
  EXPECT_TRUE(stays([&] { return strcmp(first.members().fence_reason(), "a page is torn") == 0; }));
  ASSERT_TRUE(begin(second).ok()) << problem.text;
  EXPECT_EQ(second.members().withdraw(&problem).error(), Errc::kFenced);
  second.members().end_change();
  ASSERT_TRUE(begin(*late).ok()) << problem.text;
  EXPECT_EQ(reserve(*late, 3).error(), Errc::kFenced);
  EXPECT_NE(strstr(problem.text, "a page is torn"), nullptr) << problem.text;
}

// member.fence-reaches-all.  One that was forked before looks for itself.
TEST_P(MembersOfProcesses, AForkedProcessSeesWhatComesLater) {
  Candidate &first = join(0), &second = join(1);
  const pid_t looks = gcl_test::child([&] {
    Membership& members = first.members();
    CHILD_VERIFY(eventually([&] { return members.info(NodeId{2}).state == MemberState::kLive; }));
    CHILD_VERIFY(eventually([&] { return members.fence_word().load() != 0; }));
    CHILD_VERIFY(strcmp(members.fence_reason(), "a page is torn") == 0);
  });
  (void)join(2);
  second.members().fence("a page is torn");
  EXPECT_TRUE(gcl_test::ended_well(looks));
}

// node.cut-off-joins-again, alone where the transport can do that, and survivors repair deaths.
TEST_P(MembersContract, ANodeThatIsCutOffEndsAloneIfItCan) {
  Candidate &first = join(0), &second = join(1);
  first.members().cut_off("a batch is lost");
  first.members().cut_off("and another");
  EXPECT_NE(first.members().fence_word().load(), 0u);
  EXPECT_STREQ(first.members().fence_reason(), "a batch is lost");
  EXPECT_EQ(first.members().is_cut_off(), GetParam().cuts_off_alone);
  if (!GetParam().cuts_off_alone) {
    EXPECT_TRUE(eventually([&] { return second.members().fence_word().load() != 0; }));
    EXPECT_STREQ(second.members().fence_reason(), "a batch is lost");
    return;
  }
  ASSERT_TRUE(stays([&] { return second.members().fence_word().load() == 0; }));
  first.die();
  ASSERT_TRUE(repair({&second}, first));
  Candidate& again = join(0);
  EXPECT_EQ(again.members().fence_word().load() + second.members().fence_word().load(), 0u);
  EXPECT_FALSE(again.members().is_cut_off());
}

TEST_P(MembersContract, WhereDeathsAreNotRepairedACutOffNodeEndsAll) {
  make({.repairs_deaths = false});
  Candidate &first = join(0), &second = join(1);
  first.members().cut_off("a batch is lost");
  EXPECT_FALSE(first.members().is_cut_off());
  EXPECT_TRUE(eventually([&] { return second.members().fence_word().load() != 0; }));
  EXPECT_STREQ(second.members().fence_reason(), "a batch is lost");
}

}  // namespace conformance
