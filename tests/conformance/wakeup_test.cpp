// What every Wakeup does: a process that counts, looks and sleeps loses no wakeup, and finds what was done before it
// (coherence/message/wakeup.hpp).
#include <atomic>
#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <utility>

#include "coherence/base/os.hpp"
#include "nodes.hpp"
#include "tests/support/longer.hpp"
#include "tests/support/processes.hpp"

namespace conformance {

using gcl_test::eventually;

class WakeupContract : public NodesContract {
 protected:
  static constexpr NodeId kWakes = kAsks, kSleeps = kAsked;
  static constexpr uint16_t kEvent = 3, kInstead = 5;
  static int rounds(int usual) { return gcl_test::by_one_thread(usual) * gcl_test::longer(); }

  std::atomic<uint32_t>& count(NodeId n, uint16_t event = kEvent) { return node(n).event(event).count; }
  // wakeup.count-look-sleep, with a bound that only a lost wakeup reaches: then false.
  bool sleeps_until(NodeId n, const std::function<bool()>& look) {
    constexpr uint32_t kBoundMs = gcl_test::kPatienceMs;
    for (;;) {
      const uint32_t seen = count(n).load(std::memory_order_acquire);
      if (look()) return true;
      const uint64_t until = monotonic_ns() + kBoundMs * 1'000'000ull;
      while (count(n).load(std::memory_order_acquire) == seen && monotonic_ns() < until)
        futex_wait(count(n), seen, kBoundMs);
      if (monotonic_ns() >= until) return false;
    }
  }
};

INSTANTIATE_TEST_SUITE_P(Transport, WakeupContract, testing::ValuesIn(wakeup_kinds()),
                         [](const auto& info) { return std::string(info.param.name); });

// wakeup.count-look-sleep, where each waits for what the other one does next.
TEST_P(WakeupContract, NoWakeupIsLostBetweenLookAndSleep) {
  const int turns = rounds(6000);
  std::atomic<int> turn{0};
  const auto takes_turns = [&](NodeId self, NodeId other, int first) {
    for (int i = first; i < turns; i += 2) {
      if (!sleeps_until(self, [&] { return turn.load(std::memory_order_relaxed) >= i; })) return false;
      turn.store(i + 1, std::memory_order_relaxed);
      wakes(self).wake(other, kEvent);
    }
    return true;
  };
  std::atomic<bool> other_is_done{false};
  std::thread other([&] { other_is_done = takes_turns(kSleeps, kWakes, 1); });
  EXPECT_TRUE(takes_turns(kWakes, kSleeps, 0)) << "turn " << turn.load();
  other.join();
  EXPECT_TRUE(other_is_done.load()) << "turn " << turn.load();
}

// All that sleep on the event, in each round.
TEST_P(WakeupContract, OneWakeupEndsTheSleepOfAll) {
  constexpr int kSleepers = 3;
  const int last = rounds(300);
  std::atomic<int> round{0}, saw[kSleepers] = {};
  std::atomic<bool> lost{false};
  std::vector<std::thread> sleepers;
  for (auto& mine : saw)
    sleepers.emplace_back([&] {
      for (int i = 1; i <= last && !lost; i++) {
        if (!sleeps_until(kSleeps, [&] { return round.load(std::memory_order_relaxed) >= i; })) lost = true;
        mine = i;
      }
    });
  for (int i = 1; i <= last && !lost; i++) {
    round.store(i, std::memory_order_relaxed);
    wakes(kWakes).wake(kSleeps, kEvent);
    while (!lost && (saw[0] < i || saw[1] < i || saw[2] < i)) std::this_thread::yield();
  }
  for (auto& sleeper : sleepers) sleeper.join();
  EXPECT_FALSE(lost.load()) << "round " << round.load();
}

// wakeup.none-is-lost.  Many may come as one, but none for what was done behind the one that came.
TEST_P(WakeupContract, TheLastOfManyIsNotForgotten) {
  constexpr int kBurst = 20;
  const int bursts = rounds(600);
  std::atomic<int> done{0}, saw{0};
  std::atomic<bool> lost{false};
  std::thread sleeper([&] {
    for (int i = 1; i <= bursts && !lost; i++) {
      lost = !sleeps_until(kSleeps, [&] { return done.load(std::memory_order_relaxed) >= i * kBurst; });
      saw = i;
    }
  });
  for (int i = 1; i <= bursts && !lost; i++) {
    for (int k = 0; k < kBurst; k++) {
      done.fetch_add(1, std::memory_order_relaxed);
      wakes(kWakes).wake(kSleeps, kEvent);
    }
    while (!lost && saw < i) std::this_thread::yield();
  }
  sleeper.join();
  EXPECT_FALSE(lost.load()) << "after " << done.load();
}

// wakeup.look-again, of a batch that is complete.
TEST_P(WakeupContract, AWokenProcessFindsTheBatchThatWasComplete) {
  const int last = rounds(300);
  std::atomic<int> saw{0};
  std::atomic<bool> lost{false};
  std::thread sleeper([&] {
    const auto looks = memory(kSleeps);
    for (int i = 1; i <= last && !lost; i++) {
      lost = !sleeps_until(kSleeps, [&] { return *looks->load(pool_word()) >= uint64_t(i); });
      saw = i;
    }
  });
  {
    const auto does = memory(kWakes);
    for (int i = 1; i <= last && !lost; i++) {
      EXPECT_TRUE(does->faa(pool_word(), 1).ok());
      wakes(kWakes).wake(kSleeps, kEvent);
      while (!lost && saw < i) std::this_thread::yield();
    }
  }
  sleeper.join();
  EXPECT_FALSE(lost.load()) << "after " << saw.load();
}

// wakeup.look-again, of a message.
TEST_P(WakeupContract, AWokenProcessFindsWhatWasSaidBefore) {
  const int last = rounds(300);
  for (int i = 1; i <= last; i++) {
    ask(uint64_t(i));
    wakes(kWakes).wake(kSleeps, kEvent);
    ASSERT_TRUE(sleeps_until(kSleeps, [&] { return receives(kSleeps); })) << "round " << i;
    PeerRequest request;
    ASSERT_TRUE(take(&request));
    (void)end(kAsked).reply(request, {.kind = ReplyKind::kDropped});
    ASSERT_TRUE(eventually([&] { return answer().is_reply(); }));
  }
}

TEST_P(WakeupContract, AForkedProcessIsWoken) {
  std::atomic<uint32_t>& attends = node(kSleeps).event(kEvent).attended;
  const pid_t sleeper = gcl_test::child([&] {
    bool looked = false;
    CHILD_VERIFY(sleeps_until(kSleeps, [&] {
      attends = 1;
      return std::exchange(looked, true);
    }));
  });
  EXPECT_TRUE(eventually([&] { return attends.load() == 1; }));
  wakes(kWakes).wake(kSleeps, kEvent);
  EXPECT_TRUE(gcl_test::ended_well(sleeper));
}

// --- which event, of which node

TEST_P(WakeupContract, AnEventIsOfItsNode) {
  wakes(kWakes).wake(kWakes, kEvent);
  EXPECT_EQ(count(kWakes).load(), 1u) << "the node's own is at home";
  wakes(kWakes).wake(kSleeps, kEvent);
  EXPECT_TRUE(eventually([&] { return count(kSleeps).load() >= 1; }));
  EXPECT_EQ(count(kWakes).load(), 1u);
  EXPECT_EQ(count(kSleeps, kInstead).load(), 0u);
}

TEST_P(WakeupContract, WhereNobodyAttendsAnotherIsWokenToo) {
  for (const NodeId n : {kWakes, kSleeps}) {
    wakes(kWakes).wake(n, kEvent, kInstead);
    EXPECT_TRUE(eventually([&] { return count(n).load() >= 1 && count(n, kInstead).load() >= 1; }));
    node(n).event(kEvent).attended = 1;
    const uint32_t before = count(n).load(), instead = count(n, kInstead).load();
    wakes(kWakes).wake(n, kEvent, kInstead);
    EXPECT_TRUE(eventually([&] { return count(n).load() > before; }));
    EXPECT_EQ(count(n, kInstead).load(), instead);
  }
}

// wakeup.none-is-lost, for the first event, for the last, and for one that is woken instead, at the same time.
TEST_P(WakeupContract, EventsAreWokenApart) {
  constexpr uint16_t kLast = kWakeupEvents - 1;
  for (int i = 0; i < 100; i++) {
    wakes(kWakes).wake(kSleeps, 0);
    wakes(kWakes).wake(kSleeps, kLast);
    wakes(kWakes).wake(kSleeps, kEvent);
    wakes(kWakes).wake(kSleeps, kEvent, kInstead);
  }
  for (const uint16_t event : {uint16_t{0}, kLast, kEvent, kInstead})
    EXPECT_TRUE(eventually([&] { return count(kSleeps, event).load() >= 1; })) << event;
}

// --- nodes that come and go

TEST_P(WakeupContract, ANodeThatIsNotThereIsLeftAlone) {
  wakes(kWakes).wake(kOther, kEvent);
  join(kOther);
  wakes(kWakes).wake(kOther, kInstead);
  EXPECT_TRUE(eventually([&] { return count(kOther, kInstead).load() >= 1; }));
  EXPECT_EQ(count(kOther).load(), 0u);
}

// wakeup.none-is-lost, as soon as the other one is in the pool, though nothing may reach it yet.
TEST_P(WakeupContract, ANewcomerIsWokenAtOnce) {
  for (int round = 0; round < 5; round++) {
    leave(kSleeps);
    enter(kSleeps);
    wakes(kWakes).wake(kSleeps, kEvent);
    (void)eventually([&] { return count(kSleeps).load() >= 1; }, std::chrono::milliseconds(50));
    begin(kSleeps);
    ASSERT_TRUE(eventually([&] { return count(kSleeps).load() >= 1; })) << "round " << round;
  }
}

// wakeup.workers-look
TEST_P(WakeupContract, WorkersLookAgainWhenMembersHaveChanged) {
  join(kOther);
  ArenaHeader& arena = *node(kSleeps).parts().arena;
  arena.sleeping = 1;
  const auto woken_since = [&](uint32_t before) { return eventually([&] { return arena.wakeup.load() != before; }); };
  for (int round = 0; round < 5; round++) {
    uint32_t before = arena.wakeup.load();
    leave(kOther);
    wakes(kWakes).ring_workers();
    EXPECT_TRUE(woken_since(before)) << "a leave, round " << round;
    before = arena.wakeup.load();
    join(kOther);
    wakes(kWakes).ring_workers();
    EXPECT_TRUE(woken_since(before)) << "a join, round " << round;
  }
}

}  // namespace conformance
