// Nodes that are processes die by SIGKILL, and a survivor repairs what they had (repair.*).
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>

#include <algorithm>

#include "cluster.hpp"
#include "coherence/pool/node_table.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/processes.hpp"

namespace coherence {
namespace {

// A byte through a pipe: from one process to another, or to several.
class Signal {
 public:
  Signal() { EXPECT_EQ(pipe(ends_), 0); }
  ~Signal() { close(ends_[0]), close(ends_[1]); }
  void give() { CHILD_VERIFY(write(ends_[1], "", 1) == 1); }
  void await() {
    char c;
    pollfd end{.fd = ends_[0], .events = POLLIN, .revents = 0};
    CHILD_VERIFY(poll(&end, 1, kMaxMs) == 1 && read(ends_[0], &c, 1) == 1);
  }

 private:
  static constexpr int kMaxMs = 60000;  // who gives it may have failed
  int ends_[2];
};

// The first word of each page, as the redo of each node has it; shared by all processes.
class WordRedo final : public PageRepair {
 public:
  static constexpr uint32_t kPages = 64, kNodes = 8;
  WordRedo()
      : words_(static_cast<Words*>(
            mmap(nullptr, sizeof(Words), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))) {}
  ~WordRedo() { munmap(words_, sizeof(Words)); }
  std::atomic<uint64_t>& of(int node, PageId page) { return words_->word[node][page.number()]; }
  Result<bool> repair(PageId page, std::byte* bytes, NodeSet dead, Memory&, Problem*) noexcept override {
    uint64_t value, newest = 0;
    memcpy(&value, bytes, sizeof value);
    for (; !dead.empty(); dead = dead.without(dead.first()))
      newest = std::max(newest, of(dead.first().value, page).load());
    if (newest <= value) return false;
    memcpy(bytes, &newest, sizeof newest);
    return true;
  }

 private:
  struct Words {
    std::atomic<uint64_t> word[kNodes][kPages];
  };
  Words* words_;
};

class Repair : public ClusterTest {
 protected:
  Repair() { repairs_deaths = true; }
  TestNode& survivor() {
    TestNode& node = add_node(16, false);
    node.node->set_repair(&redo);
    node.start();
    return node;
  }
  // A node of the process that calls it.
  std::unique_ptr<TestNode> join(int n) {
    auto node = std::make_unique<TestNode>(*pool, NodeId{uint8_t(n)}, 16);
    node->node->set_repair(&redo);
    node->start();
    return node;
  }
  void change(TestNode& node, Session& session, PageId at, uint64_t value, bool logged = true) {
    Line& line = node.line(session, at);
    CHILD_VERIFY(session.lock_exclusive(line, at).ok());
    write_word(*node.node, line, value);
    if (logged) redo.of(node.node->id().value, at) = value;
  }
  uint64_t read_page(TestNode& node, Session& session, PageId at) {
    Line& line = node.line(session, at);
    const Status locked = session.lock_shared(line, at);
    EXPECT_TRUE(locked.ok()) << errc_name(locked.error());
    const uint64_t value = read_word(*node.node, line);
    if (locked) session.unlock_shared(line);
    return value;
  }
  // Until the dead node's name is free.
  void sweep(TestNode& node, Session& session, NodeId dead) {
    ASSERT_TRUE(gcl_test::eventually([&] { return node.node->repairable().has(dead); }));
    for (const uint8_t memory_node : {0, 1})
      for (uint64_t n = 0; n < kPages; n++) {
        const auto named = session.drop_dead(page(n, memory_node), dead);
        ASSERT_TRUE(named.ok());
        if (*named == Session::Named::kNot) continue;
        read_page(node, session, page(n, memory_node));
        const auto after = session.drop_dead(page(n, memory_node), dead);
        ASSERT_TRUE(after.ok());
        ASSERT_EQ(int(*after), int(Session::Named::kNot)) << n;
      }
    ASSERT_TRUE(gcl_test::eventually([&] { return node.node->swept(dead, node.node->info(dead).incarnation); }));
    ASSERT_TRUE(gcl_test::eventually([&] { return node.node->info(dead).state == MemberState::kAbsent; }));
  }

