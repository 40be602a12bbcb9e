// Nodes that are processes die by SIGKILL, and a survivor repairs what they had (repair.*).
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>

#include <algorithm>

#include "cluster.hpp"
#include "coherence/region/node_table.hpp"
#include "coherence/transport/shm/mapped_pool.hpp"
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
  static constexpr int kMaxMs = 60000;  // the process that gives it may have failed
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
  pid_t without_memory = 0;  // the process that has none
  Result<bool> repair(PageId page, std::byte* bytes, NodeSet dead, Memory&, Problem*) noexcept override {
    if (getpid() == without_memory) return Errc::kNoMemory;
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
  std::unique_ptr<TestNode> make(int n) {
    auto node = std::make_unique<TestNode>(*pool, NodeId{uint8_t(n)}, 16);
    node->node->set_repair(&redo);
    return node;
  }
  std::unique_ptr<TestNode> join(int n) {
    auto node = make(n);
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
  const auto early = Node::join(*pool, NodeId{1}, {.frames = 16, .sessions_max = 16}, &problem, shm_transport());
  ASSERT_FALSE(early.ok());
  EXPECT_EQ(early.error(), Errc::kUnrepaired) << problem.text;
  sweep(mine, session, NodeId{1});
  next.go();
  EXPECT_TRUE(next.ended_well());
  EXPECT_EQ(read_page(mine, session, written), 44u);
}

// repair.no-memory-is-a-crash
TEST_F(Repair, AProcessWithoutMemoryEndsAloneAndAnotherNodeRepairsThePage) {
  const PageId at = page(3);
  Signal ready;
  gcl_test::WaitingChild victim([&] {
    const auto node = join(1);
    Session there(*node->node, SessionId{0}, nullptr);
    change(*node, there, at, 42);
    ready.give();
    pause();
  });
  gcl_test::WaitingChild poor([&] {
    const auto node = join(2);
    redo.without_memory = getpid();
    Session there(*node->node, SessionId{0}, nullptr);
    ready.give();
    (void)read_page(*node, there, at);
  });
  TestNode& mine = survivor();
  Session session(*mine.node, SessionId{0}, nullptr);
  victim.go();
  ready.await();
  poor.go();
  ready.await();
  victim.kill();
  EXPECT_EQ(poor.ended_by(), SIGABRT);
  EXPECT_EQ(read_page(mine, session, at), 42u);
  EXPECT_FALSE(mine.node->fenced()) << mine.node->fence_reason();
}

// A process of the node that is left when its server is gone may still be in the middle of a change, as one that is
// stopped there would be.  Nobody meets it in its page.
TEST_F(Repair, NothingIsRepairedWhileAProcessOfTheNodeIsLeft) {
  const PageId at = page(3);
  std::atomic<uint64_t>& left = redo.of(WordRedo::kNodes - 1, page(0));  // the process, which is not ours to wait for
  Signal ready, go_on, done;
  gcl_test::WaitingChild server([&] {
    const auto node = make(1);
    Session there(*node->node, SessionId{1}, nullptr);  // of the process that is forked, which allocates nothing
    // Before there is a worker thread: a lock that it held meanwhile would be held in the copy for good.
    if (fork() == 0) {
      left = uint64_t(getpid());
      change(*node, there, at, 42, false);
      ready.give();
      go_on.await();
      CHILD_VERIFY(read_word(*node->node, node->line(there, at)) == 42);
      redo.of(1, at) = 42;
      done.give();
      pause();
    }
    node->start();
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
  const uint64_t beats =
      MappedPool::of(*pool).table().node[0].heartbeat_ns.load();  // the worker looks for the dead as it beats
  ASSERT_TRUE(gcl_test::eventually(
      [&] { return MappedPool::of(*pool).table().node[0].heartbeat_ns.load() >= beats + 600'000'000; }));
  EXPECT_TRUE(mine.node->repairable().empty());
  EXPECT_TRUE(mine.node->info(NodeId{1}).serves());
  EXPECT_FALSE(came.load());
  go_on.give();
  done.await();
  kill(pid_t(left.load()), SIGKILL);
  waits.join();
  EXPECT_FALSE(mine.node->fenced()) << mine.node->fence_reason();
}

// A pool whose deaths are recorded (repair.recorded-first).
class RecordedRepair : public Repair {
 protected:
  static constexpr NodeId kVictim{5};
  RecordedRepair() { records_deaths = true; }
  // A life of the victim, which owns a page, with redo that the pool lacks.
  gcl_test::WaitingChild life(PageId at, uint64_t value, Signal& ready) {
    return gcl_test::WaitingChild([this, at, value, &ready] {
      const auto node = join(kVictim.value);
      Session there(*node->node, SessionId{0}, nullptr);
      change(*node, there, at, value);
      there.unlock_exclusive(node->line(there, at));
      ready.give();
      pause();
    });
  }
  // Looks for the dead as it beats; quiesces.
  void wait_for_beats(int n) {
    const uint64_t beats = MappedPool::of(*pool).table().node[n].heartbeat_ns.load();
    ASSERT_TRUE(gcl_test::eventually(
        [&, n] { return MappedPool::of(*pool).table().node[n].heartbeat_ns.load() >= beats + 600'000'000; }));
  }
  bool eventually_unrecorded(TestNode& node) {
    return gcl_test::eventually([&] { return node.node->unrecorded() == NodeSet::of(kVictim); });
  }
  bool record(TestNode& node, uint64_t incarnation) {  // another process may have the pool's lock
    return gcl_test::eventually([&] { return node.node->recorded(kVictim, incarnation); });
  }
  void expect_untouched(TestNode& node, PageId at) {
    EXPECT_EQ(node.node->unrecorded(), NodeSet::of(kVictim));
    EXPECT_TRUE(node.node->repairable().empty());
    EXPECT_EQ(node.node->info(kVictim).state, MemberState::kDead);
    EXPECT_EQ(pool->peek_latch(at).owner(), kVictim);
    EXPECT_EQ(node.count(Counter::kRepairs), 0u);
  }
};

TEST_F(RecordedRepair, NothingIsRepairedBeforeTheDeathIsRecorded) {
  const PageId at = page(3);
  Signal ready;
  gcl_test::WaitingChild victim = life(at, 42, ready);
  TestNode& mine = survivor();
  Session session(*mine.node, SessionId{0}, nullptr);
  TestInterrupts interrupts;
  victim.go();
  ready.await();
  EXPECT_TRUE(mine.node->unrecorded().empty());
  const uint64_t incarnation = mine.node->info(kVictim).incarnation;
  EXPECT_TRUE(record(mine, incarnation)) << "it lives";
  victim.kill();
  ASSERT_TRUE(eventually_unrecorded(mine)) << "what was said of it alive is nothing";
  std::atomic<bool> came{false};
  std::thread waits([&] {
    Session other(*mine.node, SessionId{1}, &interrupts);
    EXPECT_EQ(int(other.lock_shared(mine.line(other, at), at).error()), int(Errc::kInterrupted));
    came = true;
  });
  wait_for_beats(0);
  expect_untouched(mine, at);
  EXPECT_FALSE(came.load());
  interrupts.raised = true;
  waits.join();

  for (const uint64_t another : {incarnation - 1, incarnation + 1}) EXPECT_TRUE(record(mine, another));
  (void)mine.node->swept(kVictim, incarnation);  // too early
  wait_for_beats(0);
  expect_untouched(mine, at);

  std::thread reads([&] { EXPECT_EQ(read_page(mine, session, at), 42u); });
  EXPECT_TRUE(record(mine, incarnation));
  reads.join();
  EXPECT_TRUE(mine.node->unrecorded().empty());
  EXPECT_TRUE(record(mine, incarnation)) << "by another survivor, too";
  sweep(mine, session, kVictim);
  EXPECT_TRUE(mine.node->unrecorded().empty());
}

TEST_F(RecordedRepair, TheNextDeathOfTheNodeIsRecordedAgain) {
  const PageId at = page(3);
  Signal ready;
  gcl_test::WaitingChild lives[] = {life(at, 42, ready), life(at, 43, ready), life(at, 44, ready)};
  TestNode& mine = survivor();
  Session session(*mine.node, SessionId{0}, nullptr);
  uint64_t before = 0, value = 42;
  for (gcl_test::WaitingChild& victim : lives) {
    victim.go();
    ready.await();
    const uint64_t incarnation = mine.node->info(kVictim).incarnation;
    EXPECT_GT(incarnation, before);
    victim.kill();
    ASSERT_TRUE(eventually_unrecorded(mine)) << value;
    EXPECT_TRUE(record(mine, before)) << "a process that looked long ago";
    wait_for_beats(0);
    EXPECT_TRUE(mine.node->repairable().empty()) << value;
    EXPECT_EQ(pool->peek_latch(at).owner(), kVictim);
    EXPECT_TRUE(record(mine, incarnation));
    EXPECT_EQ(read_page(mine, session, at), value++);
    sweep(mine, session, kVictim);
    before = incarnation;
  }
}

// One of them records, in any order with quiescing.
TEST_F(RecordedRepair, OneOfTheSurvivorsRecordsForAll) {
  const PageId at = page(3);
  Signal ready;
  gcl_test::WaitingChild victim = life(at, 42, ready);
  TestNode& mine = survivor();
  victim.go();
  ready.await();
  TestNode& other = add_node(16, false);  // its worker does not run yet: it is not quiescent
  other.node->set_repair(&redo);
  victim.kill();
  ASSERT_TRUE(eventually_unrecorded(mine));
  EXPECT_TRUE(record(mine, mine.node->info(kVictim).incarnation));
  EXPECT_TRUE(other.node->unrecorded().empty());
  wait_for_beats(0);
  EXPECT_TRUE(mine.node->repairable().empty()) << "repair.quiesced-first";
  other.start();
  ASSERT_TRUE(gcl_test::eventually([&] { return other.node->repairable().has(kVictim); }));
  Session session(*other.node, SessionId{0}, nullptr);
  EXPECT_EQ(read_page(other, session, at), 42u);
}

// An operation whose caller was interrupted waits for a dead node.  No other node is there to record its death.
TEST_F(RecordedRepair, ALeaverRecordsTheDeathThatItsOperationsWaitFor) {
  class Recorder final : public DeathRecorder {
   public:
    explicit Recorder(Node& node) : node_(node) {}
    void record() noexcept override {
      EXPECT_EQ(node_.unrecorded(), NodeSet::of(kVictim));
      (void)node_.recorded(kVictim, node_.info(kVictim).incarnation);
    }

   private:
    Node& node_;
  };
  const PageId at = page(3);
  Signal ready;
  gcl_test::WaitingChild victim = life(at, 42, ready);
  TestNode& mine = survivor();
  victim.go();
  ready.await();
  victim.kill();
  ASSERT_TRUE(eventually_unrecorded(mine));
  TestInterrupts interrupts;
  interrupts.raised = true;
  {
    Session cancelled(*mine.node, SessionId{0}, &interrupts);
    EXPECT_EQ(int(cancelled.lock_shared(mine.line(cancelled, at), at).error()), int(Errc::kInterrupted));
  }
  EXPECT_EQ(mine.count(Counter::kAbandoned), 1u);
  mine.stop();
  Session session(*mine.node, SessionId{1}, nullptr);
  Recorder recorder(*mine.node);
  bool last = true;
  Problem problem;
  EXPECT_TRUE(mine.node->leave(session, &last, &problem, &recorder).ok()) << problem.text;
  EXPECT_FALSE(last) << "a dead node is not swept";
  EXPECT_EQ(pool->peek_latch(at), LatchWord::free());
}

TEST_F(Repair, WhereDeathsAreNotRecordedNoneIsUnrecorded) {
  const PageId at = page(3);
  gcl_test::WaitingChild victim([&] {
    const auto node = join(1);
    pause();
  });
  TestNode& mine = survivor();
  victim.go();
  ASSERT_TRUE(gcl_test::eventually([&] { return mine.node->info(NodeId{1}).serves(); }));
  victim.kill();
  ASSERT_TRUE(gcl_test::eventually([&] { return mine.node->repairable().has(NodeId{1}); }));
  EXPECT_TRUE(mine.node->unrecorded().empty());
  Session session(*mine.node, SessionId{0}, nullptr);
  EXPECT_EQ(read_page(mine, session, at), 0u);
}

}  // namespace
}  // namespace coherence
