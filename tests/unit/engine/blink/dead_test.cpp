// Dead entries leave before VACUUM comes.
#include <atomic>
#include <optional>
#include <random>
#include <set>
#include <thread>

#include "extension/engine/blink/erase.hpp"
#include "tests/support/cluster_fixture.hpp"
#include "tests/support/longer.hpp"
#include "tests/unit/engine/blink/crowd.hpp"
#include "tests/unit/engine/blink/keys.hpp"
#include "tests/unit/engine/blink/sound.hpp"

namespace {

using namespace engine::blink;  // NOLINT
using engine::Tid;
using gcl_test::kNodes;
using gcl_test::kThreads;
using gcl_test::put;
using gcl_test::Search;
using gcl_test::TestComparator;
using gcl_test::TestKey;

using gcl_test::tid_of;

class DeadEntriesLeave : public ::testing::Test {
 protected:
  DeadEntriesLeave() : cluster_({.nodes = 1, .frames = 256}), session_(cluster_.session(0)) {
    tree_.emplace(*Tree::open(cluster_.pool(0), *session_, *Tree::create(cluster_.pool(0), *session_)));
  }
  Tree& tree() { return *tree_; }
  gcl_test::Cluster cluster_;
  std::unique_ptr<bufmgr::Session> session_;
  std::optional<Tree> tree_;
  TestComparator compare_;
};

// All rows are of one kind, but for those said to live.
class Probe final : public UniqueProbe {
 public:
  explicit Probe(ProbeResult result) : result_(result) {}
  Result<ProbeResult> probe(const Entry& entry) override {
    ++probes;
    return live.valid() && entry.tid == live ? ProbeResult::kConflict : result_;
  }
  uint64_t probes = 0;
  Tid live;

