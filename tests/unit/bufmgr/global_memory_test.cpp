// The interface for users without PostgreSQL: its rules, words, errors.
#include "bufmgr/global_memory.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/eventually.hpp"

namespace bufmgr {
namespace {

class GlobalMemoryTest : public ::testing::Test {
 protected:
  GlobalMemoryTest() {
    static int serial = 0;
    const char* base = ::access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    path_ = std::string(base) + "/gcl-test-memory-" + std::to_string(getpid()) + "-" + std::to_string(serial++);
    Problem problem;
    EXPECT_TRUE(GlobalMemory::create(path_.c_str(), {.bytes = 16 << 20, .nodes_max = 3}, &problem)) << problem.text;
  }
  ~GlobalMemoryTest() override { GlobalMemory::remove(path_.c_str()); }
  std::unique_ptr<GlobalMemory> join(int node, uint32_t frames = 256) {
    Problem problem;
    auto memory = GlobalMemory::join(path_.c_str(), {.node = {uint8_t(node)}, .frames = frames}, &problem);
    EXPECT_TRUE(memory) << problem.text;
    return memory ? memory.take() : nullptr;
  }
  std::string path_;
};

TEST_F(GlobalMemoryTest, WhatOneNodeChangesTheOthersSee) {
  auto one = join(0), two = join(1);
  GlobalThread a(*one), b(*two);
  const PageId line = *a.allocate();
  for (uint64_t i = 0; i < 50; ++i) {
    {
      XLock lock(i % 2 ? a : b, line);
      ASSERT_TRUE(lock);
      EXPECT_EQ(lock.get<uint64_t>(kLineBytes - 8), i);
      lock.set(kLineBytes - 8, i + 1);
    }
    SLock lock(i % 2 ? b : a, line);
    ASSERT_TRUE(lock);
    EXPECT_EQ(lock.get<uint64_t>(kLineBytes - 8), i + 1);
    EXPECT_EQ(lock.get<uint64_t>(0), 0u);
  }
}

TEST_F(GlobalMemoryTest, ACopyIsOfOneMoment) {
  auto one = join(0), two = join(1);
  GlobalThread setup(*one);
  const PageId line = *setup.allocate();
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    GlobalThread thread(*two);
    for (uint64_t i = 1; !stop.load(); ++i) {
      XLock lock(thread, line);
      ASSERT_TRUE(lock);
      lock.set(0, i);
      lock.set(4000, i);
    }
  });
  uint64_t last = 0;
  int changes = 0;  // that were seen
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(gcl_test::kPatienceMs);
  for (int i = 0; i < 2000 || (changes < 20 && std::chrono::steady_clock::now() < until); ++i) {
    std::vector<std::byte> bytes(4008);
    ASSERT_TRUE(setup.copy(line, 0, bytes.data(), uint32_t(bytes.size())).ok());
    uint64_t first, second;
    memcpy(&first, bytes.data(), 8);
    memcpy(&second, bytes.data() + 4000, 8);
    ASSERT_EQ(first, second);
    ASSERT_GE(first, last);
    changes += first > last;
    last = first;
  }
  EXPECT_GE(changes, 20);
  stop.store(true);
  writer.join();
}

TEST_F(GlobalMemoryTest, MoreLinesThanFrames) {
  auto one = join(0, 64);
  GlobalThread thread(*one);
  std::vector<PageId> lines;
  for (uint64_t i = 0; i < 500; ++i) {
    lines.push_back(*thread.allocate());
    XLock lock(thread, lines.back());
    ASSERT_TRUE(lock);
    lock.set(8, i);
  }
  for (uint64_t i = 0; i < lines.size(); ++i) {
    const SLock lock(thread, lines[i]);
    ASSERT_TRUE(lock);
    EXPECT_EQ(lock.get<uint64_t>(8), i);
  }
}

TEST_F(GlobalMemoryTest, WordsAreEverybodys) {
  auto one = join(0), two = join(1);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      GlobalThread thread(t % 2 ? *one : *two);
      for (int i = 0; i < 1000; ++i) EXPECT_TRUE(thread.fetch_add(kUserWords - 1, 2));
    });
  for (std::thread& thread : threads) thread.join();
  GlobalThread thread(*two);
  EXPECT_EQ(*thread.load(kUserWords - 1), 8000u);
  EXPECT_EQ(*thread.compare_and_swap(0, 1, 5), 0u);
  EXPECT_EQ(*thread.compare_and_swap(0, 0, 5), 0u);
  EXPECT_EQ(*thread.load(0), 5u);
}

TEST_F(GlobalMemoryTest, ErrorsAreSaid) {
  Problem problem;
  EXPECT_EQ(GlobalMemory::create(path_.c_str(), {}, &problem).error(), coherence::Errc::kExists);
  EXPECT_EQ(GlobalMemory::join((path_ + "-not").c_str(), {.node = {0}}, &problem).error(), coherence::Errc::kNotFound);
  auto one = join(0);
  EXPECT_EQ(GlobalMemory::join(path_.c_str(), {.node = {0}}, &problem).error(), coherence::Errc::kBusy);
  GlobalThread thread(*one);
  EXPECT_EQ(XLock(thread, PageId{uint64_t{1} << 40}).error(), coherence::Errc::kNotFound);
  const PageId line = *thread.allocate();
  EXPECT_TRUE(thread.free(line).ok());
  EXPECT_EQ(thread.free(line).error(), coherence::Errc::kCorrupt);
  std::vector<PageId> all;
  for (;;) {
    auto more = thread.allocate();
    if (!more) {
      EXPECT_EQ(more.error(), coherence::Errc::kNoSpace);
      break;
    }
    all.push_back(*more);
  }
  EXPECT_GT(all.size(), 1000u);
  for (const PageId each : all) EXPECT_TRUE(thread.free(each).ok());
  EXPECT_TRUE(thread.allocate().ok());
}

TEST_F(GlobalMemoryTest, ANodeThatDiesFencesThePool) {
  const pid_t child = fork();
  if (child == 0) {
    auto two = join(1);
    GlobalThread thread(*two);
    if (!thread.fetch_add(0, 1)) _exit(1);
    const PageId line = *thread.allocate();
    const XLock lock(thread, line);
    _exit(lock ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  Problem problem;
  auto one = GlobalMemory::join(path_.c_str(), {.node = {0}}, &problem);
  if (!one) {
    EXPECT_EQ(one.error(), coherence::Errc::kFenced) << problem.text;
    return;
  }
  GlobalThread thread(**one);
  EXPECT_EQ(thread.allocate().error(), coherence::Errc::kFenced);
}

using GlobalMemoryDeathTest = GlobalMemoryTest;

TEST_F(GlobalMemoryDeathTest, OneLockAtATime) {
  EXPECT_DEATH(
      {
        auto one = join(0);
        GlobalThread thread(*one);
        const PageId line = *thread.allocate();
        const PageId other = *thread.allocate();
        const SLock first(thread, line);
        const SLock second(thread, other);
      },
      "guards_held");
}

}  // namespace
}  // namespace bufmgr
