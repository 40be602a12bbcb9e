// Pool files, joining and leaving, and deaths that are not orderly.
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <utility>

#include "cluster.hpp"
#include "coherence/region/pool_header.hpp"
#include "coherence/transport/shm/mapped_pool.hpp"
#include "tests/support/eventually.hpp"

namespace coherence {

using namespace std::chrono_literals;

class Members : public ClusterTest {
 protected:
  static constexpr ArenaSpec kArena{.frames = 16, .sessions_max = 16, .private_bytes = 4096};
  void reopen() {
    pool.reset();
    auto opened = LocalPool::open(files(), &problem);
    ASSERT_TRUE(opened.ok()) << problem.text;
    pool = opened.take();
  }
  // Whether memory node 0's pages have been given memory of the machine.
  bool pages_have_memory() const {
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    const auto pages_at = off_t(pool->page_address(page(0)).offset());
    const off_t data = lseek(fd, pages_at, SEEK_DATA);
    close(fd);
    return data >= pages_at && data < pages_at + off_t(kPages * kPageSize);
  }
  Problem problem;
};

TEST_F(Members, SavingAPoolGivesNoMemoryToWhatNobodyHasTouched) {
  EXPECT_FALSE(pages_have_memory());  // it was saved when it was made
  TestNode& n = add_node(16, false);
  Session s(*n.node, SessionId{0}, nullptr);
  bool last = false;
  ASSERT_TRUE(n.node->leave(s, &last, &problem).ok()) << problem.text;
  EXPECT_TRUE(last);  // and again
  EXPECT_FALSE(pages_have_memory());
}

TEST_F(Members, APoolSurvivesItsLastNodeAndARebootOfTmpfs) {
  {
    TestNode& n = add_node(16, false);
    Session s(*n.node, SessionId{0}, nullptr);
    Line& l = n.line(s, page(7));
    ASSERT_TRUE(s.lock_exclusive(l, page(7)).ok());
    write_word(*n.node, l, 4711);
    s.unlock_exclusive(l);
    bool last = false;
    ASSERT_TRUE(n.node->leave(s, &last, &problem).ok()) << problem.text;
    EXPECT_TRUE(last);
  }
  nodes.clear();
  EXPECT_EQ(LocalPool::inspect(files(), &problem), LocalPool::Condition::kClean);
  pool.reset();
  ASSERT_EQ(unlink(path.c_str()), 0);
  reopen();
  TestNode& again = add_node(16, false);
  Session t(*again.node, SessionId{0}, nullptr);
  Line& m = again.line(t, page(7));
  ASSERT_TRUE(t.lock_shared(m, page(7)).ok());
  EXPECT_EQ(read_word(*again.node, m), 4711u);
  t.unlock_shared(m);
}

TEST_F(Members, TheFirstToLeaveGivesItsPagesBackAndTheOthersGoOn) {
  TestNode& n0 = add_node(16, false);
  TestNode& n1 = add_node();
  Session s0(*n0.node, SessionId{0}, nullptr), s1(*n1.node, SessionId{0}, nullptr);
  for (uint64_t i = 0; i < 8; i++) {
    Line& l = n0.line(s0, page(i));
    ASSERT_TRUE(s0.lock_exclusive(l, page(i)).ok());
    write_word(*n0.node, l, i + 100);
    s0.unlock_exclusive(l);
  }
  bool last = true;
  ASSERT_TRUE(n0.node->leave(s0, &last, &problem).ok()) << problem.text;
  EXPECT_FALSE(last);
  for (uint64_t i = 0; i < 8; i++) {
    EXPECT_EQ(pool->peek_latch(page(i)), LatchWord::free());
    Line& l = n1.line(s1, page(i));
    ASSERT_TRUE(s1.lock_exclusive(l, page(i)).ok());
    EXPECT_EQ(read_word(*n1.node, l), i + 100);
    s1.unlock_exclusive(l);
  }
  EXPECT_EQ(n1.node->live(), NodeSet::of(NodeId{1}));
}

TEST_F(Members, ANodeIdIsTakenOnce) {
  TestNode& n = add_node(16, false);
  EXPECT_EQ(Node::join(*pool, NodeId{8}, kArena, &problem, shm_transport()).error(), Errc::kNotFound);
  pid_t child = fork();
  if (child == 0) _exit(Node::join(*pool, NodeId{0}, kArena, &problem, shm_transport()).error() == Errc::kBusy ? 0 : 1);
  int status;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  EXPECT_FALSE(n.node->fenced());
}

TEST_F(Members, AServerThatJoinsAgainWithoutHavingLeftFencesThePool) {
  TestNode& n = add_node(16, false);
  EXPECT_EQ(Node::join(*pool, NodeId{0}, kArena, &problem, shm_transport()).error(), Errc::kFenced);
  EXPECT_TRUE(n.node->fenced());
}

TEST_F(Members, NodesOfAPoolHaveOneProtocol) {
  const auto set_protocol = [&](uint32_t version) {
    const int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
    ASSERT_EQ(pwrite(fd, &version, sizeof version, offsetof(PoolHeader, protocol)), ssize_t(sizeof version));
    close(fd);
  };
  set_protocol(kProtocolVersion + 1);  // no node that had it is in it any more
  TestNode& n = add_node(16, false);
  EXPECT_EQ(LocalPool::inspect(files(), &problem), LocalPool::Condition::kInUse) << problem.text;
  set_protocol(kProtocolVersion + 1);
  EXPECT_EQ(LocalPool::inspect(files(), &problem), LocalPool::Condition::kForeign);
  EXPECT_EQ(Node::join(*pool, NodeId{1}, kArena, &problem, shm_transport()).error(), Errc::kIncompatible);
  EXPECT_NE(strstr(problem.text, "protocol version 4, this server has 3"), nullptr) << problem.text;
  set_protocol(kProtocolVersion);
  {
    auto second = Node::join(*pool, NodeId{1}, kArena, &problem, shm_transport());
    ASSERT_TRUE(second.ok()) << problem.text;
    EXPECT_FALSE(n.node->fenced());
    set_protocol(kProtocolVersion + 1);
  }  // a node that died with it counts, too
  EXPECT_EQ(Node::join(*pool, NodeId{2}, kArena, &problem, shm_transport()).error(), Errc::kIncompatible);
}

TEST_F(Members, AServerThatDiffersIsRefusedWithBothValues) {
  PoolFiles other{path.c_str(), durable.c_str(), "version=15\nlocale=de_DE\n"};
  EXPECT_EQ(LocalPool::open(other, &problem).error(), Errc::kIncompatible);
  EXPECT_NE(strstr(problem.text, "locale=C"), nullptr) << problem.text;
  EXPECT_NE(strstr(problem.text, "locale=de_DE"), nullptr) << problem.text;
  PoolSpec spec{.compatibility = ""};
  EXPECT_EQ(LocalPool::create(files(), spec, &problem).error(), Errc::kExists);
}

TEST_F(Members, APoolThatDoesNotFitIsRefusedAtCreation) {
  std::string big = path + "-big";
  PoolSpec spec{.compatibility = ""};
  spec.region_bytes[kRegionPages] = uint64_t{1} << 46;
  EXPECT_FALSE(LocalPool::create({big.c_str(), nullptr, ""}, spec, &problem).ok());
  EXPECT_NE(access(big.c_str(), F_OK), 0);
}

TEST_F(Members, AFileThatIsNoPoolIsRefused) {
  std::string other = path + "-other";
  FILE* f = fopen(other.c_str(), "w");
  fputs("hello", f);
  fclose(f);
  EXPECT_EQ(LocalPool::open({other.c_str(), nullptr, ""}, &problem).error(), Errc::kCorrupt);
  EXPECT_EQ(LocalPool::open({"/dev/shm/gcl-test-absent", nullptr, ""}, &problem).error(), Errc::kNotFound);
  unlink("/dev/shm/gcl-test-absent.lock");
}

// The child is killed while it owns a page exclusively; the survivor waits for that page.
TEST_F(Members, AKilledNodeFencesThePoolAndEndsItsPeersWaits) {
  pid_t child = fork();
  if (child == 0) {
    auto mine = LocalPool::open(files(), &problem);
    auto node = Node::join(**mine, NodeId{1}, kArena, &problem, shm_transport());
    if (!node.ok()) _exit(1);
    Session s(**node, SessionId{0}, nullptr);
    Line& l = (*node)->line(0);
    if (!s.assign(l, page(3), [] {}) || !s.lock_exclusive(l, page(3))) _exit(2);
    for (;;) (void)s.serve(100);
  }
  ASSERT_TRUE(gcl_test::eventually([&] { return pool->peek_latch(page(3)).has_owner(); }));
  TestNode& n = add_node();
  {
    Session s(*n.node, SessionId{0}, nullptr);
    const uint64_t waited = n.count(Counter::kPeerWaits);
    std::thread killer([&] {
      EXPECT_TRUE(gcl_test::eventually([&] { return n.count(Counter::kPeerWaits) > waited; }));
      kill(child, SIGKILL);
    });
    auto begin = std::chrono::steady_clock::now();
    EXPECT_EQ(s.lock_shared(n.line(s, page(3)), page(3)).error(), Errc::kFenced);
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(gcl_test::kPatienceMs));
    killer.join();
  }
  int status;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_NE(strstr(n.node->fence_reason(), "node 1"), nullptr) << n.node->fence_reason();
  nodes.clear();
  EXPECT_EQ(LocalPool::open(files(), &problem).error(), Errc::kFenced);
  EXPECT_NE(strstr(problem.text, "not closed cleanly"), nullptr) << problem.text;
  pool.reset();
  ASSERT_EQ(unlink(path.c_str()), 0);  // a reboot: the durable file was marked in use
  EXPECT_EQ(LocalPool::open(files(), &problem).error(), Errc::kFenced);
  EXPECT_NE(strstr(problem.text, "not closed cleanly"), nullptr) << problem.text;
}

