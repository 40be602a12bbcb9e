// What counts as a death, and what does not (node.certain-death-only).
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <string>

#include "cluster.hpp"
#include "coherence/base/os.hpp"
#include "coherence/region/node_table.hpp"
#include "coherence/transport/shm/deaths.hpp"
#include "coherence/transport/shm/mapped_pool.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/processes.hpp"

namespace coherence {
namespace {

using Is = ProcessSight::Is;

// As a process whose table of descriptors is full.
void open_nothing_more() {
  const rlimit none{0, 0};
  CHILD_VERIFY(setrlimit(RLIMIT_NOFILE, &none) == 0);
}

pid_t ended_process() {
  const pid_t pid = gcl_test::child([] {});
  EXPECT_TRUE(gcl_test::ended_well(pid));
  return pid;
}

// A process that lives until it is let go.
class Living {
 public:
  Living() {
    EXPECT_EQ(pipe(ends_), 0);
    pid_ = gcl_test::child([this] {
      close(ends_[1]);
      char c;
      CHILD_VERIFY(read(ends_[0], &c, 1) == 0);
    });
    close(ends_[0]);
  }
  ~Living() {
    close(ends_[1]);
    EXPECT_TRUE(gcl_test::ended_well(pid_));
  }
  pid_t pid() const { return pid_; }
  // Ends, and stays a zombie until the destructor.
  void end() {
    kill(pid_, SIGCONT);
    close(ends_[1]);
    ends_[1] = -1;
    siginfo_t info;
    EXPECT_EQ(waitid(P_PID, id_t(pid_), &info, WEXITED | WNOWAIT), 0);
  }

