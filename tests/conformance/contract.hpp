// The fixtures of the Memory contract's tests.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <functional>
#include <thread>

#include "transport.hpp"

namespace conformance {

class MemoryContract : public testing::TestWithParam<TransportKind> {
 protected:
  static constexpr MemoryNodeId kZero{0}, kOne{1};
  static PoolAddress at(uint64_t offset, MemoryNodeId node = kZero) { return PoolAddress::at(node, offset); }

  void SetUp() override {
    transport = GetParam().make();
    me = transport->user();
  }
  void TearDown() override {
    me.reset();
    transport.reset();
  }
  Memory& memory() { return me->memory(); }
  std::byte* local(uint32_t offset = 0) { return me->local() + offset; }
  static uint64_t word(const std::byte* p) {
    uint64_t v;
    memcpy(&v, p, 8);
    return v;
  }
  static void set_word(std::byte* p, uint64_t v) { memcpy(p, &v, 8); }

  // Posts and waits; a transport without failures knows the outcome.
  void run(Batch& batch) { run(*me, batch); }
  static void run(User& user, Batch& batch) { EXPECT_TRUE(user.memory().run(batch)); }
  void write_word(PoolAddress to, uint64_t value) {
    set_word(local(kLocalBytes - 8), value);
    Batch batch(to.node());
    batch.write(to, local(kLocalBytes - 8), 8);
    run(batch);
  }

  // `act(user, i)` in `count` threads at once, each with a user of its own.
  void in_threads(int count, const std::function<void(User&, int)>& act) {
    std::vector<std::thread> threads;
    for (int i = 0; i < count; i++)
      threads.emplace_back([&, i] {
        auto mine = transport->user();
        act(*mine, i);
      });
    for (auto& t : threads) t.join();
  }
  // Likewise in processes; started, not awaited.
  pid_t in_process(const std::function<void(User&)>& act) {
    pid_t child = fork();
    if (child != 0) return child;
    {
      auto mine = transport->user();
      act(*mine);
    }
    _exit(testing::Test::HasFailure() ? 1 : 0);
  }
  static bool ended_well(pid_t child) {
    int status = 0;
    return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }

  std::unique_ptr<Transport> transport;
  std::unique_ptr<User> me;
};

// Of transports whose connections can break.
class BrokenConnection : public MemoryContract {};

inline std::string kind_name(const testing::TestParamInfo<TransportKind>& info) { return info.param.name; }

}  // namespace conformance