TEST_F(Members, ACrashRestartOfANodeFencesThePool) {
  TestNode& survivor = add_node();
  {
    TestNode& n = add_node(16, false);  // goes without leaving, as a server does that restarts after a crash
    n.node.reset();
    n.node = nullptr;
  }
  EXPECT_EQ(Node::join(*pool, NodeId{1}, kArena, &problem, shm_transport()).error(), Errc::kFenced);
  EXPECT_TRUE(survivor.node->fenced());
}

TEST_F(Members, AChildThatOutlivesItsParentsObjectKeepsTheNodeAlive) {
  TestNode& survivor = add_node(16, false);
  TestNode& n = add_node(16, false);
  int channel[2];
  ASSERT_EQ(pipe(channel), 0);
  pid_t child = fork();  // inherits the lock, as every process of a server does
  if (child == 0) {
    char c;
    close(channel[1]);
    if (read(channel[0], &c, 1) < 0) _exit(1);
    _exit(0);
  }
  close(channel[0]);
  n.node.reset();
  Session s(*survivor.node, SessionId{0}, nullptr);
  const auto fenced = [&] {
    (void)s.serve(20);
    return survivor.node->fenced();
  };
  EXPECT_FALSE(gcl_test::eventually(fenced, 800ms));
  close(channel[1]);
  int status;
  waitpid(child, &status, 0);
  EXPECT_TRUE(gcl_test::eventually(fenced));
}

