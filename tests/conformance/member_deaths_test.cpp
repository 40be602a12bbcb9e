// What every Membership does when nodes have died: who learns of it, and which step of a repair follows which
// (coherence/member/membership.hpp, repair.*).
#include <cstring>

#include "members.hpp"

namespace conformance {

using gcl_test::eventually;

// member.death-seen-by-all
TEST_P(MembersContract, ADeathIsSeenByAllThatServe) {
  Candidate &first = join(0), &second = join(1), &dies = join(2);
  EXPECT_FALSE(first.members().watch(1) || second.members().watch(1));
  dies.die();
  int told = 0;
  for (Candidate* by : {&first, &second})
    EXPECT_TRUE(eventually([&] {
      told += by->members().watch(2);
      return is(*by, dies, MemberState::kDead);
    }));
  EXPECT_GE(told, 1) << "the first that knows wakes the others";
  for (Candidate* by : {&first, &second}) {
    EXPECT_FALSE(by->members().watch(3)) << "once";
    EXPECT_TRUE(is(*by, first, MemberState::kLive) && is(*by, second, MemberState::kLive));
    EXPECT_EQ(by->members().fence_word().load(), 0u);
    EXPECT_TRUE(by->members().unrecorded().empty()) << "nothing is recorded in this pool";
  }
}

TEST_P(MembersContract, GivingUpIsADeathAtOnce) {
  Candidate &first = join(0), &gives_up = join(1);
  gives_up.members().give_up();
  EXPECT_TRUE(repair({&first}, gives_up));
}

TEST_P(MembersContract, WhereDeathsAreNotRepairedTheyFence) {
  make({.repairs_deaths = false});
  Candidate &first = join(0), &second = join(1), &dies = join(2);
  EXPECT_FALSE(first.members().repairs_deaths());
  dies.die();
  for (Candidate* by : {&first, &second}) {
    EXPECT_TRUE(eventually([&] {
      (void)by->members().watch(1);
      return by->members().fence_word().load() != 0;
    }));
    EXPECT_NE(strstr(by->members().fence_reason(), "node 2"), nullptr) << by->members().fence_reason();
  }
}

// --- the steps of a repair

// repair.quiesced-first
TEST_P(MembersContract, NothingIsRepairedBeforeAllAreQuiescent) {
  Candidate &first = join(0), &second = join(1), &third = join(2), &dies = join(3);
  dies.die();
  EXPECT_TRUE(all_see({&first, &second, &third}, dies, MemberState::kDead));
  EXPECT_TRUE(stays([&] {
    const bool done = first.members().quiesced(dies.id) || second.members().quiesced(dies.id);
    return !done && third.members().repairable().empty();
  }));
  EXPECT_TRUE(quiesced(third, dies));
  for (Candidate* by : {&first, &second, &third}) {
    EXPECT_TRUE(quiesced(*by, dies));
    EXPECT_EQ(by->members().repairable(), NodeSet::of(dies.id));
  }
}

// repair.recorded-first
TEST_P(MembersContract, NothingIsRepairedBeforeItIsRecorded) {
  make({.repairs_deaths = true, .records_deaths = true});
  Candidate &first = join(0), &second = join(1), &dies = join(2);
  dies.die();
  for (Candidate* by : {&first, &second}) {
    EXPECT_TRUE(comes_to_be(*by, dies, MemberState::kDead));
    EXPECT_EQ(by->members().unrecorded(), NodeSet::of(dies.id));
  }
  EXPECT_TRUE(stays([&] {
    const bool done = first.members().quiesced(dies.id) || second.members().quiesced(dies.id);
    return !done && first.members().repairable().empty();
  }));
  EXPECT_TRUE(recorded(second, dies));
  EXPECT_TRUE(eventually([&] { return first.members().unrecorded().empty(); }));
  EXPECT_TRUE(quiesced(first, dies) && quiesced(second, dies));
  EXPECT_EQ(first.members().repairable(), NodeSet::of(dies.id));
}

// repair.drained-last
TEST_P(MembersContract, ADeadNodeIsAbsentWhenAllHaveDrained) {
  Candidate &first = join(0), &second = join(1), &dies = join(2);
  const auto again = candidate();
  dies.die();
  EXPECT_TRUE(all_see({&first, &second}, dies, MemberState::kDead));
  (void)first.members().quiesced(dies.id);
  EXPECT_TRUE(quiesced(second, dies) && quiesced(first, dies));
  EXPECT_TRUE(swept(second, dies));
  EXPECT_TRUE(all_see({&first, &second}, dies, MemberState::kSwept));
  EXPECT_TRUE(first.members().repairable().empty() && second.members().repairable().empty());
  EXPECT_TRUE(stays([&] { return !first.members().drained(dies.id) && is(second, dies, MemberState::kSwept); }));
  EXPECT_EQ(join(*again, 2).error(), Errc::kUnrepaired) << problem.text;
  EXPECT_TRUE(drained(second, dies) && drained(first, dies));
  EXPECT_TRUE(all_see({&first, &second}, dies, MemberState::kAbsent));
  Candidate& joins = join(2);
  EXPECT_GT(joins.incarnation, dies.incarnation);
  EXPECT_TRUE(is(first, joins, MemberState::kLive));
}

// --- who has to say it

// member.survivors-serve
TEST_P(MembersContract, ASecondDeathEndsTheWaitForThatNode) {
  Candidate &stays_here = join(0), &dies = join(1), &dies_next = join(2);
  dies.die();
  EXPECT_TRUE(all_see({&stays_here, &dies_next}, dies, MemberState::kDead));
  EXPECT_FALSE(stays_here.members().quiesced(dies.id));
  dies_next.die();
  EXPECT_TRUE(comes_to_be(stays_here, dies_next, MemberState::kDead));
  EXPECT_TRUE(quiesced(stays_here, dies)) << "nobody else serves";
  EXPECT_TRUE(quiesced(stays_here, dies_next) && swept(stays_here, dies) && swept(stays_here, dies_next));
  EXPECT_TRUE(drained(stays_here, dies) && drained(stays_here, dies_next));
  EXPECT_TRUE(is(stays_here, dies, MemberState::kAbsent) && is(stays_here, dies_next, MemberState::kAbsent));
}

// member.survivors-serve
TEST_P(MembersContract, ANodeThatLeavesEndsTheWaitForIt) {
  Candidate &stays_here = join(0), &dies = join(1), &leaves = join(2);
  dies.die();
  EXPECT_TRUE(all_see({&stays_here, &leaves}, dies, MemberState::kDead));
  EXPECT_FALSE(stays_here.members().quiesced(dies.id));
  leaves.members().begin_leaving();
  EXPECT_TRUE(stays([&] { return !stays_here.members().quiesced(dies.id); })) << "it serves still";
  EXPECT_FALSE(leave(leaves));
  EXPECT_TRUE(quiesced(stays_here, dies));
}

// member.survivors-serve
TEST_P(MembersContract, ANewcomerIsQuiescentAndHasToDrain) {
  Candidate &first = join(0), &dies = join(1);
  dies.die();
  EXPECT_TRUE(comes_to_be(first, dies, MemberState::kDead));
  Candidate& comes = join(2);
  EXPECT_TRUE(is(comes, dies, MemberState::kDead));
  EXPECT_TRUE(quiesced(first, dies)) << "the newcomer has nothing of it";
  EXPECT_TRUE(swept(first, dies));
  EXPECT_TRUE(comes_to_be(comes, dies, MemberState::kSwept));
  EXPECT_TRUE(stays([&] { return !first.members().drained(dies.id); })) << "the newcomer may take over";
  EXPECT_TRUE(drained(comes, dies));
  EXPECT_TRUE(drained(first, dies));
}

// --- what is not heard

// member.next-step-only
TEST_P(MembersContract, WhatIsSaidOfAnotherIncarnationChangesNothing) {
  make({.repairs_deaths = true, .records_deaths = true});
  Candidate &first = join(0), &second = join(1), &former = join(2);
  (void)leave(former);
  Candidate& dies = join(2);
  dies.die();
  EXPECT_TRUE(all_see({&first, &second}, dies, MemberState::kDead));
  const auto others = {former.incarnation, dies.incarnation + 1};
  for (const uint64_t other : others) EXPECT_TRUE(first.members().recorded(dies.id, other));
  EXPECT_TRUE(stays([&] { return second.members().unrecorded().has(dies.id); }));
  EXPECT_TRUE(recorded(first, dies));
  (void)first.members().quiesced(dies.id);
  EXPECT_TRUE(quiesced(second, dies) && quiesced(first, dies));
  for (const uint64_t other : others) EXPECT_TRUE(first.members().swept(dies.id, other));
  EXPECT_TRUE(stays([&] { return is(second, dies, MemberState::kDead) && first.members().repairable().has(dies.id); }));
  EXPECT_TRUE(swept(first, dies));
  EXPECT_TRUE(all_see({&first, &second}, dies, MemberState::kSwept));
}

// member.next-step-only, of a step before its turn, and of one that is said once more.
TEST_P(MembersContract, AStepThatIsNotTheNextChangesNothing) {
  Candidate &first = join(0), &second = join(1), &dies = join(2);
  dies.die();
  EXPECT_TRUE(all_see({&first, &second}, dies, MemberState::kDead));
  for (Candidate* by : {&first, &second}) {
    EXPECT_TRUE(by->members().swept(dies.id, dies.incarnation)) << "it is not repairable";
    EXPECT_TRUE(by->members().drained(dies.id)) << "it is not swept";
  }
  EXPECT_TRUE(stays([&] { return is(second, dies, MemberState::kDead) && second.members().repairable().empty(); }));
  (void)first.members().quiesced(dies.id);
  EXPECT_TRUE(quiesced(second, dies) && quiesced(first, dies) && swept(first, dies));
  EXPECT_TRUE(all_see({&first, &second}, dies, MemberState::kSwept)) << "what was said before its turn does not count";
  for (Candidate* by : {&first, &second}) {
    EXPECT_TRUE(by->members().quiesced(dies.id));
    EXPECT_TRUE(by->members().swept(dies.id, dies.incarnation));
  }
  EXPECT_TRUE(stays([&] { return !first.members().drained(dies.id) && second.members().repairable().empty(); }));
  EXPECT_TRUE(drained(second, dies) && drained(first, dies));
  EXPECT_TRUE(all_see({&first, &second}, dies, MemberState::kAbsent));
}

// member.next-step-only, of a node that lives; it dies later.
TEST_P(MembersContract, WhatIsSaidOfALivingNodeSaysNothing) {
  Candidate &first = join(0), &second = join(1), &lives = join(2);
  for (Candidate* by : {&first, &second}) {
    EXPECT_TRUE(by->members().quiesced(lives.id));
    EXPECT_TRUE(by->members().recorded(lives.id, lives.incarnation));
    EXPECT_TRUE(by->members().swept(lives.id, lives.incarnation));
    EXPECT_TRUE(by->members().drained(lives.id));
  }
  EXPECT_TRUE(stays([&] { return is(second, lives, MemberState::kLive); }));
  lives.die();
  EXPECT_TRUE(all_see({&first, &second}, lives, MemberState::kDead));
  EXPECT_TRUE(stays([&] { return !second.members().quiesced(lives.id); })) << "the first was quiescent too early";
  (void)first.members().quiesced(lives.id);
  EXPECT_TRUE(quiesced(second, lives) && quiesced(first, lives));
}

// What was said of one death does not count for the next one of the same node.
TEST_P(MembersContract, EachDeathIsRepairedByItself) {
  Candidate &first = join(0), &second = join(1);
  for (int round = 0; round < 3; round++) {
    Candidate& dies = join(2);
    dies.die();
    EXPECT_TRUE(all_see({&first, &second}, dies, MemberState::kDead));
    EXPECT_TRUE(stays([&] { return !first.members().quiesced(dies.id); }))
        << "the second has not said so, round " << round;
    EXPECT_TRUE(quiesced(second, dies) && quiesced(first, dies) && swept(first, dies));
    EXPECT_TRUE(all_see({&first, &second}, dies, MemberState::kSwept));
    EXPECT_TRUE(stays([&] { return !second.members().drained(dies.id); }))
        << "the first has not said so, round " << round;
    EXPECT_TRUE(drained(first, dies) && drained(second, dies));
    EXPECT_TRUE(all_see({&first, &second}, dies, MemberState::kAbsent));
  }
}

// --- where nobody is left

// repair.alone
TEST_P(MembersContract, APoolWhoseNodesAreDeadIsRepairedByTheFirstToJoin) {
  Candidate &one = join(0), &two = join(1);
  const auto comes = candidate();
  one.die();
  ASSERT_TRUE(begin(*comes).ok()) << problem.text;
  EXPECT_TRUE(stays([&] { return comes->members().all_dead().empty(); })) << "a node lives";
  two.die();
  EXPECT_TRUE(eventually([&] { return comes->members().all_dead() == NodeSet::of(one.id).with(two.id); }));
  EXPECT_EQ(reserve(*comes, 0).error(), Errc::kUnrepaired) << problem.text;
  comes->members().forget(NodeSet::of(one.id).with(two.id));
  EXPECT_TRUE(comes->members().all_dead().empty());
  ASSERT_TRUE(reserve(*comes, 0).ok()) << problem.text;
  ASSERT_TRUE(comes->publish(comes->id, comes->incarnation, &problem).ok()) << problem.text;
  comes->members().end_change();
  EXPECT_TRUE(is(*comes, *comes, MemberState::kLive) && is(*comes, two, MemberState::kAbsent));
  EXPECT_TRUE(leave(*comes)) << "it is alone in the pool";
}

}  // namespace conformance
