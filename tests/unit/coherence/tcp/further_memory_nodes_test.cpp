// Memory nodes beside number 0: which nodes they admit, when a node is dead for all of them, how all save one copy, and
// how one more comes.
#include <sys/stat.h>

#include "members.hpp"

namespace coherence::tcp {
namespace {

class TcpFurther : public MemberServerTest {
 protected:
  void SetUp() override {
    make({.memory_nodes = 2});
    ASSERT_TRUE(all_are_here()) << log.all << one().log.all;
  }
  FurtherPart& one() { return further.back(); }
  // A link of that incarnation of the node to the other memory node.
  MemberPeer& at_one(uint8_t id, uint64_t incarnation) {
    return peers.emplace_back(net::Who::node(NodeId{id}, incarnation), one().address(), kOne);
  }
  // One whose batches are carried out there.
  bool works(MemberPeer& peer, uint64_t at = 0) {
    const size_t before = peer.raw.frames.size();
    send_write(peer, at);
    return until([&] { return peer.over() || peer.raw.frames.size() > before; }) && !peer.over();
  }
  void send_write(MemberPeer& peer, uint64_t at) {
    EXPECT_TRUE(until([&] { return peer.over() || (peer.raw.link != nullptr && peer.raw.link->connected()); }));
    const uint64_t value = 4711;
    Op op{};
    op.verb = Verb::kWrite;
    op.at = PoolAddress::at(kOne, one().part->part_header().places().pages_at.offset() + 8 * at);
    op.local = const_cast<uint64_t*>(&value);
    op.bytes = sizeof value;
    std::vector<std::byte> request(request_bytes(std::span(&op, 1)));
    encode_request(kOne, 1, std::span(&op, 1), request.data());
    (void)peer.send(kRequestFrame, request);
  }
  std::string one_file() const { return MemoryPath(files().path, 1).text; }
  AnswerFrame begin(MemberPeer& by) { return call(by, {.call = Call::kBeginChange}); }
  // The other memory node ends while a tool, which changes members, closes the pool: the copy counts, and is not in its
  // place.
  MemberPeer& close_without_one() {
    keeper->may_close = false;
    MemberPeer& by = tool();
    EXPECT_EQ(begin(by).error, Errc::kOk);
    ask(by, {.call = Call::kClose});
    EXPECT_TRUE(until([&] { return keeper->closing.load(); }));
    further.clear();
    keeper->may_close = true;
    EXPECT_EQ(answer(by).error, Errc::kUnreached);
    EXPECT_TRUE(keeper->is_unplaced());
    return by;
  }
};

// Its batches may still be carried out by a memory node that stands still (tcp.dead-when-all-refuse).
TEST_F(TcpFurther, ANodeIsDeadWhenNoMemoryNodeAdmitsIt) {
  MemberPeer& survivor = join(0);
  MemberPeer& dies = join(1);
  MemberPeer& there = at_one(1, incarnation(1));
  EXPECT_TRUE(works(there));
  one().stands_still = true;
  kill(dies);
  for_a_while();
  EXPECT_TRUE(until([&] { return log.tell("node 1 (start 2) has left"); })) << log.all;
  for_a_while();
  EXPECT_EQ(state(1), MemberState::kLive) << "memory node 1 may carry out what it sends";
  EXPECT_EQ(survivor.state(1), MemberState::kLive);
  one().stands_still = false;
  EXPECT_TRUE(until([&] { return survivor.state(1) == MemberState::kDead; })) << log.all;
  EXPECT_TRUE(until([&] { return there.over(); }));
  EXPECT_NE(there.raw.ended_because.find("was cut off"), std::string::npos) << there.raw.ended_because;
}

TEST_F(TcpFurther, WhatHoldsUpADeathIsInTheLog) {
  (void)join(0);
  MemberPeer& dies = join(1);
  further.clear();
  kill(dies);
  EXPECT_TRUE(until([&] {
    return log.tell("waits to be certain that node 1 is dead for memory node 1, which is not here");
  })) << log.all;
  EXPECT_EQ(state(1), MemberState::kLive);
  (void)begin_further(1);
  EXPECT_TRUE(until([&] { return state(1) == MemberState::kDead; })) << log.all;
}

TEST_F(TcpFurther, AToolIsToldWhichMemoryNodeIsAway) {
  further.clear();
  MemberPeer& by = tool();
  const AnswerFrame told = begin(by);
  EXPECT_EQ(told.error, Errc::kUnreached);
  EXPECT_STREQ(told.problem, "memory node 1 of the pool is not here");
  (void)begin_further(1);
  EXPECT_TRUE(until([&] { return log.tell("memory node 1 is here, at"); }));
  EXPECT_EQ(begin(by).error, Errc::kOk) << "it may try again";
}

// tcp.all-admit-alike
TEST_F(TcpFurther, ANodeBeginsWhenAllMemoryNodesAdmitIt) {
  MemberPeer& by = tool();
  EXPECT_EQ(begin(by).error, Errc::kOk);
  one().stands_still = true;
  ask(by, {.call = Call::kReserve, .node = 1});
  for_a_while();
  EXPECT_TRUE(by.answers.empty()) << "memory node 1 has not heard of it";
  one().stands_still = false;
  const AnswerFrame reserved = answer(by);
  EXPECT_EQ(reserved.error, Errc::kOk) << reserved.problem;
  MemberPeer& there = at_one(1, reserved.value);
  EXPECT_TRUE(works(there)) << there.raw.ended_because << one().log.all;
  EXPECT_EQ(one().word(0), 4711u);
}

TEST_F(TcpFurther, ANodeThatMemoryNodeZeroDoesNotAdmitIsRefused) {
  (void)join(0);
  EXPECT_TRUE(works(at_one(0, incarnation(0)), 2));
  for (MemberPeer* stranger : {&at_one(1, 1), &at_one(kNodesMax - 1, 1), &at_one(0, incarnation(0) + 1)}) {
    send_write(*stranger, 3);
    EXPECT_TRUE(until([&] { return stranger->over(); }));
  }
  EXPECT_EQ(one().word(3), 0u);
}

// A crash restart is quicker than the patience with the former link.
TEST_F(TcpFurther, ANodeThatIsStartedAnewWaitsUntilItsFormerIncarnationIsDeadForAll) {
  times.patience_ns = 60'000'000'000;
  make({.memory_nodes = 2});
  ASSERT_TRUE(all_are_here());
  (void)join(1);
  MemberPeer& first = join(0);
  kill(first);
  EXPECT_TRUE(until([&] { return log.tell("node 0 (start 2) is away"); })) << log.all;
  one().stands_still = true;
  MemberPeer& by = tool();
  ask(by, {.call = Call::kBeginChange});
  for_a_while();
  EXPECT_TRUE(by.answers.empty());
  one().stands_still = false;
  EXPECT_EQ(answer(by).error, Errc::kOk);
  one().stands_still = true;
  ask(by, {.call = Call::kReserve, .node = 0});
  for_a_while();
  EXPECT_TRUE(by.answers.empty());
  EXPECT_EQ(state(0), MemberState::kLive);
  one().stands_still = false;
  EXPECT_EQ(answer(by).error, Errc::kUnrepaired);
  EXPECT_EQ(state(0), MemberState::kDead);
}

// tcp.tools-look, at each memory node
TEST_F(TcpFurther, AToolWritesWhileItChangesMembersAndNobodyIsThere) {
  MemberPeer& by = tool();
  const auto at_one_too = [&](MemberPeer& of) -> MemberPeer& {
    return peers.emplace_back(net::Who::tool(of.raw.link->self().start), one().address(), kOne);
  };
  send_write(at_one_too(by), 1);
  for_a_while();
  EXPECT_EQ(one().word(1), 0u) << "it has begun no change";
  EXPECT_EQ(begin(by).error, Errc::kOk);
  EXPECT_TRUE(works(at_one_too(by), 1));
  EXPECT_EQ(one().word(1), 4711u);
  EXPECT_EQ(call(by, {.call = Call::kEndChange}).error, Errc::kOk);
  MemberPeer& other = tool();
  EXPECT_EQ(begin(other).error, Errc::kOk);
  send_write(at_one_too(by), 2);
  for_a_while();
  EXPECT_EQ(one().word(2), 0u) << "another tool changes members now";
  EXPECT_EQ(call(other, {.call = Call::kEndChange}).error, Errc::kOk);
  (void)join(0);
  MemberPeer& late = tool();
  EXPECT_EQ(begin(late).error, Errc::kOk);
  send_write(at_one_too(late), 2);
  for_a_while();
  EXPECT_EQ(one().word(2), 0u) << "a node is in the pool";
}

// tcp.followers-end-with-link
TEST_F(TcpFurther, WithoutMemoryNodeZeroNobodyIsAdmitted) {
  (void)join(0);
  MemberPeer& there = at_one(0, incarnation(0));
  EXPECT_TRUE(works(there));
  server->stop();
  stop_first();
  EXPECT_TRUE(until([&] { return one().members->is_over() && there.over(); }));
  EXPECT_NE(there.raw.ended_because.find("has lost memory node 0"), std::string::npos) << there.raw.ended_because;
  MemberPeer& again = at_one(0, 1);
  EXPECT_TRUE(until([&] { return again.over(); }));
}

// pool.saved-beside
TEST_F(TcpFurther, AllWriteOneCopyWhichIsLoadedAgain) {
  MemberPeer& node = join(0);
  EXPECT_TRUE(works(at_one(0, incarnation(0)), 5));
  leave(node, 0);
  EXPECT_EQ(close_pool().error, Errc::kOk);
  EXPECT_EQ(MappedPool::of(*pool).saves(), 2u);
  EXPECT_EQ(one().part->part_header().saves, 2u);
  stop();
  for (uint32_t k : {0, 1}) unlink(MemoryPath(files().path, k).text);
  start();
  FurtherPart& again = begin_further(1);
  ASSERT_NE(again.part, nullptr) << again.problem.text;
  EXPECT_TRUE(all_are_here());
  EXPECT_EQ(again.word(5), 4711u);
}

// A table that admits the last node may be under way still, and the next one waits for that.
TEST_F(TcpFurther, TheCopyIsWrittenWhenAllKnowThatNoNodeIsThere) {
  MemberPeer& node = join(0);
  MemberPeer& by = tool();
  EXPECT_EQ(begin(by).error, Errc::kOk);
  one().stands_still = true;
  EXPECT_TRUE(node.say([](SayingsRecord& says) { says.leaves = 1; }));
  EXPECT_TRUE(until([&] { return node.state(0) == MemberState::kLeaving; }));
  EXPECT_EQ(call(by, {.call = Call::kWithdraw, .node = 0, .incarnation = incarnation(0)}).error, Errc::kOk);
  ask(by, {.call = Call::kClose});
  for_a_while();
  EXPECT_TRUE(by.answers.empty());
  one().stands_still = false;
  const AnswerFrame closed = answer(by);
  EXPECT_EQ(closed.error, Errc::kOk) << closed.problem;
  EXPECT_EQ(one().part->part_header().saves, 2u);
}

// It is replaced behind memory node 0's: that one says which of the two counts.
TEST_F(TcpFurther, ACopyThatIsNotInItsPlaceYetIsLoaded) {
  MemberPeer& node = join(0);
  EXPECT_TRUE(works(at_one(0, incarnation(0)), 5));
  leave(node, 0);
  const std::string former = MemoryPath(files().durable_path, 1).text, kept = former + ".kept";
  ASSERT_EQ(link(former.c_str(), kept.c_str()), 0);
  EXPECT_EQ(close_pool().error, Errc::kOk);
  stop();
  LocalPool::NextCopy next(files().durable_path);
  ASSERT_EQ(rename(former.c_str(), MemoryPath(next.text, 1).text), 0);
  ASSERT_EQ(rename(kept.c_str(), former.c_str()), 0);
  unlink(MemoryPath(files().path, 1).text);
  start();
  FurtherPart& again = begin_further(1);
  ASSERT_NE(again.part, nullptr) << again.problem.text;
  EXPECT_EQ(again.word(5), 4711u);
}

// One dies when the copy counts, and before it has brought its part to its place (pool.placed-before-used).
TEST_F(TcpFurther, ACopyThatCountsIsBroughtToItsPlaceBeforeANodeIsIn) {
  MemberPeer& node = join(0);
  EXPECT_TRUE(works(at_one(0, incarnation(0)), 5));
  leave(node, 0);
  keeper->may_close = false;
  MemberPeer& by = tool();
  EXPECT_EQ(begin(by).error, Errc::kOk);
  ask(by, {.call = Call::kClose});
  EXPECT_TRUE(until([&] { return keeper->closing.load(); }));  // the other one has written its part
  further.clear();
  keeper->may_close = true;
  EXPECT_EQ(answer(by).error, Errc::kUnreached);
  EXPECT_TRUE(keeper->is_unplaced());
  const AnswerFrame reserved = call(by, {.call = Call::kReserve, .node = 0});
  EXPECT_NE(reserved.error, Errc::kOk) << "or it is not let in";
  EXPECT_EQ(call(by, {.call = Call::kEndChange}).error, Errc::kOk);
  (void)begin_further(1);
  EXPECT_TRUE(until([&] { return !keeper->is_unplaced(); })) << log.all;
  (void)join(0);
  stop();
  for (uint32_t k : {0, 1}) unlink(MemoryPath(files().path, k).text);
  bool whole = true;
  EXPECT_TRUE(LocalPool::begin_restart(files(), &whole, &problem).ok()) << problem.text;
  EXPECT_FALSE(whole) << "what was done since is in the logs";
}

// No table says that an incarnation is given up until members change again.  An order that comes before it is refused,
// and a memory node that has refused one is gone.
TEST_F(TcpFurther, ACopyIsBroughtToItsPlaceAfterANodeThatWasNotLetIn) {
  MemberPeer& node_of_before = join(0);
  leave(node_of_before, 0);
  MemberPeer& by = close_without_one();
  (void)begin_further(1);
  ASSERT_TRUE(all_are_here()) << log.all;
  const AnswerFrame reserved = call(by, {.call = Call::kReserve, .node = 0});
  ASSERT_EQ(reserved.error, Errc::kOk) << reserved.problem;
  (void)node(0, reserved.value);
  EXPECT_EQ(call(by, publish(0, reserved.value)).error, Errc::kUnreached) << "the copy is not in its place yet";
  EXPECT_EQ(call(by, {.call = Call::kEndChange}).error, Errc::kOk);
  EXPECT_TRUE(until([&] { return !keeper->is_unplaced() || one().members->is_over(); }));
  ASSERT_FALSE(one().members->is_over()) << one().log.all;
  ASSERT_FALSE(keeper->is_unplaced());
  (void)join(0);
}

// Nothing is to be done while a tool changes members: the server sleeps until it has ended that.
TEST_F(TcpFurther, AServerThatWaitsToPlaceACopySleeps) {
  MemberPeer& node = join(0);
  leave(node, 0);
  MemberPeer& by = close_without_one();
  const uint64_t due = monotonic_ns() + 2'100'000'000;
  EXPECT_TRUE(until([&] { return monotonic_ns() > due; }));
  EXPECT_NE(members->wait_ms(), 0);
  (void)begin_further(1);
  EXPECT_EQ(call(by, {.call = Call::kEndChange}).error, Errc::kOk);
  EXPECT_TRUE(until([&] { return !keeper->is_unplaced(); })) << log.all;
}

TEST_F(TcpFurther, ACopyThatOneCannotWriteCountsForNobody) {
  MemberPeer& node = join(0);
  leave(node, 0);
  LocalPool::NextCopy next(files().durable_path);
  const MemoryPath blocked(next.text, 1);
  ASSERT_EQ(mkdir(blocked.text, 0700), 0);  // stands for a disk that is full
  const AnswerFrame failed = close_pool();
  EXPECT_EQ(failed.error, Errc::kSystem);
  EXPECT_NE(strstr(failed.problem, "memory node 1: cannot create"), nullptr) << failed.problem;
  EXPECT_EQ(MappedPool::of(*pool).saves(), 1u);
  EXPECT_EQ(MappedPool::of(*pool).first_header().state.load(), PoolState::kClean) << "it is whole in memory";
  ASSERT_EQ(rmdir(blocked.text), 0);
  EXPECT_EQ(close_pool().error, Errc::kOk);
  EXPECT_EQ(MappedPool::of(*pool).saves(), 2u);
}

TEST_F(TcpFurther, AMemoryNodeThatGoesWhileTheCopyIsWrittenIsSaidToBeAway) {
  MemberPeer& node = join(0);
  leave(node, 0);
  one().stands_still = true;
  MemberPeer& by = tool();
  ask(by, {.call = Call::kBeginChange});
  one().stands_still = false;
  EXPECT_EQ(answer(by).error, Errc::kOk);
  one().stands_still = true;
  ask(by, {.call = Call::kClose});
  for_a_while();
  EXPECT_TRUE(by.answers.empty());
  further.clear();
  const AnswerFrame failed = answer(by);
  EXPECT_EQ(failed.error, Errc::kUnreached);
  EXPECT_NE(strstr(failed.problem, "memory node 1 is not here"), nullptr) << failed.problem;
}

TEST_F(TcpFurther, NoneComesWhileTheCopyIsWritten) {
  MemberPeer& node = join(0);
  leave(node, 0);
  keeper->may_close = false;
  MemberPeer& by = tool();
  EXPECT_EQ(begin(by).error, Errc::kOk);
  ask(by, {.call = Call::kClose});
  EXPECT_TRUE(until([&] { return keeper->closing.load(); }));
  FurtherPart& early = begin_further(2, 8 * kPageSize);
  EXPECT_TRUE(until([&] { return early.members->is_over(); }));
  EXPECT_NE(strstr(early.members->why(), "while it is saved"), nullptr) << early.members->why();
  keeper->may_close = true;
  EXPECT_EQ(answer(by).error, Errc::kOk);
  EXPECT_EQ(MappedPool::of(*pool).memory_nodes(), 2u);
  further.pop_back();
  FurtherPart& again = begin_further(2, 8 * kPageSize);  // its file is there, of before that save
  EXPECT_TRUE(until([&] { return MappedPool::of(*pool).memory_nodes() == 3; })) << log.all << again.log.all;
}

// region.part-as-pool-says
TEST_F(TcpFurther, WhatMemoryHasLostOfAPoolInUseIsNotLoadedFromItsCopy) {
  (void)join(0);
  further.clear();
  unlink(MemoryPath(files().path, 1).text);
  FurtherPart& lost = begin_further(1);
  EXPECT_EQ(lost.part, nullptr);
  EXPECT_NE(strstr(lost.problem.text, "the pool is in use"), nullptr) << lost.problem.text;
}

// The pool is clean, and the number of its last save that counts is that of a copy from before it was used.
TEST_F(TcpFurther, WhatMemoryHasLostBehindAFailedSaveIsNotLoadedFromTheCopyBefore) {
  MemberPeer& node = join(0);
  EXPECT_TRUE(works(at_one(0, incarnation(0)), 5));
  leave(node, 0);
  const MemoryPath blocked(LocalPool::NextCopy(files().durable_path).text, 1);
  ASSERT_EQ(mkdir(blocked.text, 0700), 0);  // stands for a disk that is full
  EXPECT_EQ(close_pool().error, Errc::kSystem);
  ASSERT_EQ(rmdir(blocked.text), 0);
  for (const bool starts_anew : {false, true}) {
    further.clear();
    if (starts_anew) stop_first(), start();
    const std::string kept = one_file() + ".kept";
    ASSERT_EQ(rename(one_file().c_str(), kept.c_str()), 0);
    FurtherPart& lost = begin_further(1);
    EXPECT_EQ(lost.part, nullptr) << "what was written since is gone";
    EXPECT_NE(strstr(lost.problem.text, "was not saved"), nullptr) << lost.problem.text;
    ASSERT_EQ(rename(kept.c_str(), one_file().c_str()), 0);
    further.clear();
    EXPECT_EQ(begin_further(1).word(5), 4711u) << "where memory has it still it is served";
    EXPECT_TRUE(all_are_here());
  }
  EXPECT_EQ(close_pool().error, Errc::kOk) << "it is saved again";
  further.clear();
  unlink(one_file().c_str());
  FurtherPart& loaded = begin_further(1);
  ASSERT_NE(loaded.part, nullptr) << loaded.problem.text;
  EXPECT_EQ(loaded.word(5), 4711u);
}

// A file of the same pool that a restart has left (tcp.memory-node-says).
TEST_F(TcpFurther, AFileOfAnotherSaveIsRefused) {
  for (const uint64_t saves : {0, 3}) {
    further.clear();
    FurtherPart& stale = begin_further(1);
    const_cast<PoolHeader&>(stale.part->part_header()).saves = saves;
    EXPECT_TRUE(until([&] { return stale.members->is_over(); }));
    EXPECT_TRUE(log.tell("of a pool that has been saved 1 times")) << log.all;
  }
}

TEST_F(TcpFurther, AMemoryNodeOfAnotherSizeThanThePoolKnowsIsRefused) {
  const uint64_t known = MappedPool::of(*pool).first_header().memory_bytes[1];
  const auto refused = [&](uint64_t bytes, const char* because) {
    further.clear();
    FurtherPart& other = begin_further(1);
    const_cast<PoolHeader&>(other.part->part_header()).bytes = bytes;  // it is the file's, and stays
    EXPECT_TRUE(until([&] { return other.members->is_over(); }));
    EXPECT_TRUE(log.tell(because)) << log.all;
    const_cast<PoolHeader&>(other.part->part_header()).bytes = known;
  };
  refused(known - kPageSize, "a memory node whose pages are not in it");
  refused(known + kPageSize, "bytes, of which the pool has");
}

TEST_F(TcpFurther, OneMoreIsThePoolsForAllThatAreInIt) {
  MemberPeer& node = join(0);
  EXPECT_EQ(node.table.head.memory_nodes, 2u);
  FurtherPart& two = begin_further(2, 8 * kPageSize);
  ASSERT_NE(two.part, nullptr) << two.problem.text;
  EXPECT_TRUE(until([&] { return node.table.head.memory_nodes == 3; })) << log.all << two.log.all;
  EXPECT_EQ(node.table.memory_node[2].pages, 8u);
  EXPECT_EQ(node.table.memory_node[2].address, two.address());
  EXPECT_EQ(MappedPool::of(*pool).first_header().memory_bytes[2], two.part->part_header().bytes);
  leave(node, 0);
  EXPECT_EQ(close_pool().error, Errc::kOk);
  stop();
  EXPECT_EQ(LocalPool::inspect(files(), &problem), LocalPool::Condition::kClean) << problem.text;
}

// tcp.pages-where-all-reach
TEST_F(TcpFurther, OneMoreIsYoungUntilAllThatAreInThePoolReachIt) {
  MemberPeer &node = join(0), &slow = join(1);
  const auto reach = [](MemberPeer& peer, uint64_t all) {
    EXPECT_TRUE(peer.say([&](SayingsRecord& says) { says.reaches = all; }));
  };
  EXPECT_EQ(node.table.head.young, 0u);
  reach(node, 4);
  slow.stands_still = true;
  (void)begin_further(2, 8 * kPageSize);
  EXPECT_TRUE(until([&] { return node.table.head.memory_nodes == 3; })) << log.all;
  for_a_while();
  EXPECT_EQ(node.table.head.young, 1u) << "node 1 has not heard of it";
  slow.stands_still = false;
  EXPECT_TRUE(until([&] { return slow.table.head.memory_nodes == 3; })) << log.all;
  for_a_while();
  EXPECT_EQ(slow.table.head.young, 1u) << "node 1 does not reach it";
  reach(slow, 3);
  EXPECT_TRUE(until([&] { return node.table.head.young == 0 && slow.table.head.young == 0; })) << log.all;
  EXPECT_EQ(slow.table.head.memory_nodes, 3u);

  slow.stands_still = true;
  (void)begin_further(3, 8 * kPageSize);
  EXPECT_TRUE(until([&] { return node.table.head.memory_nodes == 4; })) << log.all;
  EXPECT_EQ(node.table.head.young, 1u);
  slow.raw.link->end("the test's");
  slow.stands_still = false;
  EXPECT_TRUE(until([&] { return node.table.head.young == 0; })) << "a dead node needs to know nothing; " << log.all;
}

// A process that writes the journal may be stopped, and memory node 0 serves everybody.
TEST_F(TcpFurther, ACountOfOneMoreWaitsForNoProcess) {
  MemberPeer& node = join(0);
  auto writes = gcl_test::must(PoolJournal::open(*pool, PoolJournal::kTry, &problem), problem);
  FurtherPart& early = begin_further(2, 8 * kPageSize);
  EXPECT_TRUE(until([&] { return early.members->is_over(); })) << log.all;
  EXPECT_EQ(node.table.head.memory_nodes, 2u);
  writes.reset();
  further.pop_back();
  (void)begin_further(2, 8 * kPageSize);
  EXPECT_TRUE(until([&] { return node.table.head.memory_nodes == 3; })) << log.all;
}

}  // namespace
}  // namespace coherence::tcp