 private:
  int ends_[2];
  pid_t pid_;
};

}  // namespace

TEST(ProcessSight, ALivingProcessIsThereSinceATimeThatStays) {
  Living other;
  const ProcessSight seen = look_at_process(other.pid()), again = look_at_process(other.pid());
  EXPECT_EQ(seen.is, Is::kThere);
  EXPECT_NE(seen.start, 0u);
  EXPECT_EQ(seen.start, again.start);
}

TEST(ProcessSight, OneThatEndedIsGoneAndSoIsAZombie) {
  EXPECT_EQ(look_at_process(ended_process()).is, Is::kGone);
  Living other;
  other.end();
  EXPECT_EQ(look_at_process(other.pid()).is, Is::kGone);
}

TEST(ProcessSight, AProcessThatHasNoDescriptorLeftDoesNotKnow) {
  Living other;
  const pid_t gone = ended_process();
  EXPECT_TRUE(gcl_test::ended_well(gcl_test::child([&] {
    open_nothing_more();
    CHILD_VERIFY(look_at_process(other.pid()).is == Is::kUnknown);
    CHILD_VERIFY(look_at_process(gone).is == Is::kGone);  // the kernel says so all the same
  })));
}

// What hidepid=2 looks like: no entry for a process that lives.
TEST(ProcessSight, AProcThatShowsNoEntryIsNoDeath) {
  Living other;
  EXPECT_EQ(look_at_process(other.pid(), "/proc/self/task").is, Is::kUnknown);
  EXPECT_EQ(look_at_process(ended_process(), "/proc/self/task").is, Is::kGone);
  EXPECT_EQ(look_at_process(0).is, Is::kUnknown);
  EXPECT_EQ(look_at_process(-1).is, Is::kUnknown);
}

class Deaths : public ClusterTest {
 protected:
  NodeEntry& entry(int n) { return MappedPool::of(*pool).table().node[n]; }
  bool is_dead(int n) { return died(MappedPool::of(*pool), NodeId{uint8_t(n)}); }
  // A node of a process of its own, which leaves its entry behind it.
  pid_t dead_joiner(int n) {
    const pid_t pid = gcl_test::child([&] {
      Problem problem;
      auto node = Node::join(*pool, NodeId{uint8_t(n)}, {.frames = 16, .sessions_max = 16}, &problem, shm_transport());
      CHILD_VERIFY(node.ok());
    });
    EXPECT_TRUE(gcl_test::ended_well(pid));
    return pid;
  }
};

TEST_F(Deaths, WhereTheProcessCannotBeSeenTheLockDecides) {
  add_node(16, false);
  add_node(16, false);
  EXPECT_TRUE(gcl_test::ended_well(gcl_test::child([&] {
    open_nothing_more();  // neither the process can be seen nor the lock
    CHILD_VERIFY(!is_dead(0) && !is_dead(1));
  })));
  entry(0).pid_start = 0;  // the joining process could not see itself
  EXPECT_FALSE(is_dead(0));
  entry(1).pid_start = entry(1).pid_start + 1;  // the number is another process's by now
  EXPECT_TRUE(is_dead(1));
  entry(1).pid_namespace = 0;  // no numbers to compare, and the lock is held
  EXPECT_FALSE(is_dead(1));
  dead_joiner(2);
  EXPECT_TRUE(is_dead(2));
  entry(2).pid = getpid();  // as if it could not be told: its lock is free
  entry(2).pid_start = 0;
  EXPECT_TRUE(is_dead(2));
}

// The message worker looks for dead peers every quarter of a second.
TEST_F(Deaths, AWorkerWithAFullTableOfDescriptorsFencesNoNodeThatLives) {
  add_node(16, false);
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t worker = gcl_test::child([&] {
    Problem problem;
    auto mine = LocalPool::open(files(), &problem);
    CHILD_VERIFY(mine.ok());
    auto node = Node::join(**mine, NodeId{1}, {.frames = 16, .sessions_max = 16}, &problem, shm_transport());
    CHILD_VERIFY(node.ok());
    TestDirectory directory(kPages);
    (*node)->set_upcalls(&directory, nullptr);
    Session session(**node, SessionId{0}, nullptr);
    open_nothing_more();
    CHILD_VERIFY(write(ready[1], "", 1) == 1);
    for (;;)
      if (!session.serve(50)) _exit(7);
  });
  char c;
  ASSERT_EQ(read(ready[0], &c, 1), 1);
  const auto beats = [&] { return entry(1).heartbeat_ns.load(); };
  uint64_t last = beats();
  for (int looks = 0; looks < 3; looks++) {  // each comes after a heartbeat, and before the next one
    ASSERT_TRUE(gcl_test::eventually([&] { return beats() != last || waitpid(worker, nullptr, WNOHANG) != 0; }));
    last = beats();
  }
  EXPECT_FALSE(MappedPool::of(*pool).table().fence.load()) << MappedPool::of(*pool).table().fence_reason;
  kill(worker, SIGKILL);
  EXPECT_TRUE(gcl_test::eventually([&] { return is_dead(1); }));
  waitpid(worker, nullptr, 0);
  close(ready[0]), close(ready[1]);
}

// A tool that runs out of descriptors does not know; it says what is amiss, and fences no node.
TEST_F(Deaths, AToolWithoutDescriptorsDoesNotTakeThePoolForUnclean) {
  add_node(16, false);
  // UBSan looks at an object's type through a pipe, for which the child has no descriptor: what was seen before the
  // fork is known.
  Problem none;
  EXPECT_EQ(LocalPool::inspect(files(), &none), LocalPool::Condition::kInUse) << none.text;
  for (rlim_t free = 0; free < 8; free++) {
    EXPECT_TRUE(gcl_test::ended_well(gcl_test::child([&] {
      const int next = open("/dev/null", O_RDONLY);
      const rlimit some{rlim_t(next) + free, rlim_t(next) + free};
      close(next);
      CHILD_VERIFY(setrlimit(RLIMIT_NOFILE, &some) == 0);
      Problem problem;
      const LocalPool::Condition seen = LocalPool::inspect(files(), &problem);
      CHILD_VERIFY(seen == LocalPool::Condition::kInUse ||
                   (seen == LocalPool::Condition::kDamaged && strstr(problem.text, strerror(EMFILE))));
      CHILD_VERIFY(free < 4 || seen == LocalPool::Condition::kInUse);
    }))) << free;
    EXPECT_FALSE(MappedPool::of(*pool).table().fence.load()) << MappedPool::of(*pool).table().fence_reason;
  }
}

}  // namespace coherence
