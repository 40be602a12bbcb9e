// A node that leaves answers its peers meanwhile (node.leaver-answers).
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <chrono>
#include <fstream>
#include <utility>

#include "cluster.hpp"
#include "coherence/member/arena.hpp"
#include "coherence/region/node_table.hpp"
#include "coherence/region/pool_lock.hpp"
#include "coherence/transport/shm/mapped_pool.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/processes.hpp"

namespace coherence {

class Leaving : public ClusterTest {
 protected:
  static constexpr uint32_t kLines = 2 * kPages;

  // The first to be given a line gets the last one, and lines leave in order.
  PageId last_to_leave() const { return page(0); }
  void fill(TestNode& n, Session& session) {
    for (uint8_t memory_node = 0; memory_node < 2; memory_node++)
      for (uint64_t i = 0; i < kPages; i++) {
        Line& l = n.line(session, page(i, memory_node));
        ASSERT_TRUE(session.lock_exclusive(l, page(i, memory_node)).ok());
        write_word(*n.node, l, i + 1);
        session.unlock_exclusive(l);
      }
  }
  Problem problem;
};

// Asked for each page that leaves; among them, a peer asks for the one that would leave last.
class AskedAmongThem : public LogHorizon {
 public:
  static constexpr int kAskedAt = 40;
  AskedAmongThem(TestNode& leaver, TestNode& peer, std::atomic<bool>& ask) : leaver_(leaver), peer_(peer), ask_(ask) {}
  Lsn flushed() noexcept override {
    ++seen_;
    if (seen_ == kAskedAt) {
      const uint64_t before = peer_.count(Counter::kPeerWaits);
      ask_ = true;
      EXPECT_TRUE(gcl_test::eventually([&] { return peer_.count(Counter::kPeerWaits) > before; }));
    }
    if (answered_at == 0 && leaver_.count(Counter::kPeerWrReceived) > 0) answered_at = seen_;
    return {~uint64_t{0}};
  }
  void request_flush(Lsn) noexcept override {}

  int answered_at = 0;

 private:
  TestNode& leaver_;
  TestNode& peer_;
  std::atomic<bool>& ask_;
  int seen_ = 0;
};

TEST_F(Leaving, APeerIsAnsweredAmongThePagesThatAreGivenBack) {
  TestNode& n0 = add_node(kLines, false);
  TestNode& n1 = add_node();
  Session s0(*n0.node, SessionId{0}, nullptr);
  fill(n0, s0);
  std::atomic<bool> ask{false};
  std::thread peer([&] {
    Session s1(*n1.node, SessionId{0}, nullptr);
    Line& l = n1.line(s1, last_to_leave());
    while (!ask) std::this_thread::yield();
    ASSERT_TRUE(s1.lock_exclusive(l, last_to_leave()).ok());
    EXPECT_EQ(read_word(*n1.node, l), 1u);
    s1.unlock_exclusive(l);
  });
  AskedAmongThem horizon(n0, n1, ask);
  n0.node->set_upcalls(&n0.directory, &horizon);
  bool last = true;
  EXPECT_TRUE(n0.node->leave(s0, &last, &problem).ok()) << problem.text;
  peer.join();
  EXPECT_FALSE(last);
  EXPECT_GT(horizon.answered_at, 0);
  EXPECT_LE(horizon.answered_at - AskedAmongThem::kAskedAt, 40) << "pages left before a peer was answered";
  n0.node->set_upcalls(&n0.directory, &n0.horizon);
}

// Under the pool's lock file a server makes its arena: that takes as long as its cache is large.
TEST_F(Leaving, ALeaverThatWaitsForThePoolsLockServesMeanwhile) {
  TestNode& n0 = add_node(16, false);
  TestNode& n1 = add_node();
  const NodeEntry& entry = MappedPool::of(*pool).table().node[0];
  std::thread leaver;
  {
    PoolLock joining(path.c_str());
    ASSERT_TRUE(joining.held());
    leaver = std::thread([&] {
      Session s0(*n0.node, SessionId{0}, nullptr);
      bool last = true;
      EXPECT_TRUE(n0.node->leave(s0, &last, &problem).ok()) << problem.text;
    });
    EXPECT_TRUE(gcl_test::eventually([&] { return entry.state == MemberState::kLeaving; }));
    for (int beats = 0; beats < 2; beats++) {  // serve() has one every quarter of a second
      const uint64_t before = entry.heartbeat_ns;
      EXPECT_TRUE(gcl_test::eventually([&] { return entry.heartbeat_ns != before; }));
    }
    EXPECT_EQ(n1.node->live(), NodeSet::of(NodeId{1}));
    EXPECT_EQ(entry.state, MemberState::kLeaving);
  }
  leaver.join();
  EXPECT_EQ(entry.state, MemberState::kAbsent);
}

// node.memory-given-back.  A peer's process that goes on, and stands still at the end.
class Departed : public Leaving {
 protected:
  static constexpr ArenaSpec kComing{.frames = 64, .sessions_max = 16, .private_bytes = 4096};
  struct Told {
    std::atomic<bool> stop;
  };

