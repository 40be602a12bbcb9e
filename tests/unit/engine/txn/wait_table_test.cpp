// Waits and the tags that stand for them: no tag is kept without waiters, and no session waits for a tag that is not
// there.
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "extension/engine/txn/wait_table.hpp"

namespace engine {

// A lock manager and a status log; `meanwhile` runs once, in the worker's next read of the log.
struct FakeTags final : WaitTags {
  bool take(uint64_t id) override {
    std::lock_guard hold(mutex);
    if (in_the_way.contains(id)) return false;
    unsound += ++held[id] > 1;
    return true;
  }
  void let_go(uint64_t id) override {
    std::lock_guard hold(mutex);
    unsound += !held.contains(id);
    if (--held[id] == 0) held.erase(id);
  }
  bool watch(uint64_t id) override {
    if (auto run = std::exchange(meanwhile, nullptr)) run();
    std::lock_guard hold(mutex);
    return running.contains(id);
  }
  void wake(uint32_t session) override { woken = session; }
  bool holds(uint64_t id) {
    std::lock_guard hold(mutex);
    return held.contains(id);
  }

  std::mutex mutex;
  std::map<uint64_t, int> held;
  std::set<uint64_t> running, in_the_way;
  std::function<void()> meanwhile;
  std::atomic<uint32_t> woken{0};
  int unsound = 0;
};

class WaitTableTest : public ::testing::Test {
 protected:
  std::unique_ptr<WaitTable> table_ = std::make_unique<WaitTable>();
  FakeTags tags_;
  WaitKeeper keeper_{*table_, tags_};
};

TEST_F(WaitTableTest, ATagIsHeldFromTheWaitToTheEnd) {
  tags_.running = {7};
  const int at = table_->request(7, 42);
  EXPECT_EQ(table_->state(at), WaitState::kWanted);
  EXPECT_FALSE(keeper_.tend());
  EXPECT_EQ(table_->state(at), WaitState::kHeld);
  EXPECT_EQ(tags_.woken, 42u);
  EXPECT_EQ(table_->request(7, 43), at);  // one tag for all its waiters
  EXPECT_FALSE(keeper_.tend()) << "the end of the transaction wakes";
  EXPECT_TRUE(tags_.holds(7));
  tags_.running.clear();
  (void)keeper_.tend();
  EXPECT_EQ(table_->state(at), WaitState::kEnded);
  EXPECT_FALSE(tags_.holds(7));
  EXPECT_FALSE(table_->leave(at));
  EXPECT_FALSE(table_->leave(at));
  EXPECT_FALSE(keeper_.tend());
}

// Waits without an entry would hide deadlocks: as many sessions as a node can have wait for as many transactions, while
// the tags of their last waits are not released yet.
TEST_F(WaitTableTest, ThereIsAnEntryForEverySessionThatANodeCanHave) {
  constexpr auto kSessions = uint32_t(coherence::kSessionsMax);
  std::vector<int> last;
  for (uint32_t s = 0; s < kSessions; ++s) {
    tags_.running.insert({1 + s, 100'000 + s});
    last.push_back(table_->request(1 + s, s));
    ASSERT_GE(last.back(), 0) << s;
  }
  EXPECT_FALSE(keeper_.tend());
  EXPECT_EQ(tags_.held.size(), kSessions);
  std::vector<int> next;
  for (uint32_t s = 0; s < kSessions; ++s) {
    EXPECT_TRUE(table_->leave(last[s])) << "its tag is to be let go";
    next.push_back(table_->request(100'000 + s, s));
    ASSERT_GE(next.back(), 0) << s << " waits unseen";
  }
  EXPECT_FALSE(keeper_.tend());
  EXPECT_EQ(tags_.held.size(), kSessions) << "the old ones are gone";
  for (const int at : next) EXPECT_EQ(table_->state(at), WaitState::kHeld);
}

// The worker has taken the tag of a transaction whose waiter was cancelled; another waiter has the entry by now.
TEST_F(WaitTableTest, AnEntryReusedWhileTheWorkerTakesItsTagIsNotMarkedHeld) {
  tags_.running = {7, 8};
  const int at = table_->request(7, 1);
  tags_.meanwhile = [&] {
    table_->leave(at);
    EXPECT_EQ(table_->request(8, 2), at);
  };
  (void)keeper_.tend();
  EXPECT_EQ(table_->state(at), WaitState::kWanted);
  EXPECT_TRUE(tags_.held.empty());  // it would never be released
  (void)keeper_.tend();
  EXPECT_EQ(table_->state(at), WaitState::kHeld);
  EXPECT_TRUE(tags_.holds(8));
}

TEST_F(WaitTableTest, AnEntryReusedWhileItsTransactionEndsKeepsTheNewTag) {
  tags_.running = {8};
  const int at = table_->request(7, 1);
  tags_.meanwhile = [&] {
    table_->leave(at);
    EXPECT_EQ(table_->request(8, 2), at);
  };
  (void)keeper_.tend();
  EXPECT_EQ(table_->state(at), WaitState::kWanted);  // not kEnded: 8 runs
  EXPECT_TRUE(tags_.held.empty());
}

TEST_F(WaitTableTest, ATagThatNobodyWaitsForAnyMoreIsLetGo) {
  tags_.running = {7};
  const int at = table_->request(7, 1);
  (void)keeper_.tend();
  table_->leave(at);
  EXPECT_TRUE(tags_.holds(7));
  (void)keeper_.tend();  // though 7 runs on
  EXPECT_TRUE(tags_.held.empty());
  EXPECT_EQ(table_->request(9, 1), at);
}

// The worker comes back soon while a former waiter is in the way of a tag, and the waiter wakes it when it leaves.
TEST_F(WaitTableTest, AWaiterThatWasInTheWayOfATagWakesTheWorker) {
  tags_.running = {7};
  const int first = table_->request(7, 1);
  (void)keeper_.tend();
  tags_.running.clear();
  (void)keeper_.tend();
  ASSERT_EQ(table_->state(first), WaitState::kEnded);
  tags_.running = {7};
  tags_.in_the_way = {7};
  const int again = table_->request(7, 2);
  EXPECT_NE(again, first);
  EXPECT_TRUE(keeper_.tend());
  EXPECT_EQ(table_->state(again), WaitState::kWanted);
  tags_.in_the_way.clear();
  EXPECT_TRUE(table_->leave(first));
  EXPECT_FALSE(keeper_.tend());
  EXPECT_EQ(table_->state(again), WaitState::kHeld);
  EXPECT_TRUE(table_->leave(again));
}

TEST_F(WaitTableTest, ANewWorkerTakesTheTagsOfTheLast) {
  tags_.running = {7, 8};
  const int seven = table_->request(7, 1), eight = table_->request(8, 2);
  (void)keeper_.tend();
  table_->leave(eight);
  tags_.held.clear();  // they went with their process
  table_->forget_held();
  EXPECT_EQ(table_->state(seven), WaitState::kWanted);
  (void)keeper_.tend();
  EXPECT_TRUE(tags_.holds(7));
  EXPECT_FALSE(tags_.holds(8));
}

TEST_F(WaitTableTest, AFullTableIsSaid) {
  for (int i = 0; i < WaitTable::kEntries; ++i) EXPECT_GE(table_->request(uint64_t(i) + 1, 1), 0);
  EXPECT_EQ(table_->request(5000, 1), -1);
  EXPECT_GE(table_->request(5, 1), 0);
  table_->leave(3);
  EXPECT_EQ(table_->request(5000, 1), 3);
}

// Sessions that come, wait and leave at any moment, transactions that end at any moment.  A waiter has patience for so
// many rounds of the keeper, however long they take.
TEST_F(WaitTableTest, NoTagIsLeftAndNobodyIsHeldUp) {
  constexpr uint64_t kIds = 6, kRounds = 10000;
  for (uint64_t id = 1; id <= kIds; ++id) tags_.running.insert(id);
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> rounds{0};
  std::atomic<int> ended{0}, left{0}, stuck{0};
  std::vector<std::thread> sessions;
  for (uint32_t s = 0; s < 4; ++s) {
    sessions.emplace_back([&, s] {
      std::mt19937 random(s);
      while (!stop.load()) {
        const uint64_t id = 1 + random() % kIds;
        const int at = table_->request(id, s);
        const uint64_t last = rounds.load() + kRounds;
        const bool patient = random() % 3 != 0;
        for (auto turns = random() % 50; patient || turns > 0; --turns) {
          const bool late = rounds.load() > last;  // before the check of what they came to
          const WaitState now = table_->state(at);
          if (now == WaitState::kEnded) break;
          // What the lock manager would do: a tag that is not held lets the waiter pass.
          if (now == WaitState::kHeld && !tags_.holds(id)) break;
          if (late) {
            ++stuck;
            break;
          }
          std::this_thread::yield();
        }
        (table_->state(at) == WaitState::kEnded ? ended : left).fetch_add(1);
        table_->leave(at);
      }
    });
  }
  std::mt19937 random(99);
  const auto tend = [&] {
    (void)keeper_.tend();
    rounds.fetch_add(1);
    std::this_thread::yield();
  };
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(100);
  while ((ended.load() < 200 || left.load() < 200) && std::chrono::steady_clock::now() < until) {
    tend();
    std::lock_guard hold(tags_.mutex);
    const uint64_t id = 1 + random() % kIds;
    if (!tags_.running.erase(id)) tags_.running.insert(id);
  }
  {
    std::lock_guard hold(tags_.mutex);
    tags_.running.clear();
  }
  stop.store(true);
  std::atomic<bool> done{false};
  std::thread worker([&] {
    while (!done.load()) tend();
  });
  for (auto& session : sessions) session.join();
  done.store(true);
  worker.join();
  (void)keeper_.tend();  // the last to leave may have come behind the worker's last round
  EXPECT_FALSE(keeper_.tend());
  EXPECT_TRUE(tags_.held.empty());
  EXPECT_EQ(tags_.unsound, 0);
  EXPECT_GE(ended.load(), 200);
  EXPECT_GE(left.load(), 200);
  EXPECT_EQ(stuck.load(), 0);
}

}  // namespace engine
