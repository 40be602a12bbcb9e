// A memory node that comes to a pool in use: it is young as long as some node does not reach it, and cuts nobody off
// meanwhile (tcp.pages-where-all-reach).
#include <sys/eventfd.h>
#include <unistd.h>

#include "coherence/transport/tcp/member/mirror_route.hpp"
#include "coherence/transport/tcp/member/pool_links.hpp"
#include "coherence/transport/tcp/network_worker.hpp"
#include "members.hpp"

namespace coherence::tcp {
namespace {

// A node's network worker, as far as memory nodes are concerned.
class LinkedNode final : private MembersChanged {
 public:
  LinkedNode(uint8_t id, uint64_t incarnation, const std::string& first, const net::LinkTimes& times)
      : worker_(gcl_test::must(
            NetworkWorker::make(port_.port(), {.self = net::Who::node({id}, incarnation), .times = times},
                                net::Credentials::plain(), log, &problem_),
            problem_)),
        members_(mirror, sayings, worker_->memory(), *this, log),
        links_(
            worker_->memory(), mirror, sayings,
            [](const char* address, Problem*) { return Result<net::Endpoints>(gcl_test::endpoints(address)); }, log) {
    worker_->memory().set_other(&members_);
    worker_->add(members_);
    gcl_test::must(worker_->memory().add(kZero, gcl_test::endpoints(first), &problem_), problem_);
  }
  ~LinkedNode() { worker_.reset(); }
  void run_once() {
    worker_->run_once(0);
    (void)links_.look(monotonic_ns(), joined);
  }
  bool reaches_all() const { return mirror.known() && links_.missing() == uint32_t(kMemoryNodesMax); }
  bool is_cut_off() const { return mirror.is_cut_off(); }
  net::Link* link(uint8_t k) const { return worker_->memory().link({k}); }
  // Of its link to memory node k; 0: there is none.
  uint64_t link_id(uint8_t k) const { return link(k) != nullptr ? link(k)->id() : 0; }

  bool joined = false;
  Lines log;

 private:
  void table_comes(const Table& table) noexcept override { links_.table_comes(table); }
  void members_changed() noexcept override {}
  gcl_test::SharedBytes mirror_bytes_{Mirror::kBytes}, sayings_bytes_{Sayings::kBytes};
  gcl_test::SharedPort port_{4};
  Problem problem_;

 public:
  Mirror& mirror = Mirror::at(mirror_bytes_.at());
  Sayings& sayings = Sayings::at(sayings_bytes_.at());

 private:
  std::unique_ptr<NetworkWorker> worker_;
  MirrorRoute members_;
  PoolLinks links_;
};

class TcpYoung : public MemberServerTest {
 protected:
  void SetUp() override {
    times.patience_ns = 60'000'000'000;  // nobody dies here
    make({.memory_nodes = 2});
    ASSERT_TRUE(all_are_here()) << log.all;
    also_run.emplace_back([this] {
      for (LinkedNode& node : nodes) node.run_once();
    });
  }
  void TearDown() override {
    also_run.clear();
    nodes.clear();
    MemberServerTest::TearDown();
  }
  LinkedNode& join_linked(uint8_t id, const net::LinkTimes& link_times = {.patience_ns = 300'000'000}) {
    MemberPeer& by = tool();
    EXPECT_EQ(call(by, {.call = Call::kBeginChange}).error, Errc::kOk);
    const AnswerFrame reserved = call(by, {.call = Call::kReserve, .node = id});
    EXPECT_EQ(reserved.error, Errc::kOk) << reserved.problem;
    LinkedNode& node = nodes.emplace_back(id, reserved.value, address(), link_times);
    EXPECT_TRUE(until([&] { return node.reaches_all(); })) << node.log.all;
    EXPECT_EQ(call(by, publish(id, reserved.value)).error, Errc::kOk);
    node.joined = true;
    EXPECT_EQ(call(by, {.call = Call::kEndChange}).error, Errc::kOk);
    kill(by);
    return node;
  }
  // The pool's third, which says that it is there.
  FurtherPart& begin_two(const std::string& says = "") { return begin_further(2, 8 * kPageSize, says); }
  std::string elsewhere() const { return directory.socket("elsewhere"); }

