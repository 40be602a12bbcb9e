// What becomes of nodes that have died, or do not reach each other, as survivors say it to memory node 0.
#include "members.hpp"

namespace coherence::tcp {
namespace {

class TcpSurvivors : public MemberServerTest {
 protected:
  void SetUp() override {
    records_deaths = true;
    make({});
    for (uint8_t n = 0; n < 3; n++) nodes.push_back(&join(n));
    nodes[2]->raw.link->end("the node ends");
    for (MemberPeer* one : {nodes[0], nodes[1]})
      EXPECT_TRUE(until([&] { return one->state(2) == MemberState::kDead; }));
  }
  void say(uint8_t by, Said what, uint64_t incarnation = 3) {
    ASSERT_TRUE(nodes[by]->say([&](SayingsRecord& s) { s.said[uint8_t(what)][2] = incarnation; }));
  }
  bool repairable() const { return (nodes[0]->table.head.repairable & nodes[1]->table.head.repairable) == 4; }
  std::vector<MemberPeer*> nodes;
};

TEST_F(TcpSurvivors, ADeadNodeIsRecordedRepairedAndForgotten) {
  say(0, Said::kQuiescent);
  say(1, Said::kQuiescent);
  for_a_while();
  EXPECT_EQ(nodes[0]->table.head.repairable, 0u) << "its death is not recorded";
  say(1, Said::kRecorded);
  EXPECT_TRUE(until([&] { return repairable(); }));
  EXPECT_EQ(nodes[0]->table.head.recorded, 4u);
  say(0, Said::kDrained);
  for_a_while();
  EXPECT_EQ(nodes[1]->state(2), MemberState::kDead) << "nobody has swept it";
  say(0, Said::kSwept);
  EXPECT_TRUE(until([&] { return nodes[1]->state(2) == MemberState::kSwept && nodes[0]->table.head.repairable == 0; }));
  for_a_while();
  EXPECT_EQ(nodes[1]->state(2), MemberState::kSwept) << "the second has not drained";
  say(1, Said::kDrained);
  EXPECT_TRUE(until([&] { return nodes[0]->state(2) == MemberState::kAbsent; }));
  EXPECT_TRUE(log.tell("node 2 is repaired")) << log.all;
  (void)join(2);
  EXPECT_EQ(incarnation(2), 4u);
}

TEST_F(TcpSurvivors, WhatIsSaidOfAFormerIncarnationSaysNothing) {
  for (const Said what : {Said::kRecorded, Said::kQuiescent, Said::kSwept, Said::kDrained})
    for (uint8_t by : {0, 1}) say(by, what, 2);
  for_a_while();
  EXPECT_EQ(nodes[0]->state(2), MemberState::kDead);
  EXPECT_EQ(nodes[0]->table.head.repairable | nodes[0]->table.head.recorded, 0u);
}

TEST_F(TcpSurvivors, TheSecondDeathEndsTheWaitForThatNodesWord) {
  say(0, Said::kQuiescent);
  say(0, Said::kRecorded);
  for_a_while();
  EXPECT_EQ(nodes[0]->table.head.repairable, 0u);
  nodes[1]->raw.link->end("the node ends");
  EXPECT_TRUE(until([&] { return nodes[0]->table.head.repairable == 4; }));
  EXPECT_EQ(nodes[0]->state(1), MemberState::kDead);
}

// repair.alone is for a pool in which nobody works.
TEST_F(TcpSurvivors, NobodyRepairsAloneWhileANodeLives) {
  MemberPeer& by = tool();
  EXPECT_EQ(call(by, {.call = Call::kBeginChange}).error, Errc::kOk);
  EXPECT_EQ(call(by, {.call = Call::kAllDead}).value, 0u);
  ask(by, {.call = Call::kForget, .nodes = 4});
  EXPECT_TRUE(until([&] { return by.over(); }));
  EXPECT_EQ(state(2), MemberState::kDead);
}

// --- nodes that reach memory, and not each other (tcp.unreached-one-dies)

// With that many memory nodes: where there are more, a death takes a while (tcp.dead-when-all-refuse).
class TcpUnreached : public MemberServerTest, public testing::WithParamInterface<uint32_t> {
 protected:
  void SetUp() override {
    make({.memory_nodes = GetParam()});
    for (uint8_t n = 0; n < 4; n++) nodes.push_back(&join(n));
  }
  void say(uint8_t by, uint8_t about) {
    ASSERT_TRUE(nodes[by]->say([&](SayingsRecord& s) { s.said[uint8_t(Said::kUnreached)][about] = about + 1u; }));
  }
  // Of nodes 0 to 3 the dead.
  NodeSet dead() const {
    NodeSet set;
    for (uint8_t n = 0; n < 4; n++)
      if (state(n) == MemberState::kDead) set = set.with(NodeId{n});
    return set;
  }
  std::vector<MemberPeer*> nodes;
};

TEST_P(TcpUnreached, OfTwoThatDoNotReachEachOtherTheHigherDies) {
  say(1, 3);
  EXPECT_TRUE(until([&] { return !dead().empty(); }));
  for_a_while();
  EXPECT_EQ(dead(), NodeSet::of(NodeId{3}));
  EXPECT_TRUE(until([&] { return nodes[3]->over(); }));
  EXPECT_TRUE(log.tell("node 3 (incarnation 4) is dead: 1 of the pool's nodes and it do not reach")) << log.all;
}

// Though it complains of all others before they do of it.
TEST_P(TcpUnreached, ANodeThatIsAloneDiesAndTheOthersGoOn) {
  for (uint8_t about : {1, 2, 3}) say(0, about);
  for (int i = 0; i < 20; i++) run_once();
  for (uint8_t by : {1, 2, 3}) say(by, 0);
  EXPECT_TRUE(until([&] { return !dead().empty(); }));
  for_a_while();
  EXPECT_EQ(dead(), NodeSet::of(NodeId{0}));
}

TEST_P(TcpUnreached, OfTwoHalvesOneGoesOn) {
  for (uint8_t by : {2, 3})
    for (uint8_t about : {0, 1}) say(by, about);
  EXPECT_TRUE(until([&] { return dead().count() == 2; }));
  for_a_while();
  EXPECT_EQ(dead(), NodeSet::of(NodeId{3}).with(NodeId{2}));
}

TEST_P(TcpUnreached, AComplaintAboutAFormerIncarnationIsNone) {
  ASSERT_TRUE(nodes[3]->say([&](SayingsRecord& s) { s.said[uint8_t(Said::kUnreached)][1] = 1; }));
  nodes[2]->raw.link->end("the node ends");
  say(3, 2);
  EXPECT_TRUE(until([&] { return !dead().empty(); }));
  nap(400'000'000);
  for_a_while();
  EXPECT_EQ(dead(), NodeSet::of(NodeId{2})) << "which has ended by itself";
}

// Its death is under way when it is to be judged, and longer.
TEST_P(TcpUnreached, ADyingNodeIsNotJudged) {
  for (FurtherPart& one : further) one.stands_still = true;
  nodes[3]->raw.link->end("the node ends");
  for (uint8_t by : {0, 1, 2}) say(by, 3);
  const uint64_t judged = monotonic_ns() + 2 * times.patience_ns;
  EXPECT_TRUE(until([&] { return monotonic_ns() > judged; }));
  for (FurtherPart& one : further) one.stands_still = false;
  EXPECT_TRUE(until([&] { return !dead().empty(); }));
  for_a_while();
  EXPECT_EQ(dead(), NodeSet::of(NodeId{3}));
}

INSTANTIATE_TEST_SUITE_P(MemoryNodes, TcpUnreached, testing::Values(1u, 2u));

}  // namespace
}  // namespace coherence::tcp