// wakeup.workers-look.  A change of the table wakes a worker that sleeps; one that is about to sleep looks once more.
TEST_F(Members, AChangeThatComesJustBeforeTheWorkerSleepsEndsTheSleep) {
  struct Changes : Interrupts {
    bool pending() noexcept override {  // serve() asks behind its look at the table
      if (then) std::exchange(then, nullptr)();
      return false;
    }
    std::function<void()> then;
  } changes;
  TestNode& n = add_node(16, false);
  Session s(*n.node, SessionId{0}, &changes);
  auto least = 1h + 0ms;
  for (int round = 0; round < 20 && least > 125ms; round++) {  // the machine may be slow in some of them
    ASSERT_TRUE(s.serve(0).ok());  // the next look for dead peers is a quarter of a second away
    changes.then = [&] {
      MappedPool::of(*pool).table().view.fetch_add(2);
      n.node->ring();
    };
    const auto began = std::chrono::steady_clock::now();
    ASSERT_TRUE(s.serve(10'000).ok());
    EXPECT_FALSE(changes.then);
    least = std::min(least,
                     std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - began));
  }
  EXPECT_LT(least, 125ms);
}

// coherence.peers-reached-first.  A process that cannot map a peer is refused its page, and leaves what it is asked to
// those that can.
TEST_F(Members, AProcessThatCannotReachAPeerIsRefusedAndTakesNoRequests) {
  struct Late : Interrupts {
    bool pending() noexcept override { return std::chrono::steady_clock::now() > end; }
    std::chrono::steady_clock::time_point end = std::chrono::steady_clock::now() + 60s;
  } late;
  TestNode n0(*pool, NodeId{0}, 16), n1(*pool, NodeId{1}, 16);  // not sharing a mapping
  const PageId fetched = page(3), asked_for = page(4);
  struct Told {
    std::atomic<int> stage, hits;
  };
  auto* told = new (mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) Told{};
  {
    Session s0(*n0.node, SessionId{0}, &late), s1(*n1.node, SessionId{0}, &late);
    Line& l1 = n1.line(s1, fetched);  // no node need be asked for it
    Line& l0 = n0.line(s0, asked_for);
    Line& m0 = n0.line(s0, fetched);
    // UBSan looks at an object's type through a pipe, for which the child has no descriptor: what was seen before the
    // fork is known.
    Line& other = n1.line(s1, page(5));
    ASSERT_TRUE(s1.lock_shared(other, page(5)).ok());
    s1.unlock_shared(other);
    const pid_t child = fork();
    if (child == 0) {
      const rlimit none{0, 0};
      if (setrlimit(RLIMIT_NOFILE, &none) != 0) _exit(1);
      Session s(*n0.node, SessionId{1}, &late);
      const Status refused = s.lock_shared(m0, fetched);
      if (refused || refused.error() != Errc::kNoMemory) _exit(2);
      told->stage = 1;
      while (told->stage == 1 && !late.pending())
        if (s.try_lock_exclusive(l0, asked_for)) {
          told->hits++;
          s.unlock_exclusive(l0);
        }
      _exit(0);
    }
    n0.start();
    n1.start();
    ASSERT_TRUE(gcl_test::eventually([&] { return told->stage == 1 || late.pending(); }));
    ASSERT_TRUE(s1.lock_exclusive(l1, fetched).ok());
    s1.unlock_exclusive(l1);
    Line& k1 = n1.line(s1, asked_for);
    for (int i = 0; i < 200 || told->hits < 1000; i++) {
      ASSERT_TRUE(s0.lock_exclusive(l0, asked_for).ok()) << i;
      s0.unlock_exclusive(l0);
      ASSERT_TRUE(s1.lock_exclusive(k1, asked_for).ok()) << i;
      s1.unlock_exclusive(k1);
    }
    told->stage = 2;
    int status;
    waitpid(child, &status, 0);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << WEXITSTATUS(status);
    EXPECT_FALSE(n0.node->fenced()) << n0.node->fence_reason();
  }
  n0.stop(), n1.stop();
}

// Processes on one pool: increments lose nothing, and every node leaves in order.
TEST_F(Members, ProcessesOnOnePoolLoseNoIncrement) {
  constexpr int kProcesses = 3, kHot = 4;
  constexpr uint64_t kEnough = 1000;
  void* shared = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  auto* ready = new (shared) std::atomic<int>(0);
  auto* done = new (static_cast<char*>(shared) + 64) std::atomic<uint64_t>(0);
  pid_t children[kProcesses];
  for (int c = 0; c < kProcesses; c++) {
    children[c] = fork();
    if (children[c] != 0) continue;
    Problem why;
    auto mine = LocalPool::open(files(), &why);
    if (!mine.ok()) _exit(1);
    auto joined = Node::join(**mine, NodeId{uint8_t(c)}, kArena, &why, shm_transport());
    if (!joined.ok()) _exit(2);
    Node& node = **joined;
    TestDirectory directory(kPages);
    node.set_upcalls(&directory, nullptr);
    pid_t worker = fork();  // the message worker is a process of its own
    if (worker == 0) {
      struct Stop : Interrupts {
        static void on(int) { wanted() = true; }
        static std::atomic<bool>& wanted() {
          static std::atomic<bool> w{false};
          return w;
        }
        bool pending() noexcept override { return wanted(); }
      } stop;
      for (int k = 0; k < kHot; k++) directory.at(page(uint64_t(k))) = &node.line(uint32_t(k));
      signal(SIGTERM, Stop::on);
      Session s(node, SessionId{kWorkerSession}, &stop);
      while (!stop.pending())
        if (!s.serve(50)) _exit(3);
      _exit(0);
    }
    Session s(node, SessionId{0}, nullptr);
    for (int k = 0; k < kHot; k++) {
      Line& line = node.line(uint32_t(k));
      const PageId its = page(uint64_t(k));
      EXPECT_TRUE(s.assign(line, its, [&] { directory.at(its) = &line; }).ok());
    }
    ready->fetch_add(1);
    while (ready->load() < kProcesses) usleep(100);  // all at once
    const auto end = std::chrono::steady_clock::now() + 1s;
    const auto going_on = [&] {
      const auto now = std::chrono::steady_clock::now();
      return now < end || (done->load() <= kEnough && now < end + 60s);
    };
    for (int i = 0; going_on(); i++) {
      PageId p = page(uint64_t(i % kHot));
      Line& l = node.line(uint32_t(i % kHot));
      if (i % 3 == 0) {
        if (!s.lock_shared(l, p)) _exit(4);
        s.unlock_shared(l);
      }
      if (!s.lock_exclusive(l, p)) _exit(5);
      write_word(node, l, read_word(node, l) + 1);
      s.unlock_exclusive(l);
      done->fetch_add(1);
    }
    kill(worker, SIGTERM);
    int status;
    waitpid(worker, &status, 0);
    bool last;
    if (!node.leave(s, &last, &why)) {
      fprintf(stderr, "%s\n", why.text);
      _exit(6);
    }
    _exit(0);
  }
  for (pid_t c : children) {
    int status;
    waitpid(c, &status, 0);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  }
  EXPECT_EQ(LocalPool::inspect(files(), &problem), LocalPool::Condition::kClean) << problem.text;
  reopen();
  TestNode& n = add_node(16, false);
  Session s(*n.node, SessionId{0}, nullptr);
  uint64_t sum = 0;
  for (uint64_t k = 0; k < kHot; k++) {
    Line& l = n.line(s, page(k));
    ASSERT_TRUE(s.lock_shared(l, page(k)).ok());
    sum += read_word(*n.node, l);
    s.unlock_shared(l);
  }
  EXPECT_EQ(sum, done->load());
  EXPECT_GT(sum, kEnough);
}

}  // namespace coherence
