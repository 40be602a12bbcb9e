// The process that has a node's sockets: it begins, fails and ends as the process that forked it is told; and what
// waits for it ends when it is killed (worker.gone-ends-waits).
#include "coherence/transport/tcp/process/worker_process.hpp"

#include <signal.h>
#include <sys/wait.h>

#include "loops.hpp"

namespace coherence::tcp {
namespace {

constexpr uint64_t kStartNs = 30'000'000'000;

class TcpWorkerProcess : public testing::Test {
 protected:
  // The worker runs until it is stopped.
  WorkerProcess::Body runs_until_stopped() {
    return [this](const WorkerProcess::Stop& stop) {
      Problem problem;
      auto worker = gcl_test::must(
          NetworkWorker::make(port(), {.self = net::Who::node(NodeId{3}, 1)}, net::Credentials::plain(), log, &problem),
          problem);
      status().set_phase(WorkerStatus::kReady);
      while (!stop.load()) worker->run_once(1000);
      return true;
    };
  }
  Port& port() { return port_.port(); }
  WorkerStatus& status() { return *reinterpret_cast<WorkerStatus*>(bytes_.at()); }
  bool ends(pid_t pid) {
    return gcl_test::eventually([&] { return kill(pid, 0) != 0 && errno == ESRCH; });
  }

  Lines log;
  Problem problem;

 private:
  gcl_test::SharedPort port_{4};
  gcl_test::SharedBytes bytes_{sizeof(WorkerStatus)};

 protected:
  WorkerProcess process{status()};
};

TEST_F(TcpWorkerProcess, BeginsAndEndsAsItIsTold) {
  ASSERT_TRUE(process.start(port().worker_wakeup().fd(), runs_until_stopped(), kStartNs, &problem)) << problem.text;
  const pid_t pid = status().pid.load();
  EXPECT_EQ(kill(pid, 0), 0);
  process.stop();
  EXPECT_NE(kill(pid, 0), 0) << "it is collected";
  process.stop();  // there is none
  ASSERT_TRUE(process.start(port().worker_wakeup().fd(), runs_until_stopped(), kStartNs, &problem)) << "another one";
  process.stop();
}

TEST_F(TcpWorkerProcess, SaysWhyItFails) {
  const auto fails = [this](const WorkerProcess::Stop&) {
    snprintf(status().problem, sizeof status().problem, "no way");
    status().set_phase(WorkerStatus::kFailed);
    return false;
  };
  EXPECT_EQ(process.start(port().worker_wakeup().fd(), fails, kStartNs, &problem).error(), Errc::kSystem);
  EXPECT_STREQ(problem.text, "no way");
}

TEST_F(TcpWorkerProcess, IsNotWaitedForWithoutEnd) {
  const auto waits = [this](const WorkerProcess::Stop& stop) {
    snprintf(status().problem, sizeof status().problem, "no connection to memory node 0");
    while (!stop.load()) usleep(1000);
    return true;
  };
  EXPECT_EQ(process.start(port().worker_wakeup().fd(), waits, 50'000'000, &problem).error(), Errc::kUnreached);
  EXPECT_STREQ(problem.text, "no connection to memory node 0");
  EXPECT_NE(kill(status().pid.load(), 0), 0);
}

// worker.dies-with-its-node
TEST_F(TcpWorkerProcess, EndsWithTheProcessThatForkedIt) {
  const pid_t parent = fork();
  if (parent == 0) {
    (void)process.start(port().worker_wakeup().fd(), runs_until_stopped(), kStartNs, &problem);
    pause();
    _exit(0);
  }
  ASSERT_TRUE(gcl_test::eventually([&] { return status().phase.load() == WorkerStatus::kReady; }));
  const pid_t pid = status().pid.load();
  kill(parent, SIGKILL);
  waitpid(parent, nullptr, 0);
  EXPECT_TRUE(ends(pid));
}

// Whether the worker has taken the batch or not.
TEST_F(TcpWorkerProcess, ThatIsKilledLeavesNobodyWaiting) {
  for (const bool taken : {true, false}) {
    gcl_test::SharedPort fresh(4);
    const pid_t worker = fork();
    if (worker == 0) {
      fresh.port().worker_wakeup().set_worker();
      status().set_phase(WorkerStatus::kStarting);
      while (!taken || !fresh.port().take_posted([](PortPlace&, uint32_t) {})) usleep(1000);
      status().set_phase(WorkerStatus::kReady);
      for (;;) pause();
    }
    ASSERT_TRUE(gcl_test::eventually([&] { return status().phase.load() == WorkerStatus::kStarting; }));
    Counters counters{};
    TcpMemory memory(fresh.port(), counters);
    Batch batch(kZero), later(kZero);
    batch.load(PoolAddress::at(kZero, 0)), later.load(PoolAddress::at(kZero, 0));
    memory.post(batch);
    if (taken) {
      ASSERT_TRUE(gcl_test::eventually([&] { return status().phase.load() == WorkerStatus::kReady; }));
    }
    for (int i = 0; i < 300; i++) memory.poll();
    EXPECT_FALSE(batch.done()) << "it lives";
    kill(worker, SIGKILL);
    EXPECT_TRUE(gcl_test::eventually([&] {
      memory.poll();
      return batch.done();
    }));
    EXPECT_EQ(batch.state.load(), BatchState::kUnknown);
    memory.post(later);
    EXPECT_FALSE(memory.wait(later)) << "what is posted later, too";
    waitpid(worker, nullptr, 0);
    status().phase.store(WorkerStatus::kNone);
  }
}

}  // namespace
}  // namespace coherence::tcp
