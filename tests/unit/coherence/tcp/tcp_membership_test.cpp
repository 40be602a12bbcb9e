// Membership and Pool over a network: primaries with a network worker each, and memory node 0, in processes of their
// own.
#include "coherence/transport/tcp/member/tcp_membership.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <thread>

#include "coherence/transport/tcp/memory/tcp_memory.hpp"
#include "tests/support/tcp_members.hpp"

namespace coherence::tcp {
namespace {

using gcl_test::eventually;
using gcl_test::MemberNode;
using Patience = Membership::Patience;

class TcpMembershipTest : public testing::Test {
 protected:
  void SetUp() override { make(true); }
  void make(bool repairs_deaths) {
    served.reset();
    for (const std::string& file : {path, durable}) unlink(file.c_str());
    PoolSpec spec{.nodes_max = 4, .compatibility = "version=15\nlocale=C\n"};
    spec.region_bytes[kRegionPages] = 16 * kPageSize;
    spec.repairs_deaths = repairs_deaths;
    spec.records_deaths = repairs_deaths;
    (void)gcl_test::must(LocalPool::create(files(), spec, &problem), problem);
    start();
  }
  PoolFiles files() const { return {path.c_str(), durable.c_str(), ""}; }
  void start() {
    served.reset();
    served.emplace(directory, files(), gcl_test::ServedMembers::Spec{.key = directory.key()});
  }
  MemberNode::Spec spec() const {
    return {.prefix = directory.path() + "/local",
            .address = served->address(),
            .key = directory.key(),
            .compatibility = "version=15\nlocale=C\n"};
  }
  // One that is in the pool.
  std::unique_ptr<MemberNode> joined(uint8_t id) {
    auto node = std::make_unique<MemberNode>(spec());
    EXPECT_TRUE(node->open(&problem).ok()) << problem.text;
    EXPECT_TRUE(node->join(id, &problem).ok()) << problem.text << served->log();
    return node;
  }
  static MemberState state(MemberNode& seen_by, uint8_t id) { return seen_by.members->info(NodeId{id}).state; }
  // Says it until it is so.
  template <class Say>
  bool said(Say say) {
    return eventually([&] { return say(); });
  }

