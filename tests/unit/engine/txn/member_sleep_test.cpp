// When a node's member worker sleeps, and what wakes it (txn.sleepers-are-woken).
#include <gtest/gtest.h>

#include <thread>

#include "tests/unit/engine/engine_fixture.hpp"

namespace {

using namespace engine_test;  // NOLINT: a test's own namespace

// As the member worker does when nothing moves.
bool sleeps(Worker& member) {
  while (*member->tick()) {
  }
  return !*member->fall_asleep() && !*member->tick() && *member->fall_asleep();
}

TEST(MemberSleep, ASnapshotWakesTheMemberOfItsNodeOnce) {
  Engine engine({.cluster = {.nodes = 2}, .tickers = false});
  Worker member(engine, 0), one(engine, 0), two(engine, 0), other(engine, 1);
  ASSERT_TRUE(sleeps(member));
  EXPECT_FALSE(member->roused());
  const uint64_t before = engine.wakeups(0);
  (void)other.snapshot();
  EXPECT_EQ(engine.wakeups(0), before);
  (void)one.snapshot();
  EXPECT_EQ(engine.wakeups(0), before + 1);
  EXPECT_TRUE(member->roused());
  (void)two.snapshot();
  EXPECT_EQ(engine.wakeups(0), before + 1) << "it is awake";
  ASSERT_TRUE(member->stay_awake().ok());
  (void)one.snapshot();
  EXPECT_EQ(engine.wakeups(0), before + 1);
}

TEST(MemberSleep, ASleeperThatIsBehindIsWokenByAMemberThatIsNot) {
  Engine engine({.cluster = {.nodes = 2}, .tickers = false});
  Worker member(engine, 0), writer(engine, 0), asleep(engine, 1);
  ASSERT_TRUE(*asleep->tick());
  ASSERT_TRUE(sleeps(asleep));
  const uint64_t before = engine.wakeups(1);
  ASSERT_TRUE(member->tick().ok());
  EXPECT_EQ(engine.wakeups(1), before) << "nothing has moved";
  ASSERT_TRUE(writer->id_for_write().ok());
  writer.commit();
  ASSERT_TRUE(*member->tick());
  EXPECT_EQ(engine.wakeups(1), before + 1);
  ASSERT_TRUE(*asleep->tick()) << "the clock has moved";
  ASSERT_TRUE(asleep->stay_awake().ok());
  ASSERT_TRUE(member->tick().ok());
  EXPECT_EQ(engine.wakeups(1), before + 1) << "it is not behind";
  ASSERT_TRUE(writer->id_for_write().ok());
  writer.commit();
  ASSERT_TRUE(member->tick().ok());
  EXPECT_EQ(engine.wakeups(1), before + 1) << "it is awake, and comes by itself";
}

TEST(MemberSleep, ASessionThatMovesTheClockWakesTheMemberOfItsNode) {
  Engine engine({.cluster = {.nodes = 2}, .tickers = false});
  Worker member(engine, 0), writer(engine, 0), other(engine, 1);
  ASSERT_TRUE(writer->id_for_write().ok());
  ASSERT_TRUE(other->id_for_write().ok());
  for (const bool commits : {true, false}) {
    ASSERT_TRUE(sleeps(member));
    const uint64_t before = engine.wakeups(0);
    const auto move = [&](Worker& worker) {
      if (commits) return (void)worker.commit();
      EXPECT_TRUE(worker->pass_moment().ok());
    };
    move(other);
    EXPECT_EQ(engine.wakeups(0), before) << "its own node's member is told";
    move(writer);
    EXPECT_EQ(engine.wakeups(0), before + 1);
    ASSERT_TRUE(*member->tick());
    ASSERT_TRUE(member->stay_awake().ok());
  }
}

TEST(MemberSleep, ASnapshotThatKeptTheBoundBackWakesTheMemberWhenItGoes) {
  Engine engine({.cluster = {.nodes = 2}, .tickers = false});
  Worker member(engine, 0), reader(engine, 0), other(engine, 1);
  const Cts old = reader.snapshot().ts;
  ASSERT_TRUE(other->pass_moment().ok());
  ASSERT_TRUE(sleeps(member));
  const uint64_t before = engine.wakeups(0);
  reader->set_oldest(old);
  EXPECT_EQ(engine.wakeups(0), before) << "it is there";
  reader->set_oldest(std::nullopt);
  EXPECT_EQ(engine.wakeups(0), before + 1);
  reader->set_oldest(std::nullopt);
  EXPECT_EQ(engine.wakeups(0), before + 1);
  ASSERT_TRUE(member->stay_awake().ok());
  (void)reader.snapshot();
  ASSERT_TRUE(sleeps(member));
  reader->set_oldest(std::nullopt);
  EXPECT_EQ(engine.wakeups(0), before + 1) << "it kept nothing back";
}

TEST(MemberSleep, ASessionThatWaitsForTheHorizonWakesThoseThatKeepItBack) {
  Engine engine({.cluster = {.nodes = 3}, .tickers = false});
  Worker session(engine, 0), awake(engine, 1), asleep(engine, 2);
  for (Worker* member : {&awake, &asleep}) ASSERT_TRUE((*member)->tick().ok());
  ASSERT_TRUE(sleeps(asleep));
  const Cts moment = *session->pass_moment();
  const uint64_t one = engine.wakeups(1), two = engine.wakeups(2);
  EXPECT_LE(*session->refresh_horizon(), moment);
  EXPECT_EQ(engine.wakeups(1) + engine.wakeups(2), one + two) << "no moment is waited for";
  EXPECT_LE(*session->refresh_horizon(moment), moment);
  EXPECT_EQ(engine.wakeups(1), one + 1);
  EXPECT_EQ(engine.wakeups(2), two + 1);
  ASSERT_TRUE(asleep->tick().ok());
  EXPECT_LE(*session->refresh_horizon(moment), moment);
  EXPECT_EQ(engine.wakeups(2), two + 1) << "it keeps nothing back";
  ASSERT_TRUE(awake->tick().ok());
  EXPECT_GT(*session->refresh_horizon(moment), moment);
}

TEST(MemberSleep, ANodeThatJoinsIsAwake) {
  Engine engine({.cluster = {.nodes = 2}, .tickers = false});
  {
    Worker asleep(engine, 1);
    ASSERT_TRUE(sleeps(asleep));
  }
  engine.restart(1);
  Worker member(engine, 0), writer(engine, 0);
  const uint64_t before = engine.wakeups(1);
  ASSERT_TRUE(writer->id_for_write().ok());
  writer.commit();
  ASSERT_TRUE(member->tick().ok());
  EXPECT_EQ(engine.wakeups(1), before);
}

// Members that sleep as soon as the clock stands still, for as long as nobody wakes them: a wakeup that is lost is a
// horizon that does not come.
TEST(MemberSleep, NoWakeupIsLost) {
  Engine engine({.cluster = {.nodes = 2}, .tickers = false});
  std::atomic<bool> stop{false};
  std::atomic<int> sleeps{0}, lost{0};
  std::vector<std::thread> members;
  for (int n = 0; n < 2; ++n)
    members.emplace_back([&, n] {
      Worker member(engine, n);
      while (!stop.load()) {
        const uint64_t seen = engine.wakeups(n);
        if (*member->tick() || member->roused()) {
          ASSERT_TRUE(member->stay_awake().ok());
          continue;
        }
        if (!*member->fall_asleep()) continue;
        ++sleeps;
        if (!engine.sleep_until_woken(n, seen)) ++lost;
      }
    });
  {
    Worker writer(engine, 0), reader(engine, 1);
    for (int round = 0; round < 300; ++round) {
      if (round % 3 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(round % 5));
      if (round % 2 == 0) (void)reader.snapshot();
      ASSERT_TRUE(writer->id_for_write().ok());
      const Cts cts = writer.commit();
      if (round % 2 == 0) reader->set_oldest(std::nullopt);
      // The bounds come without anything else.
      EXPECT_TRUE(gcl_test::eventually(
          [&] { return engine.shared(0).bound >= cts.value && engine.shared(1).bound >= cts.value; }));
    }
  }
  stop.store(true);
  for (int n = 0; n < 2; ++n) engine.wake(n);
  for (auto& member : members) member.join();
  EXPECT_EQ(lost.load(), 0);
  EXPECT_GT(sleeps.load(), 20);
}

}  // namespace