  // The nodes that are left where the test has failed.
  void TearDown() override {
    if (stayer_ > 0) kill(stayer_, SIGKILL), waitpid(stayer_, nullptr, 0);
    munmap(told_, sizeof(Told));
    Leaving::TearDown();
  }
  // Node 0: has page 3 again and again.
  void stay() {
    auto mine = LocalPool::open(files(), &problem);
    CHILD_VERIFY(mine.ok());
    auto node = Node::join(**mine, NodeId{0}, {.frames = 16, .sessions_max = 16}, &problem, shm_transport());
    CHILD_VERIFY(node.ok());
    TestDirectory directory(kPages);
    (*node)->set_upcalls(&directory, nullptr);
    Session session(**node, SessionId{0}, nullptr);
    Line& line = (*node)->line(0);
    CHILD_VERIFY(session.assign(line, page(3), [&] { directory.at(page(3)) = &line; }).ok());
    while (!told_->stop) {
      CHILD_VERIFY(session.lock_exclusive(line, page(3)).ok());
      session.unlock_exclusive(line);
      CHILD_VERIFY(session.serve(1).ok());
    }
    bool last;
    CHILD_VERIFY((*node)->leave(session, &last, &problem).ok());
  }
  // Of all incarnations of node 1.
  static int arenas_mapped(pid_t pid) {
    std::ifstream maps("/proc/" + std::to_string(pid) + "/maps");
    int count = 0;
    for (std::string line; std::getline(maps, line);) count += line.find(".node1.") != std::string::npos;
    return count;
  }
  // Node 1 comes, meets node 0 and goes; returns what memory its arena has then.
  uint64_t come_and_go(pid_t stayer, bool stopped) {
    TestNode coming(*pool, NodeId{1}, kComing.frames);
    coming.start();
    char arena[600];
    arena_path(*pool, NodeId{1}, coming.node->incarnation(), arena, sizeof arena);
    const int fd = open(arena, O_RDONLY | O_CLOEXEC);
    EXPECT_GE(fd, 0);
    bool last = true;
    {
      Session session(*coming.node, SessionId{0}, nullptr);
      Line& line = coming.line(session, page(3));
      EXPECT_TRUE(session.lock_exclusive(line, page(3)).ok());
      session.unlock_exclusive(line);
      EXPECT_TRUE(gcl_test::eventually([&] { return coming.count(Counter::kGrantMSent) > 0; }));
      EXPECT_EQ(arenas_mapped(stayer), 1);
      if (stopped) kill(stayer, SIGSTOP);
      coming.stop();
      EXPECT_TRUE(coming.node->leave(session, &last, &problem).ok()) << problem.text;
    }
    EXPECT_FALSE(last);
    struct stat s {};
    EXPECT_EQ(fstat(fd, &s), 0);
    close(fd);
    return uint64_t(s.st_blocks) * 512;
  }

  pid_t stayer_ = 0;
  Told* told_ = new (mmap(nullptr, sizeof(Told), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) Told{};
};

TEST_F(Departed, ANodeThatComesAndGoesLeavesNoMemoryBehind) {
  const ArenaLayout layout = arena_layout(kComing);
  const uint64_t kept = layout.shared_until() + layout.bytes - layout.private_at;  // node.memory-given-back
  ASSERT_LT(kept, layout.bytes / 2);
  const pid_t stayer = stayer_ = gcl_test::child([this] { stay(); });
  ASSERT_TRUE(gcl_test::eventually([&] { return pool->peek_latch(page(3)).has_owner(); }));
  for (int i = 0; i < 20; i++) ASSERT_LE(come_and_go(stayer, false), kept) << "restart " << i;
  EXPECT_TRUE(gcl_test::eventually([&] { return arenas_mapped(stayer) == 0; }));
  EXPECT_LE(come_and_go(stayer, true), kept);  // though a process that does nothing maps it
  EXPECT_EQ(arenas_mapped(stayer), 1);
  kill(stayer, SIGCONT);
  EXPECT_TRUE(gcl_test::eventually([&] { return arenas_mapped(stayer) == 0; }));
  told_->stop = true;
  EXPECT_TRUE(gcl_test::ended_well(std::exchange(stayer_, 0)));
}

}  // namespace coherence