 private:
  ProbeResult result_;
};

TEST_F(DeadEntriesLeave, AUniqueCheckDoesNotMeetThemAgainAndAgain) {
  constexpr uint64_t kTimes = 3000;
  const TestKey key{7, "key"};
  Probe dead(ProbeResult::kDead);
  for (uint64_t i = 0; i < kTimes; ++i) {
    auto done = put(tree(), *session_, compare_, key, tid_of(i), Unique::kCheck, &dead);
    ASSERT_TRUE(done.ok() && done->inserted);
  }
  EXPECT_LE(dead.probes, kTimes * kEraseMin);  // else kTimes * kTimes / 2
  EXPECT_LE(sound(tree(), *session_).entries, kEraseMin);
  EXPECT_EQ(sound(tree(), *session_).pages, 1u);
}

TEST_F(DeadEntriesLeave, ThoseThatSomebodyMaySeeStay) {
  constexpr uint64_t kTimes = 600;  // more than a leaf
  const TestKey key{7, "key"};
  Probe free(ProbeResult::kFree);
  for (uint64_t i = 0; i < kTimes; ++i)
    ASSERT_TRUE(put(tree(), *session_, compare_, key, tid_of(i), Unique::kCheck, &free)->inserted);
  EXPECT_EQ(sound(tree(), *session_).entries, kTimes);
}

// Several leaves of one key, of other keys beside it: what goes is what was judged, wherever the conflict lies.
TEST_F(DeadEntriesLeave, NothingElseGoesWithThemAndAConflictIsFoundAllTheSame) {
  constexpr uint64_t kEach = 1500;
  const TestKey keys[] = {{6, "left"}, {7, "key"}, {8, "right"}};
  Probe none(ProbeResult::kFree);
  for (uint64_t i = 0; i < 3 * kEach; ++i)
    ASSERT_TRUE(put(tree(), *session_, compare_, keys[i % 3], tid_of(i), Unique::kNo, nullptr)->inserted);
  Probe dead(ProbeResult::kDead);
  dead.live = tid_of(1 + 3 * (kEach - 10));
  auto refused = put(tree(), *session_, compare_, keys[1], tid_of(9000), Unique::kCheck, &dead);
  ASSERT_TRUE(refused.ok());
  EXPECT_FALSE(refused->inserted);
  EXPECT_EQ(refused->conflict, dead.live);
  // Before the conflict: all but what were too few in their leaf.
  const uint64_t entries = sound(tree(), *session_).entries;
  EXPECT_GE(entries, 2 * kEach + 10);
  EXPECT_LT(entries, 2 * kEach + 10 + 2 * kEraseMin);
  for (const TestKey* key : {&keys[0], &keys[2]}) {
    const Search search{key};
    auto scan = std::make_unique<Scan>(tree(), *session_, compare_);
    scan->reset({.low = {&search, true, true}, .high = {&search, true, true}});
    uint64_t seen = 0;
    Entry entry;
    for (auto more = scan->prev(entry); more.ok() && *more; more = scan->prev(entry)) ++seen;
    EXPECT_EQ(seen, kEach);
  }
}

// A scan during which entries go sees the others once, in both directions.
TEST_F(DeadEntriesLeave, AScanThatStandsInTheirLeafGoesOn) {
  constexpr uint64_t kEach = 2000;
  const TestKey dying{7, "key"}, staying{7, "kez"};
  for (uint64_t i = 0; i < kEach; ++i) {
    ASSERT_TRUE(put(tree(), *session_, compare_, dying, tid_of(2 * i)).ok());
    ASSERT_TRUE(put(tree(), *session_, compare_, staying, tid_of(2 * i + 1)).ok());
  }
  auto scan = std::make_unique<Scan>(tree(), *session_, compare_);
  scan->reset({});
  Entry entry;
  uint64_t stayed = 0;
  for (uint64_t i = 0; i < kEach + kEach / 2; ++i) {
    ASSERT_TRUE(*scan->next(entry));
    stayed += gcl_test::KeyView(entry.key).key() == staying;
  }
  Probe dead(ProbeResult::kDead);
  ASSERT_TRUE(put(tree(), *session_, compare_, dying, tid_of(90000), Unique::kCheck, &dead)->inserted);
  EXPECT_LT(sound(tree(), *session_).entries, kEach + 100);
  auto back = std::make_unique<Scan>(*scan);
  for (auto more = scan->next(entry); more.ok() && *more; more = scan->next(entry))
    stayed += gcl_test::KeyView(entry.key).key() == staying;
  EXPECT_EQ(stayed, kEach);
  stayed = kEach / 2 - 1;
  for (auto more = back->prev(entry); more.ok() && *more; more = back->prev(entry))
    if (gcl_test::KeyView(entry.key).key() == staying) --stayed;
  EXPECT_EQ(stayed, 0u);
}

// Rows whose newest version alone lives.
class Newest final : public DeadJudge {
 public:
  Result<bool> dead_to_all(Tid tid) override {
    ++looks;
    return !live.contains(tid);
  }
  std::set<Tid> live;
  uint64_t looks = 0;
};

TEST_F(DeadEntriesLeave, BeforeALeafIsSplitSoThatUpdatesDoNotMakeTheTreeGrow) {
  constexpr uint64_t kRows = 300, kUpdates = 20000;
  std::mt19937 random(5);
  Newest rows;
  std::vector<Tid> at(kRows);
  for (uint64_t n = 0; n < kUpdates; ++n) {
    const uint64_t row = random() % kRows;
    rows.live.erase(at[row]);
    at[row] = tid_of(n);
    rows.live.insert(at[row]);
    const TestKey key{random() % 1000, "value"};
    const Search search{&key};
    const auto image = key.image();
    auto done = tree().insert(*session_, compare_, &search, image, at[row], Unique::kNo, nullptr, &rows);
    ASSERT_TRUE(done.ok() && done->inserted);
  }
  const CheckReport report = sound(tree(), *session_);
  EXPECT_LE(report.pages, 8u);  // else more than 60
  EXPECT_LE(rows.looks, 4 * kUpdates);
  std::set<Tid> there;
  auto scan = std::make_unique<Scan>(tree(), *session_, compare_);
  scan->reset({});
  Entry entry;
  for (auto more = scan->next(entry); more.ok() && *more; more = scan->next(entry)) there.insert(entry.tid);
  for (const Tid tid : rows.live) EXPECT_TRUE(there.contains(tid));
}

TEST_F(DeadEntriesLeave, OfALeafThatLivesOnlyASampleIsLookedAt) {
  constexpr uint64_t kRows = 5000;
  Newest rows;
  for (uint64_t n = 0; n < kRows; ++n) {
    rows.live.insert(tid_of(n));
    const TestKey key{n * 7919 % kRows, "value"};
    const Search search{&key};
    ASSERT_TRUE(tree().insert(*session_, compare_, &search, key.image(), tid_of(n), Unique::kNo, nullptr, &rows).ok());
  }
  const CheckReport report = sound(tree(), *session_);
  EXPECT_EQ(report.entries, kRows);
  EXPECT_GT(rows.looks, 0u);
  EXPECT_LE(rows.looks, report.pages * 5);  // one probe for many inserts
}

// What a scan has found is erased where that costs no other session anything, or is worth it.
TEST(DeadEntriesScan, TakesALeafFromOthersOnlyForMany) {
  gcl_test::Cluster cluster({.nodes = 2, .frames = 64});
  auto one = cluster.session(0), two = cluster.session(1);
  const PageId meta = *Tree::create(cluster.pool(0), *one);
  Tree here = *Tree::open(cluster.pool(0), *one, meta), there = *Tree::open(cluster.pool(1), *two, meta);
  TestComparator compare;
  for (uint64_t n = 0; n < 150; ++n) ASSERT_TRUE(put(here, *one, compare, {n, "key"}, tid_of(n)).ok());
  DeadEntries dead;
  uint64_t next = 0;  // the first that is still there
  auto find = [&](const Tree& tree, bufmgr::Session& session, uint32_t count) {
    Scan scan(tree, session, compare);
    scan.reset({});
    Entry entry;
    for (uint32_t i = 0; i < count; ++i) {
      EXPECT_TRUE(*scan.next(entry));
      EXPECT_EQ(entry.tid, tid_of(next + i));
      if (i == 0) dead.begin(scan.leaf(), scan.leaf_version());
      dead.add(entry.tid);
    }
  };
  // The page is the first node's alone.
  find(here, *one, kEraseMin - 1);
  EXPECT_EQ(*here.forget(*one, dead), 0u);
  find(here, *one, kEraseMin);
  EXPECT_EQ(*here.forget(*one, dead), kEraseMin);
  next += kEraseMin;
  // Both read it.
  find(there, *two, kEraseShared - 1);
  EXPECT_EQ(*there.forget(*two, dead), 0u);
  find(here, *one, kEraseShared - 1);
  EXPECT_EQ(*here.forget(*one, dead), 0u);
  DeadEntries late;
  find(here, *one, kEraseShared);
  late = dead;
  find(there, *two, kEraseShared);
  EXPECT_EQ(*there.forget(*two, dead), kEraseShared);
  next += kEraseShared;
  EXPECT_EQ(*here.forget(*one, late), 0u);  // it is no longer here
  find(here, *one, kEraseMin);
  EXPECT_EQ(sound(here, *one).entries, 150 - next);
  EXPECT_EQ(*here.forget(*one, late), 0u);  // here, but not as it was read
  cluster.end(0, std::move(one));
  cluster.end(1, std::move(two));
}

// Three nodes take keys and leave them, all day: each key has one owner at a time, and its past does not pile up.
TEST(DeadEntriesCluster, OneKeyHasOneOwnerWhileTheDeadAreErased) {
  constexpr int kKeys = 5;
  constexpr uint64_t kEach = 1500;
  enum Row : int { kRunning, kLive, kDead };
  gcl_test::Cluster cluster({.nodes = kNodes, .frames = 192});
  PageId meta;
  {
    auto session = cluster.session(0);
    meta = *Tree::create(cluster.pool(0), *session);
    cluster.end(0, std::move(session));
  }
  std::vector<std::atomic<int>> rows(kThreads * kEach);
  std::atomic<int> owners[kKeys] = {};
  std::atomic<uint64_t> taken{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      auto session = cluster.session(t % kNodes);
      Tree tree = *Tree::open(cluster.pool(t % kNodes), *session, meta);
      TestComparator compare;
      class Lives final : public UniqueProbe {
       public:
        explicit Lives(std::vector<std::atomic<int>>& all) : all_(all) {}
        Result<ProbeResult> probe(const Entry& entry) override {
          ++probes;
          const int row = all_[gcl_test::number_of(entry.tid)].load();
          if (row == kRunning) std::this_thread::yield();
          return row == kDead ? ProbeResult::kDead : row == kLive ? ProbeResult::kConflict : ProbeResult::kAgain;
        }
        uint64_t probes = 0;

       private:
        std::vector<std::atomic<int>>& all_;
      } probe(rows);
      std::mt19937 random(gcl_test::seed(t));
      for (uint64_t i = 0; i < kEach; ++i) {
        const uint64_t n = kEach * t + i, key = random() % kKeys;
        auto done = put(tree, *session, compare, {key, "key"}, tid_of(n), Unique::kCheck, &probe);
        ASSERT_TRUE(done.ok());
        if (done->inserted) {
          ASSERT_EQ(owners[key].fetch_add(1), 0);
          rows[n] = kLive;
          if (random() % 4 == 0) std::this_thread::yield();
          owners[key].fetch_sub(1);
          taken.fetch_add(1);
        }
        rows[n] = kDead;
      }
      EXPECT_EQ(session->guards_held(), 0);
      cluster.end(t % kNodes, std::move(session));
    });
  for (auto& thread : threads) thread.join();
  EXPECT_GT(taken, kKeys * 100u);
  auto session = cluster.session(1);
  const CheckReport report = sound(*Tree::open(cluster.pool(1), *session, meta), *session);
  EXPECT_LT(report.entries, kKeys * (kEraseMin + kThreads) * 2u);
  cluster.end(1, std::move(session));
}

}  // namespace
