// SpinGuard: one at a time, and a waiter for a holder that does not run takes no processor from others.
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include <algorithm>
#include <thread>
#include <vector>

#include "cluster.hpp"
#include "coherence/base/os.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/processes.hpp"

namespace coherence {

struct SharedLock {
  std::atomic<uint32_t> lock, fence;
  std::atomic<int> held, waiters[4];  // thread ids
  uint64_t count;                     // under the lock
};

// Shared with children.
class SpinGuards : public testing::Test {
 protected:
  static constexpr int kWaiters = 4;
  ~SpinGuards() override { munmap(shared_, sizeof(SharedLock)); }

  // A process that has the lock and is stopped.
  pid_t stopped_holder() {
    const pid_t pid = gcl_test::child([this] {
      SpinGuard guard(shared_->lock);
      shared_->held = 1;
      raise(SIGSTOP);
      shared_->count++;
    });
    int status;
    EXPECT_EQ(waitpid(pid, &status, WUNTRACED), pid);
    EXPECT_TRUE(WIFSTOPPED(status) && shared_->held == 1);
    return pid;
  }
  void start_waiters(const std::atomic<uint32_t>* fence) {
    for (int i = 0; i < kWaiters; i++)
      threads_.emplace_back([this, i, fence] {
        shared_->waiters[i] = int(syscall(SYS_gettid));
        SpinGuard guard(shared_->lock, fence);
        if (fence == nullptr) shared_->count++;
        shared_->waiters[i] = 0;
      });
  }
  void join() {
    for (auto& t : threads_) t.join();
    threads_.clear();
  }
  bool all_sleep() const {
    return std::ranges::all_of(shared_->waiters, [](const auto& waiter) { return gcl_test::thread_sleeps(waiter); });
  }
  static uint64_t processor_ns() {
    timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return uint64_t(t.tv_sec) * 1'000'000'000 + uint64_t(t.tv_nsec);
  }

  SharedLock* shared_ =
      new (mmap(nullptr, sizeof(SharedLock), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) SharedLock{};
  std::vector<std::thread> threads_;
};

TEST_F(SpinGuards, AWaiterForAStoppedHolderSleeps) {
  const pid_t holder = stopped_holder();
  start_waiters(nullptr);
  EXPECT_TRUE(gcl_test::eventually([&] { return all_sleep(); }));
  const uint64_t before = processor_ns();
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  EXPECT_LT(processor_ns() - before, 50'000'000u) << "of four waiters in half a second";
  for (const auto& waiter : shared_->waiters) EXPECT_NE(waiter, 0) << "is in";
  kill(holder, SIGCONT);
  join();
  EXPECT_TRUE(gcl_test::ended_well(holder));
  EXPECT_EQ(shared_->count, 1u + kWaiters);
  EXPECT_EQ(shared_->lock, 0u);
}

TEST_F(SpinGuards, AFenceEndsTheWaitForAHolderThatDied) {
  const pid_t holder = stopped_holder();
  kill(holder, SIGKILL);
  waitpid(holder, nullptr, 0);
  start_waiters(&shared_->fence);
  EXPECT_TRUE(gcl_test::eventually([&] { return all_sleep(); }));
  shared_->fence = 1;
  join();
}

TEST_F(SpinGuards, OneIsInAtATimeAndNobodySleepsOn) {
  constexpr uint64_t kEach = 50'000;
  for (int i = 0; i < kWaiters; i++)
    threads_.emplace_back([this] {
      for (uint64_t n = 0; n < kEach; n++) {
        SpinGuard guard(shared_->lock);
        if (n % 64 == 0) std::this_thread::yield();  // loses its processor, others come to sleep
        shared_->count++;
      }
    });
  join();
  EXPECT_EQ(shared_->count, kEach * kWaiters);
  EXPECT_EQ(shared_->lock, 0u);
}

}  // namespace coherence