  std::list<LinkedNode> nodes;
};

TEST_F(TcpYoung, OneMoreIsUsedWhenAllNodesReachIt) {
  LinkedNode &first = join_linked(0), &second = join_linked(1);
  FurtherPart& two = begin_two();
  EXPECT_TRUE(until([&] {
    return first.mirror.settled_memory_nodes() == 3 && second.mirror.settled_memory_nodes() == 3;
  })) << log.all
      << two.log.all;
  EXPECT_FALSE(first.is_cut_off() || second.is_cut_off());
}

TEST_F(TcpYoung, OneMoreThatNodesDoNotReachCutsNobodyOffAndIsUsedLater) {
  LinkedNode& node = join_linked(0);
  FurtherPart& two = begin_two(elsewhere());
  EXPECT_TRUE(until([&] { return node.mirror.memory_nodes() == 3; })) << log.all;
  const uint64_t first = node.link_id(2);
  ASSERT_NE(first, 0u);
  EXPECT_TRUE(until([&] { return node.is_cut_off() || (node.link(2) != nullptr && node.link_id(2) != first); }))
      << node.log.all;
  for_a_while();
  EXPECT_FALSE(node.is_cut_off()) << node.mirror.members().fence_reason();
  EXPECT_EQ(node.mirror.settled_memory_nodes(), 2u) << "new pages are on the first two";
  EXPECT_EQ(state(0), MemberState::kLive);
  EXPECT_TRUE(until([&] {
    return log.tell("memory node 2 at " + elsewhere() + " is not used yet: node 0 does not reach it");
  })) << log.all;

  gcl_test::must(two.server->listen(gcl_test::endpoints(elsewhere()), &problem), problem);
  EXPECT_TRUE(until([&] { return node.mirror.settled_memory_nodes() == 3; })) << log.all << node.log.all;
  EXPECT_TRUE(log.tell("all nodes reach memory node 2")) << log.all;
  EXPECT_FALSE(node.is_cut_off());
}

TEST_F(TcpYoung, OneThatSaysAnotherAddressIsDialedThere) {
  LinkedNode& node = join_linked(0);
  (void)begin_two(elsewhere());
  EXPECT_TRUE(until([&] { return node.mirror.memory_nodes() == 3; })) << log.all;
  further.pop_back();
  FurtherPart& again = begin_further(2);
  ASSERT_NE(again.part, nullptr) << again.problem.text;
  EXPECT_TRUE(until([&] { return node.mirror.settled_memory_nodes() == 3; })) << log.all << node.log.all;
  char at[kListensAtBytes];
  node.mirror.copy_memory_node_address({2}, at);
  EXPECT_EQ(at, again.address());
  EXPECT_FALSE(node.is_cut_off());
}

// However long a connection that breaks is waited for (tcp.elsewhere-is-anew).
TEST_F(TcpYoung, OneThatIsInUseAndHasStartedAnewElsewhereCutsItsNodesOffAtOnce) {
  LinkedNode& node = join_linked(0, {.patience_ns = 600'000'000'000});
  further.clear();
  FurtherPart& again = begin_further(1);
  ASSERT_NE(again.part, nullptr) << again.problem.text;
  EXPECT_TRUE(until([&] { return node.is_cut_off(); })) << log.all << node.log.all;
}

// As of a path by verbs that cannot be made, too: the memory node's process goes on, and admits the node.
TEST_F(TcpYoung, ALinkThatIsOverIsMadeAgainWhileTheMemoryNodeIsYoung) {
  LinkedNode& node = join_linked(0);
  MemberPeer& slow = join(1);
  EXPECT_TRUE(slow.say([](SayingsRecord& says) { says.reaches = 2; }));
  FurtherPart& two = begin_two();
  EXPECT_TRUE(until([&] { return node.sayings.reached() == 3; })) << node.log.all;
  for (int i = 0; i < 2; i++) {
    ASSERT_NE(node.link(2), nullptr);
    node.link(2)->end("the test's");
    EXPECT_TRUE(until([&] { return node.is_cut_off() || node.sayings.reached() == 2; }));
    EXPECT_TRUE(until([&] { return node.is_cut_off() || node.sayings.reached() == 3; })) << node.log.all << two.log.all;
    EXPECT_FALSE(node.is_cut_off());
  }
  EXPECT_EQ(node.mirror.settled_memory_nodes(), 2u);
  EXPECT_TRUE(slow.say([](SayingsRecord& says) { says.reaches = 3; }));
  EXPECT_TRUE(until([&] { return node.mirror.settled_memory_nodes() == 3; })) << log.all;
  node.link(2)->end("the test's");
  EXPECT_TRUE(until([&] { return node.is_cut_off(); })) << "pages may be there (tcp.memory-nodes-all)";
}

// Else it would be in the pool, and not reach a memory node that has settled meanwhile.
TEST_F(TcpYoung, OneMoreWaitsForANodeThatJoins) {
  LinkedNode& node = join_linked(0);
  MemberPeer& by = tool();
  EXPECT_EQ(call(by, {.call = Call::kBeginChange}).error, Errc::kOk);
  const AnswerFrame reserved = call(by, {.call = Call::kReserve, .node = 1});
  EXPECT_EQ(reserved.error, Errc::kOk) << reserved.problem;
  MemberPeer& joins = this->node(1, reserved.value);
  (void)begin_two();
  EXPECT_TRUE(until([&] { return node.sayings.reached() == 3; })) << node.log.all;
  for_a_while();
  EXPECT_EQ(node.mirror.settled_memory_nodes(), 2u);
  EXPECT_TRUE(joins.say([](SayingsRecord& says) { says.reaches = 3; }));
  EXPECT_TRUE(until([&] { return node.mirror.settled_memory_nodes() == 3; })) << log.all;
}

TEST_F(TcpYoung, WhatNodesReachIsInTheTable) {
  MemberPeer& node = join(0);
  EXPECT_TRUE(node.say([](SayingsRecord& says) { says.reaches = 2; }));
  EXPECT_TRUE(until([&] {
    MemberPeer& by = tool();
    (void)call(by, {.call = Call::kHeader});
    const uint64_t reaches = by.node(0).reaches;
    kill(by);
    return reaches == 2;
  })) << log.all;
  EXPECT_TRUE(node.say([](SayingsRecord& says) { says.reaches = kMemoryNodesMax + 1; }));
  EXPECT_TRUE(until([&] { return node.over(); })) << "nobody reaches so many";
}

// A path that nobody asks for.
class IdleAccess final : public DirectAccess {
 public:
  ~IdleAccess() override { ::close(fd_); }
  Status open(net::Link&, std::span<const std::byte>, Problem*) override { return Errc::kSystem; }
  void close(const net::Link&) noexcept override {}
  size_t paths() const noexcept override { return 0; }
  void after_pass() override {}
  int fd() const noexcept override { return fd_; }

 private:
  const int fd_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
};

TEST_F(TcpYoung, OneThatNodesReachInAnotherWayIsRefused) {
  MemberPeer& node = join(0);
  IdleAccess access;
  FurtherPart& two = begin_further(2, 8 * kPageSize, "", &access);
  const char* const because = "is reached by verbs, memory node 0 over tcp: --verbs goes with all memory nodes";
  EXPECT_TRUE(until([&] { return two.members->is_over(); })) << log.all;
  EXPECT_TRUE(log.tell(because)) << log.all;
  EXPECT_NE(strstr(two.members->why(), because), nullptr) << two.members->why();
  EXPECT_EQ(node.table.head.memory_nodes, 2u);
  further.pop_back();
}

}  // namespace
}  // namespace coherence::tcp