  WordRedo redo;
};

TEST_F(Repair, AKilledNodesPagesAreTakenOverAndItsNameIsFreeAgain) {
  const PageId written = page(3), half = page(4), shared = page(5), untouched = page(6);
  Signal ready;
  gcl_test::WaitingChild victim([&] {
    const auto node = join(1);
    Session there(*node->node, SessionId{0}, nullptr);
    change(*node, there, written, 42);
    there.unlock_exclusive(node->line(there, written));
    CHILD_VERIFY(read_page(*node, there, shared) == 0);
    change(*node, there, half, 43, false);  // its redo is not complete, and its latch is held
    ready.give();
    pause();
  });
  gcl_test::WaitingChild next([&] {
    const auto node = join(1);
    {
      Session there(*node->node, SessionId{0}, nullptr);
      CHILD_VERIFY(read_page(*node, there, written) == 42);
      change(*node, there, written, 44);
      there.unlock_exclusive(node->line(there, written));
      node->stop();
      bool last = true;
      Problem ignored;
      CHILD_VERIFY(node->node->leave(there, &last, &ignored).ok() && !last);
    }
  });
  TestNode& mine = survivor();
  Session session(*mine.node, SessionId{0}, nullptr);
  victim.go();
  ready.await();
  EXPECT_EQ(read_page(mine, session, untouched), 0u);
  victim.kill();
  EXPECT_EQ(read_page(mine, session, written), 42u);
  EXPECT_EQ(read_page(mine, session, half), 0u);
  Line& line = mine.line(session, shared);  // the dead node's share does not keep a writer out
  ASSERT_TRUE(session.lock_exclusive(line, shared).ok());
  session.unlock_exclusive(line);
  EXPECT_FALSE(mine.node->fenced()) << mine.node->fence_reason();
  EXPECT_GE(mine.count(Counter::kRepairs), 2u);

  Problem problem;
  const auto early = Node::join(*pool, NodeId{1}, {.frames = 16, .sessions_max = 16}, &problem);
  ASSERT_FALSE(early.ok());
  EXPECT_EQ(early.error(), Errc::kUnrepaired) << problem.text;
  sweep(mine, session, NodeId{1});
  next.go();
  EXPECT_TRUE(next.ended_well());
  EXPECT_EQ(read_page(mine, session, written), 44u);
}

// A process of the node that is left when its server is gone may still be in the middle of a change, as one that is
// stopped there would be.  Nobody meets it in its page.
TEST_F(Repair, NothingIsRepairedWhileAProcessOfTheNodeIsLeft) {
  const PageId at = page(3);
  std::atomic<uint64_t>& left = redo.of(WordRedo::kNodes - 1, page(0));  // the process, which is not ours to wait for
  Signal ready, go_on, done;
  gcl_test::WaitingChild server([&] {
    const auto node = join(1);
    Session there(*node->node, SessionId{1}, nullptr);  // of the process that is forked, which allocates nothing
    if (fork() == 0) {
      left = uint64_t(getpid());
      change(*node, there, at, 42, false);
      ready.give();
      go_on.await();
      CHILD_VERIFY(read_word(*node->node, node->line(there, at)) == 42);
      redo.of(1, at) = 42;
      done.give();
    }
    pause();
  });
  TestNode& mine = survivor();
  Session session(*mine.node, SessionId{0}, nullptr);
  server.go();
  ready.await();
  server.kill();
  std::atomic<bool> came{false};
  std::thread waits([&] {
    EXPECT_EQ(read_page(mine, session, at), 42u);
    came = true;
  });
  const uint64_t beats = pool->table().node[0].heartbeat_ns.load();  // the worker looks for the dead as it beats
  ASSERT_TRUE(gcl_test::eventually([&] { return pool->table().node[0].heartbeat_ns.load() >= beats + 600'000'000; }));
  EXPECT_TRUE(mine.node->repairable().empty());
  EXPECT_TRUE(mine.node->info(NodeId{1}).serves());
  EXPECT_FALSE(came.load());
  go_on.give();
  done.await();
  kill(pid_t(left.load()), SIGKILL);
  waits.join();
  EXPECT_FALSE(mine.node->fenced()) << mine.node->fence_reason();
}

}  // namespace
}  // namespace coherence