  gcl_test::SocketDirectory directory;
  const std::string path = directory.path() + "/pool", durable = directory.path() + "/saved";
  Problem problem;
  std::optional<gcl_test::ServedMembers> served;
};

TEST_F(TcpMembershipTest, NodesJoinWorkAndLeave) {
  const auto first = joined(0);
  const uint64_t view = first->members->view();
  EXPECT_EQ(state(*first, 0), MemberState::kLive);
  const auto second = joined(1);
  EXPECT_EQ(state(*first, 1), MemberState::kLive) << "as soon as it has joined";
  EXPECT_GT(first->members->view(), view);
  EXPECT_EQ(state(*second, 0), MemberState::kLive);
  EXPECT_EQ(second->members->info(NodeId{0}).incarnation, first->incarnation);
  EXPECT_EQ(first->members->info(NodeId{1}).pid, getpid());
  char address[kListensAtBytes];
  EXPECT_TRUE(first->mirror.address_of(NodeId{1}, second->incarnation, address, sizeof address));
  EXPECT_STREQ(address, "127.0.0.1:6001");
  EXPECT_FALSE(first->mirror.address_of(NodeId{1}, second->incarnation + 1, address, sizeof address));
  {
    Counters counters{};
    TcpMemory memory(second->port(), counters);
    const PoolAddress word = second->pool->latch_address(PageId::at({}, 3));
    ASSERT_TRUE(memory.cas(word, 0, 4711).ok()) << served->log();
    EXPECT_EQ(first->pool->peek_latch(PageId::at({}, 3)).raw, 4711u);
    EXPECT_EQ(*memory.cas(word, 4711, 0), 4711u);
  }
  bool last = true;
  ASSERT_TRUE(first->leave(&last, &problem).ok()) << problem.text;
  EXPECT_FALSE(last);
  EXPECT_TRUE(eventually([&] { return state(*second, 0) == MemberState::kAbsent; }));
  EXPECT_FALSE(second->members->watch(1)) << "it has not died";
  ASSERT_TRUE(second->leave(&last, &problem).ok()) << problem.text;
  EXPECT_TRUE(last);
  served.reset();
  EXPECT_EQ(LocalPool::inspect(files(), &problem), LocalPool::Condition::kClean) << problem.text;
}

// However short a tool's own patience is: the other one is there again, or dead, within the pool's.
TEST_F(TcpMembershipTest, AJoinWaitsAsLongAsAnotherMayStandStill) {
  const auto first = joined(0);
  first->worker.hold();
  auto impatient = spec();
  impatient.tool_times.join_ns = 1'000'000;
  MemberNode second(impatient);
  ASSERT_TRUE(second.open(&problem).ok()) << problem.text;
  std::thread later([&] {
    usleep(300'000);
    first->worker.go_on();
  });
  EXPECT_TRUE(second.join(1, &problem).ok()) << problem.text;
  later.join();
  bool last = false;
  EXPECT_TRUE(second.leave(&last, &problem).ok()) << problem.text;
}

TEST_F(TcpMembershipTest, APoolIsWhatMemoryNodeZeroSays) {
  MemberNode node(spec());
  ASSERT_TRUE(node.open(&problem).ok()) << problem.text;
  EXPECT_EQ(node.pool->nodes_max(), 4u);
  EXPECT_EQ(node.pool->memory_nodes(), 1u);
  EXPECT_EQ(node.pool->pages(), 16u);
  EXPECT_EQ(node.pool->saves(), 1u);
  EXPECT_TRUE(node.pool->has(PageId::at({}, 15)));
  EXPECT_FALSE(node.pool->has(PageId::at({}, 16)));
  EXPECT_FALSE(node.pool->has(PageId::at({1}, 0)));
  EXPECT_EQ(node.pool->region(kRegionPages).bytes, 16u * kPageSize);
  EXPECT_TRUE(node.members->repairs_deaths());
}

TEST_F(TcpMembershipTest, AKilledNodeIsRepairedBySurvivorsAndJoinsAgain) {
  auto killed = joined(0);
  const auto first = joined(1), second = joined(2);
  EXPECT_FALSE(first->members->watch(1));
  killed->worker.kill();
  for (MemberNode* node : {first.get(), second.get()}) {
    EXPECT_TRUE(eventually([&] { return node->members->watch(1); })) << served->log();
    EXPECT_FALSE(node->members->watch(1)) << "it was told";
    EXPECT_EQ(state(*node, 0), MemberState::kDead);
    EXPECT_EQ(node->members->unrecorded(), NodeSet::of(NodeId{0}));
  }
  {
    MemberNode early(spec());
    ASSERT_TRUE(early.open(&problem).ok());
    EXPECT_EQ(early.join(0, &problem).error(), Errc::kUnrepaired) << problem.text;
  }
  const NodeId dead{0};
  const uint64_t incarnation = killed->incarnation;
  Membership &one = *first->members, &two = *second->members;
  EXPECT_FALSE(one.quiesced(dead));
  EXPECT_FALSE(two.quiesced(dead)) << "its death is not recorded";
  EXPECT_TRUE(said([&] { return one.recorded(dead, incarnation); }));
  EXPECT_TRUE(said([&] { return one.quiesced(dead); }));
  EXPECT_TRUE(said([&] { return two.repairable().has(dead); }));
  EXPECT_TRUE(two.recorded(dead, incarnation));
  EXPECT_TRUE(two.swept(dead, incarnation - 1)) << "of another one it says nothing";
  EXPECT_TRUE(said([&] { return two.swept(dead, incarnation); }));
  EXPECT_TRUE(two.repairable().empty());
  EXPECT_TRUE(said([&] { return state(*first, 0) == MemberState::kSwept; }));
  EXPECT_FALSE(one.drained(dead));
  EXPECT_TRUE(said([&] { return two.drained(dead); }));
  EXPECT_TRUE(said([&] { return one.drained(dead); }));
  EXPECT_EQ(state(*first, 0), MemberState::kAbsent);
  killed = joined(0);
  EXPECT_GT(killed->incarnation, incarnation);
  EXPECT_EQ(state(*first, 0), MemberState::kLive);
  EXPECT_TRUE(killed->members->repairable().empty());
}

// repair.alone, by a Tool: no network worker is there yet.
TEST_F(TcpMembershipTest, APoolWhoseNodesAreDeadIsRepairedByTheFirstToJoin) {
  auto killed = joined(0);
  const PageId page = PageId::at({}, 3);
  {
    Counters counters{};
    TcpMemory memory(killed->port(), counters);
    ASSERT_TRUE(memory.cas(killed->pool->latch_address(page), 0, 4711).ok());
  }
  killed->worker.kill();
  MemberNode next(spec());
  ASSERT_TRUE(next.open(&problem).ok()) << problem.text;
  Status joins = next.join(0, &problem);
  if (joins.error() == Errc::kBusy) {  // the end of the connection was not seen yet
    EXPECT_TRUE(eventually([&] { return (joins = next.join(0, &problem)).error() != Errc::kBusy; }));
  }
  EXPECT_EQ(joins.error(), Errc::kUnrepaired) << problem.text;
  ASSERT_TRUE(next.members->begin_change(Patience::kWait, &problem).ok()) << problem.text;
  EXPECT_EQ(next.members->all_dead(), NodeSet::of(NodeId{0}));
  {
    ToolMemory memory(next.tool);
    EXPECT_EQ(*memory.cas(next.pool->latch_address(page), 4711, 0), 4711u);
    std::vector<std::byte> bytes(2 * kPageSize, std::byte{7}), there(bytes.size());
    Batch batch(MemoryNodeId{0});
    batch.write(next.pool->page_address(page), bytes.data(), uint32_t(bytes.size()));
    batch.read(next.pool->page_address(page), there.data(), uint32_t(there.size()));
    ASSERT_TRUE(memory.run(batch).ok());
    EXPECT_EQ(bytes, there);
  }
  next.members->forget(NodeSet::of(NodeId{0}));
  ASSERT_TRUE(next.become(NodeId{0}, &problem).ok()) << problem.text;
  next.members->end_change();
  EXPECT_EQ(next.pool->peek_latch(page).raw, 0u);
  ToolMemory late(next.tool);
  EXPECT_FALSE(late.cas(next.pool->latch_address(page), 0, 1).ok()) << "a node works there now";
}

TEST_F(TcpMembershipTest, AFenceIsUpHereAtOnceAndEverywhereSoon) {
  const auto first = joined(0), second = joined(1);
  first->members->fence("a page is torn");
  EXPECT_EQ(first->members->fence_word().load(), 1u);
  first->members->fence("and another");
  EXPECT_STREQ(first->members->fence_reason(), "a page is torn");
  EXPECT_TRUE(eventually([&] { return second->members->fence_word().load() == 1; }));
  EXPECT_STREQ(second->members->fence_reason(), "a page is torn");
  EXPECT_FALSE(first->members->is_cut_off() || second->members->is_cut_off()) << "the pool is fenced";
  EXPECT_GT(second->worker.changes().load(), 0u);
  bool last = false;
  EXPECT_EQ(second->leave(&last, &problem).error(), Errc::kFenced);
  MemberNode late(spec());
  EXPECT_EQ(late.open(&problem).error(), Errc::kFenced);
  EXPECT_NE(strstr(problem.text, "a page is torn"), nullptr) << problem.text;
}

TEST_F(TcpMembershipTest, WhereDeathsAreNotRepairedTheyFence) {
  make(false);
  const auto first = joined(0), second = joined(1);
  EXPECT_FALSE(first->members->repairs_deaths());
  second->worker.kill();
  EXPECT_TRUE(eventually([&] { return first->members->fence_word().load() == 1; }));
  EXPECT_NE(strstr(first->members->fence_reason(), "node 1"), nullptr) << first->members->fence_reason();
  EXPECT_TRUE(first->members->watch(1));
}

// node.cut-off-joins-again
TEST_F(TcpMembershipTest, ANodeThatIsCutOffEndsAlone) {
  const auto first = joined(0), second = joined(1);
  first->members->cut_off("a batch is lost");
  EXPECT_EQ(first->members->fence_word().load(), 1u);
  EXPECT_STREQ(first->members->fence_reason(), "a batch is lost");
  EXPECT_TRUE(first->members->is_cut_off());
  first->members->give_up();
  EXPECT_TRUE(eventually([&] { return second->members->info(NodeId{0}).dead(); }));
  EXPECT_EQ(second->members->fence_word().load(), 0u);
}

// Nobody knows then what memory node 0 makes of this node.
TEST_F(TcpMembershipTest, ANodeWhoseMemoryNodeEndsIsCutOff) {
  const auto first = joined(0), second = joined(1);
  served.reset();
  for (MemberNode* node : {first.get(), second.get()}) {
    EXPECT_TRUE(eventually([&] { return node->members->fence_word().load() == 1; }));
    EXPECT_NE(strstr(node->members->fence_reason(), "this node is cut off"), nullptr) << node->members->fence_reason();
    EXPECT_TRUE(node->members->is_cut_off());
  }
  served.emplace(directory, files(), gcl_test::ServedMembers::Spec{.key = directory.key()});
  EXPECT_TRUE(eventually([&] { return served->tells("node 1 (incarnation 2) is dead"); })) << served->log();
}

TEST_F(TcpMembershipTest, GivingUpIsADeathAtOnce) {
  const auto first = joined(0), second = joined(1);
  first->members->give_up();
  EXPECT_TRUE(eventually([&] { return state(*second, 0) == MemberState::kDead; }));
  EXPECT_TRUE(served->tells("the node ends")) << served->log();
}

// --- nodes that wait for memory node 0

TEST_F(TcpMembershipTest, ServersThatDifferAreRefused) {
  MemberNode::Spec other = spec();
  other.compatibility = "version=15\nlocale=de_DE\n";
  MemberNode node(other);
  EXPECT_EQ(node.open(&problem).error(), Errc::kIncompatible);
  EXPECT_NE(strstr(problem.text, "locale=C"), nullptr) << problem.text;
  EXPECT_NE(strstr(problem.text, "locale=de_DE"), nullptr) << problem.text;
  EXPECT_NE(strstr(problem.text, served->address().c_str()), nullptr) << problem.text;
}

TEST_F(TcpMembershipTest, AnotherKeyIsRefused) {
  const std::string key = directory.path() + "/other.key";
  const int fd = ::open(key.c_str(), O_WRONLY | O_CREAT, 0600);
  EXPECT_EQ(write(fd, std::string(64, 'd').data(), 64), 64);
  close(fd);
  MemberNode::Spec other = spec();
  other.key = key;
  other.tool_times.answer_ns = 500'000'000;
  MemberNode node(other);
  EXPECT_EQ(node.open(&problem).error(), Errc::kUnreached);
  EXPECT_NE(strstr(problem.text, served->address().c_str()), nullptr) << problem.text;
}

TEST_F(TcpMembershipTest, AnAddressWhereNobodyListensIsSaidByName) {
  MemberNode::Spec nowhere = spec();
  nowhere.address = directory.socket("nobody");
  nowhere.tool_times.answer_ns = 300'000'000;
  MemberNode node(nowhere);
  EXPECT_EQ(node.open(&problem).error(), Errc::kUnreached);
  EXPECT_NE(strstr(problem.text, "/nobody"), nullptr) << problem.text;
  EXPECT_NE(strstr(problem.text, "No such file"), nullptr) << problem.text;
}

class Raised final : public Interrupts {
 public:
  bool pending() noexcept override { return monotonic_ns() > at; }
  uint64_t at = ~uint64_t{0};
};

TEST_F(TcpMembershipTest, AWaitForTheChangeCanBeEnded) {
  MemberNode holds(spec());
  ASSERT_TRUE(holds.open(&problem).ok()) << problem.text;
  ASSERT_TRUE(holds.members->begin_change(Patience::kWait, &problem).ok()) << problem.text;
  Raised raised;
  MemberNode::Spec impatient = spec();
  impatient.interrupts = &raised;
  MemberNode waits(impatient);
  ASSERT_TRUE(waits.open(&problem).ok()) << problem.text;
  EXPECT_EQ(waits.members->begin_change(Patience::kTry, &problem).error(), Errc::kBusy);
  EXPECT_NE(strstr(problem.text, "changes the pool's members"), nullptr) << problem.text;
  raised.at = monotonic_ns() + 200'000'000;
  EXPECT_EQ(waits.members->begin_change(Patience::kWait, &problem).error(), Errc::kInterrupted);
  raised.at = ~uint64_t{0};
  holds.members->end_change();
  EXPECT_TRUE(waits.members->begin_change(Patience::kWait, &problem).ok()) << problem.text;
}

// It makes its arena, or reads the redo of the dead (net.tools-may-be-silent).
TEST_F(TcpMembershipTest, AToolThatHasBegunAChangeMayBeBusyForLong) {
  const net::LinkTimes short_times{.patience_ns = 1'000'000'000, .silence_ns = 200'000'000};
  served.reset();
  served.emplace(directory, files(), gcl_test::ServedMembers::Spec{.key = directory.key(), .times = short_times});
  MemberNode::Spec busy = spec();
  busy.tool_times.link.silence_ns = 200'000'000;
  MemberNode node(busy);
  ASSERT_TRUE(node.open(&problem).ok()) << problem.text;
  ASSERT_TRUE(node.members->begin_change(Patience::kWait, &problem).ok()) << problem.text;
  nap(2'500'000'000);
  EXPECT_TRUE(node.members->reserve(NodeId{1}, &problem).ok()) << problem.text << served->log();
}

TEST_F(TcpMembershipTest, AProcessKilledInTheMiddleOfAChangeGivesItBack) {
  const pid_t child = fork();
  if (child == 0) {
    MemberNode node(spec());
    const bool began = node.open(&problem) && node.members->begin_change(Patience::kWait, &problem) &&
                       node.members->reserve(NodeId{1}, &problem).ok();
    if (!began) _exit(1);
    kill(getpid(), SIGKILL);
  }
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(state(*joined(1), 1), MemberState::kLive);
  EXPECT_TRUE(served->tells("has left in the middle of a change of members")) << served->log();
}

// tcp.tool-of-one-process
TEST_F(TcpMembershipTest, AForkedProcessHasAToolOfItsOwn) {
  const auto node = joined(0);
  ASSERT_TRUE(node->members->begin_change(Patience::kWait, &problem).ok()) << problem.text;
  const pid_t child = fork();
  if (child == 0) {
    const Errc busy = node->members->begin_change(Patience::kTry, &problem).error();
    node->tool.close();
    _exit(busy == Errc::kBusy ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_EQ(node->members->begin_change(Patience::kTry, &problem).error(), Errc::kUnreached)
      << "a change inside a change";
  EXPECT_NE(strstr(problem.text, "a change inside a change"), nullptr) << problem.text;
}

}  // namespace
}  // namespace coherence::tcp
