// Memory node 0 and members: which nodes are let in, what becomes of the dead, and what it believes.
#include "coherence/member/node.hpp"
#include "coherence/transport/shm/shm_transport.hpp"
#include "coherence/transport/tcp/member/lease.hpp"
#include "coherence/transport/tcp/member/mirror.hpp"
#include "coherence/transport/tcp/member/patience.hpp"
#include "members.hpp"

namespace coherence::tcp {
namespace {

using TcpMembers = MemberServerTest;

TEST_F(TcpMembers, AToolLearnsWhichPoolItIs) {
  MemberPeer& by = tool();
  EXPECT_EQ(call(by, {.call = Call::kHeader}).error, Errc::kOk);
  EXPECT_EQ(by.header.pool_id, pool->pool_id());
  EXPECT_EQ(by.header.nodes_max, 4u);
  EXPECT_STREQ(by.header.compatibility, "version=15\n");
  EXPECT_EQ(by.table.head.memory_nodes, 1u);
  EXPECT_EQ(by.table.memory_node[0].pages, 16u);
  EXPECT_EQ(by.table.head.repairs_deaths, 1u);
}

// Node 1 is published while node 0 stands still: its tool is not answered yet.
class TcpPublished : public TcpMembers {
 protected:
  struct Published {
    MemberPeer &first, &by, &second;
    uint64_t incarnation;
  };
  Published published() {
    MemberPeer& first = join(0);
    EXPECT_EQ(first.state(0), MemberState::kLive);
    first.stands_still = true;
    MemberPeer& by = tool();
    EXPECT_EQ(call(by, {.call = Call::kBeginChange}).error, Errc::kOk);
    const uint64_t incarnation = call(by, {.call = Call::kReserve, .node = 1}).value;
    MemberPeer& second = node(1, incarnation);
    ask(by, publish(1, incarnation));
    EXPECT_TRUE(until([&] { return second.state(1) == MemberState::kLive; }));
    return {first, by, second, incarnation};
  }
};

// tcp.join-seen-by-all
TEST_F(TcpPublished, ANodeIsInWhenAllOthersHaveSeenIt) {
  const auto in = published();
  MemberPeer &first = in.first, &by = in.by, &second = in.second;
  for_a_while();
  EXPECT_TRUE(by.answers.empty()) << "the first node has not seen it";
  first.stands_still = false;
  EXPECT_EQ(answer(by).error, Errc::kOk);
  EXPECT_EQ(first.state(1), MemberState::kLive);
  EXPECT_EQ(first.node(1).incarnation, in.incarnation);
  EXPECT_STREQ(first.node(1).listens_at, "10.0.0.1:5000");
  EXPECT_EQ(first.node(1).pid, 4711);
  EXPECT_STREQ(second.node(0).listens_at, "10.0.0.0:5000");
}

// It has done nothing, so nobody has to repair it; it joins again at once.
TEST_F(TcpPublished, ANodeWhoseToolWaitsNoLongerIsTakenOutAgain) {
  const auto in = published();
  MemberPeer &first = in.first, &by = in.by, &second = in.second;
  by.raw.link->end("the test's");
  EXPECT_TRUE(until([&] { return second.over(); })) << log.all;
  EXPECT_EQ(state(1), MemberState::kAbsent) << log.all;
  first.stands_still = false;
  EXPECT_TRUE(until([&] { return first.tables > 1 && first.state(1) == MemberState::kAbsent; }));
  (void)join(1);
  EXPECT_EQ(first.state(1), MemberState::kLive);
}

TEST_F(TcpPublished, ANodeThatDiesIsNotWaitedFor) {
  const auto in = published();
  MemberPeer &first = in.first, &by = in.by, &second = in.second;
  for_a_while();
  EXPECT_TRUE(by.answers.empty());
  kill(first);
  EXPECT_EQ(answer(by).error, Errc::kOk);
  EXPECT_TRUE(until([&] { return second.state(0) == MemberState::kDead; }));
  EXPECT_TRUE(log.tell("node 0 (incarnation 1) is dead")) << log.all;
}

TEST_F(TcpMembers, ANodeWhoseLinkEndsWhileItIsLetInIsNotInThePool) {
  MemberPeer& by = tool();
  EXPECT_EQ(call(by, {.call = Call::kBeginChange}).error, Errc::kOk);
  const uint64_t incarnation = call(by, {.call = Call::kReserve, .node = 1}).value;
  MemberPeer& joins = node(1, incarnation);
  kill(joins);
  ask(by, publish(1, incarnation));
  const AnswerFrame told = answer(by);
  EXPECT_EQ(told.error, Errc::kSystem);
  EXPECT_NE(strstr(told.problem, "the link of node 1 is over"), nullptr) << told.problem;
  EXPECT_EQ(state(1), MemberState::kAbsent);
}

// tcp.change-of-one-tool
TEST_F(TcpMembers, OneToolAtATimeChangesMembers) {
  MemberPeer &first = tool(), &second = tool(), &third = tool(), &tries = tool();
  EXPECT_EQ(call(first, {.call = Call::kBeginChange}).error, Errc::kOk);
  const AnswerFrame busy = call(tries, {.call = Call::kBeginChange, .tries = 1});
  EXPECT_EQ(busy.error, Errc::kBusy);
  EXPECT_NE(strstr(busy.problem, "tool 0 (start 1)"), nullptr) << busy.problem;
  ask(second, {.call = Call::kBeginChange});
  for_a_while();
  ask(third, {.call = Call::kBeginChange});
  for_a_while();
  EXPECT_TRUE(second.answers.empty() && third.answers.empty());
  EXPECT_EQ(call(first, {.call = Call::kEndChange}).error, Errc::kOk);
  EXPECT_EQ(answer(second).error, Errc::kOk);
  for_a_while();
  EXPECT_TRUE(third.answers.empty());
  second.raw.link->end("the tool is done");
  EXPECT_EQ(answer(third).error, Errc::kOk);
}

TEST_F(TcpMembers, AToolThatDiesGivesTheChangeBack) {
  MemberPeer &first = tool(), &second = tool();
  EXPECT_EQ(call(first, {.call = Call::kBeginChange}).error, Errc::kOk);
  const uint64_t incarnation = call(first, {.call = Call::kReserve, .node = 1}).value;
  MemberPeer& joins = node(1, incarnation);
  ask(second, {.call = Call::kBeginChange});
  kill(first);
  EXPECT_EQ(answer(second).error, Errc::kOk);
  EXPECT_TRUE(until([&] { return joins.over(); }));
  EXPECT_NE(joins.raw.ended_because.find("has left"), std::string::npos) << joins.raw.ended_because;
  EXPECT_EQ(state(1), MemberState::kAbsent);
  EXPECT_TRUE(log.tell("has left in the middle of a change of members")) << log.all;
  EXPECT_EQ(call(second, {.call = Call::kReserve, .node = 1}).value, incarnation + 1);
}

TEST_F(TcpMembers, ANameThatIsInUseIsRefused) {
  (void)join(2);
  MemberPeer& by = tool();
  EXPECT_EQ(call(by, {.call = Call::kBeginChange}).error, Errc::kOk);
  const AnswerFrame busy = call(by, {.call = Call::kReserve, .node = 2});
  EXPECT_EQ(busy.error, Errc::kBusy);
  EXPECT_STREQ(busy.problem, "node 2 is in use by process 4711");
  const AnswerFrame none = call(by, {.call = Call::kReserve, .node = 4});
  EXPECT_EQ(none.error, Errc::kNotFound);
  EXPECT_STREQ(none.problem, "the pool has room for nodes 0 to 3, not for 4");
}

TEST_F(TcpMembers, AnotherProtocolThanThatOfTheNodesIsRefused) {
  (void)join(0);
  MemberPeer& by = tool();
  EXPECT_EQ(call(by, {.call = Call::kBeginChange}).error, Errc::kOk);
  CallFrame frame = publish(1, call(by, {.call = Call::kReserve, .node = 1}).value);
  (void)node(1, frame.incarnation);
  frame.protocol = kProtocolVersion + 1;
  const AnswerFrame told = call(by, frame);
  EXPECT_EQ(told.error, Errc::kIncompatible);
  EXPECT_NE(strstr(told.problem, "have protocol version 3, this server has 4"), nullptr) << told.problem;
  EXPECT_EQ(state(1), MemberState::kAbsent);
}

// A crash restart is quicker than the patience with the former link.
TEST_F(TcpMembers, ANodeThatWasKilledJoinsAgainAtOnce) {
  times.patience_ns = 60'000'000'000;
  make({});
  MemberPeer& first = join(0);
  kill(first);
  EXPECT_TRUE(until([&] { return log.tell("node 0 (start 1) is away"); })) << log.all;
  MemberPeer& by = tool();
  EXPECT_EQ(call(by, {.call = Call::kBeginChange}).error, Errc::kOk);
  const AnswerFrame unrepaired = call(by, {.call = Call::kReserve, .node = 0});
  EXPECT_EQ(unrepaired.error, Errc::kUnrepaired) << unrepaired.problem;
  EXPECT_EQ(state(0), MemberState::kDead);
  EXPECT_EQ(call(by, {.call = Call::kAllDead}).value, 1u);
  EXPECT_EQ(call(by, {.call = Call::kForget, .nodes = 1}).error, Errc::kOk);
  EXPECT_EQ(state(0), MemberState::kAbsent);
  const AnswerFrame reserved = call(by, {.call = Call::kReserve, .node = 0});
  EXPECT_EQ(reserved.error, Errc::kOk) << reserved.problem;
  (void)node(0, reserved.value);
  EXPECT_EQ(call(by, publish(0, reserved.value)).error, Errc::kOk);
}

TEST_F(TcpMembers, ADeathFencesAPoolThatDoesNotRepairIt) {
  repairs_deaths = false;
  make({});
  MemberPeer &first = join(0), &second = join(1);
  first.raw.link->end("the node ends");
  EXPECT_TRUE(until([&] { return second.table.head.fenced == 1; }));
  EXPECT_STREQ(second.table.head.fence_reason, "node 0 (incarnation 1, pid 4711) ended without leaving the pool");
  MemberPeer& by = tool();
  EXPECT_EQ(call(by, {.call = Call::kBeginChange}).error, Errc::kOk);
  const AnswerFrame refused = call(by, {.call = Call::kReserve, .node = 0});
  EXPECT_EQ(refused.error, Errc::kFenced);
  EXPECT_NE(strstr(refused.problem, "was not closed cleanly: node 0"), nullptr) << refused.problem;
}

// --- leaving, and the fence

TEST_F(TcpMembers, TheLastOneThatLeavesClosesThePool) {
  MemberPeer &first = join(0), &second = join(1);
  EXPECT_EQ(LocalPool::inspect(files(), &problem), LocalPool::Condition::kInUse);
  EXPECT_TRUE(first.say([](SayingsRecord& s) { s.leaves = 1; }));
  EXPECT_TRUE(until([&] { return second.state(0) == MemberState::kLeaving; }));
  MemberPeer& by = tool();
  EXPECT_EQ(call(by, {.call = Call::kBeginChange}).error, Errc::kOk);
  AnswerFrame left = call(by, {.call = Call::kWithdraw, .node = 0, .incarnation = 1});
  EXPECT_EQ(left.error, Errc::kOk) << left.problem;
  EXPECT_EQ(left.value, 0u);
  EXPECT_TRUE(until([&] { return second.state(0) == MemberState::kAbsent; }));
  first.raw.link->end("the node ends");
  for_a_while();
  EXPECT_EQ(state(0), MemberState::kAbsent) << "it has left before";
  left = call(by, {.call = Call::kWithdraw, .node = 1, .incarnation = 2});
  EXPECT_EQ(left.value, 1u);
  EXPECT_EQ(call(by, {.call = Call::kClose}).error, Errc::kOk);
  EXPECT_EQ(by.table.head.saves, 2u);
  peers.clear();
  stop();
  EXPECT_EQ(LocalPool::inspect(files(), &problem), LocalPool::Condition::kClean) << problem.text;
  unlink(files().path);
  start();
  EXPECT_EQ(MappedPool::of(*pool).saves(), 2u) << "loaded again";
}

// tcp.saved-beside-service
TEST_F(TcpMembers, ASaveHoldsUpNoToolButOneThatWouldChangeMembers) {
  (void)join(0);
  MemberPeer &leaves = tool(), &asks = tool(), &waits = tool();
  EXPECT_EQ(call(leaves, {.call = Call::kBeginChange}).error, Errc::kOk);
  EXPECT_EQ(call(leaves, {.call = Call::kWithdraw, .node = 0, .incarnation = 1}).value, 1u);
  keeper->may_close = false;
  ask(leaves, {.call = Call::kClose});
  EXPECT_TRUE(until([&] { return keeper->closing.load(); }));
  EXPECT_EQ(call(asks, {.call = Call::kHeader}).error, Errc::kOk);
  kill(leaves);
  EXPECT_TRUE(until([&] { return log.tell("has left in the middle of a change of members"); }));
  const AnswerFrame busy = call(asks, {.call = Call::kBeginChange, .tries = 1});
  EXPECT_EQ(busy.error, Errc::kBusy);
  EXPECT_NE(strstr(busy.problem, "while the pool is saved"), nullptr) << busy.problem;
  ask(waits, {.call = Call::kBeginChange});
  for_a_while();
  EXPECT_TRUE(waits.answers.empty());
  keeper->may_close = true;
  EXPECT_EQ(answer(waits).error, Errc::kOk);
  EXPECT_EQ(waits.table.head.saves, 2u);
}

TEST_F(TcpMembers, AFenceAndItsReasonReachAll) {
  MemberPeer &first = join(0), &second = join(1);
  EXPECT_TRUE(first.say([](SayingsRecord& s) { s.fences = 1, put_text("a page is torn", s.fence_reason); }));
  EXPECT_TRUE(until([&] { return second.table.head.fenced == 1 && first.table.head.fenced == 1; }));
  EXPECT_STREQ(second.table.head.fence_reason, "a page is torn");
  EXPECT_TRUE(second.say([](SayingsRecord& s) { s.fences = 1, put_text("another", s.fence_reason); }));
  for_a_while();
  EXPECT_STREQ(first.table.head.fence_reason, "a page is torn");
  MemberPeer& by = tool();
  EXPECT_EQ(call(by, {.call = Call::kBeginChange}).error, Errc::kOk);
  EXPECT_EQ(call(by, {.call = Call::kWithdraw, .node = 0, .incarnation = 1}).error, Errc::kFenced);
}

// --- starts of memory node 0

TEST_F(TcpMembers, NodesThatWereInThePoolBeforeAStartAreCutOff) {
  MemberPeer &first = join(0), &second = join(1);
  stop();
  log.all.clear();
  start();
  EXPECT_TRUE(log.tell("node 0 (incarnation 1) was in the pool when memory node 0 ended")) << log.all;
  EXPECT_TRUE(until([&] { return first.over() && second.over(); }));
  EXPECT_NE(first.raw.ended_because.find("has started anew"), std::string::npos) << first.raw.ended_because;
  EXPECT_EQ(state(0), MemberState::kLive) << "they may not have noticed yet";
  EXPECT_TRUE(until([&] { return state(0) == MemberState::kDead && state(1) == MemberState::kDead; }));
  MemberPeer& again = node(0, 1);
  EXPECT_TRUE(again.over()) << "the same incarnation has no other link";
  MemberPeer& by = tool();
  EXPECT_EQ(call(by, {.call = Call::kBeginChange}).error, Errc::kOk);
  EXPECT_EQ(call(by, {.call = Call::kAllDead}).value, 3u);
}

TEST_F(TcpMembers, AProcessThatServesThePoolDoesItAlone) {
  EXPECT_EQ(LocalPool::serve(files(), &problem).error(), Errc::kBusy) << problem.text;
  EXPECT_EQ(LocalPool::open(files(), &problem).error(), Errc::kBusy);
  EXPECT_NE(strstr(problem.text, "is served over a network"), nullptr) << problem.text;
  stop();
  EXPECT_TRUE(LocalPool::open(files(), &problem).ok()) << problem.text;
}

TEST_F(TcpMembers, APoolInWhichNodesOfThisMachineAreIsNotServed) {
  stop();
  const auto opened = gcl_test::must(LocalPool::open(files(), &problem), problem);
  auto here = Node::join(*opened, NodeId{0}, {.frames = 4, .sessions_max = 4}, &problem, shm_transport());
  ASSERT_TRUE(here.ok()) << problem.text;
  EXPECT_EQ(try_start().error(), Errc::kBusy);
  EXPECT_NE(strstr(problem.text, "nodes of this machine are in pool"), nullptr) << problem.text;
}

// Nobody serves them any more, so their links are over.
TEST_F(TcpMembers, AProcessThatOpensTheFilesAfterwardsFindsTheNodesDead) {
  (void)join(0);
  stop();
  const auto opened = gcl_test::must(LocalPool::open(files(), &problem), problem);
  EXPECT_EQ(MappedPool::of(*opened).table().node[0].state.load(), MemberState::kDead);
  EXPECT_EQ(MappedPool::of(*opened).table().fence.load(), 0u);
  EXPECT_EQ(LocalPool::inspect(files(), &problem), LocalPool::Condition::kOrphaned) << problem.text;
}

// What memory node 0 has sent before does not make the lease longer (tcp.lease-from-question).
TEST_F(TcpMembers, ALeaseBeginsWhenTheQuestionWasAskedThatIsAnswered) {
  MemberPeer& asks = join(0);
  net::Link& link = *asks.raw.link;
  Lease lease;
  EXPECT_EQ(lease.begins(link), 0u);
  const auto run_node = [&] { asks.raw.links->wait(1), asks.look(); };
  for (int i = 0; i < 20; i++) run_once();  // nothing is under way
  lease.ask(link, 1000);
  for (int i = 0; i < 20; i++) run_node();
  EXPECT_EQ(lease.begins(link), 0u) << "memory node 0 has not heard it";
  EXPECT_TRUE(until([&] { return lease.begins(link) == 1000; }));
  lease.ask(link, 1000 + Lease::kAgainNs - 1);
  EXPECT_TRUE(link.all_acknowledged()) << "too early for another";
  lease.ask(link, 1000 + Lease::kAgainNs);
  lease.ask(link, 1000 + 9 * Lease::kAgainNs);
  EXPECT_EQ(lease.begins(link), 1000u) << "one question at a time";
  EXPECT_TRUE(until([&] { return lease.begins(link) == 1000 + Lease::kAgainNs; }));
}

// tcp.patience-grows-under-nodes
TEST_F(TcpMembers, ThePatienceBecomesShorterWhenNoNodeIsInThePool) {
  EXPECT_EQ(agree_on_patience(*keeper, 10'000), 10'000u);
  MemberPeer& inside = join(0);
  EXPECT_TRUE(until([&] { return inside.table.head.patience_ms == 10'000; }));
  EXPECT_EQ(agree_on_patience(*keeper, 2'000), 10'000u) << "that node has not heard of it";
  EXPECT_EQ(agree_on_patience(*keeper, 20'000), 20'000u);
  leave(inside, 0);
  EXPECT_EQ(agree_on_patience(*keeper, 2'000), 2'000u);
}

// tcp.lease
TEST_F(TcpMembers, ALeaseIsShorterThanThePatience) {
  (void)agree_on_patience(*keeper, 10'000);
  alignas(64) static std::byte memory[Mirror::kBytes] = {};
  Mirror& mirror = Mirror::at(memory);
  EXPECT_TRUE(mirror.take(join(0).table));
  EXPECT_EQ(mirror.patience_ms(), 10'000u);
  mirror.lease_begins(1);
  EXPECT_TRUE(mirror.keep_lease(9'000'000'000));
  EXPECT_FALSE(mirror.keep_lease(9'000'000'001));
  EXPECT_NE(mirror.fence_word().load(), 0u);
}

// tcp.one-table-under-way
TEST_F(TcpMembers, ANodeThatTakesNothingGetsTheNewestTableOnly) {
  MemberPeer& slow = join(0);
  MemberPeer &other = join(1), &dies = join(2);
  for_a_while();
  slow.stands_still = true;
  const int before = slow.tables, others_before = other.tables;
  const auto told = [&](int tables) { return until([&] { return other.tables == others_before + tables; }); };
  EXPECT_TRUE(other.say([](SayingsRecord& says) { says.leaves = 1; }) && told(1));
  EXPECT_TRUE(other.say([](SayingsRecord& says) { says.fences = 1; }) && told(2));
  dies.raw.link->end("the node ends");
  EXPECT_TRUE(told(3));
  MemberPeer& by = tool();
  EXPECT_EQ(call(by, {.call = Call::kHeader}).error, Errc::kOk);
  slow.stands_still = false;
  EXPECT_TRUE(until([&] { return slow.table.head.epoch == by.table.head.epoch; }));
  EXPECT_EQ(slow.state(1), MemberState::kLeaving);
  EXPECT_EQ(slow.state(2), MemberState::kDead);
  EXPECT_EQ(slow.tables, before + 2) << "the first that was sent, and the newest";
}

}  // namespace
}  // namespace coherence::tcp
