// Three nodes, two threads on each, one tree.
#include <chrono>
#include <optional>
#include <random>
#include <thread>

#include "tests/support/cluster_fixture.hpp"
#include "tests/support/longer.hpp"
#include "tests/unit/engine/blink/crowd.hpp"
#include "tests/unit/engine/blink/keys.hpp"
#include "tests/unit/engine/blink/sound.hpp"

namespace {

using namespace engine::blink;  // NOLINT
using gcl_test::kNodes;
using gcl_test::kThreads;
using gcl_test::put;
using gcl_test::SlowComparator;
using gcl_test::TestKey;
using gcl_test::tid_of;

class BlinkCluster : public ::testing::Test {
 protected:
  explicit BlinkCluster(uint32_t frames = 192) : cluster_({.nodes = kNodes, .frames = frames}) {
    auto session = cluster_.session(0);
    meta_ = *Tree::create(cluster_.pool(0), *session);
  }
  Tree open(int node, bufmgr::Session& session) { return *Tree::open(cluster_.pool(node), session, meta_); }

  // Runs body(thread, tree, session) on two threads of each node.
  template <class Body>
  void everywhere(const Body& body) {
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t)
      threads.emplace_back([this, t, &body] {
        auto session = cluster_.session(t % kNodes);
        Tree tree = open(t % kNodes, *session);
        body(t, tree, *session);
        EXPECT_EQ(session->guards_held(), 0);
        cluster_.end(t % kNodes, std::move(session));
      });
    for (auto& thread : threads) thread.join();
  }
  void expect_sound(uint64_t entries) {
    for (int node = 0; node < kNodes; ++node) {
      auto session = cluster_.session(node);
      const CheckReport report = sound(open(node, *session), *session);
      EXPECT_EQ(report.entries, entries);
      EXPECT_EQ(report.incomplete, 0u);
      cluster_.end(node, std::move(session));
    }
  }

  gcl_test::Cluster cluster_;
  PageId meta_;
};

TEST_F(BlinkCluster, InsertsFromAllNodesAreAllThereInOrder) {
  constexpr uint64_t kEach = 2500;
  everywhere([](int t, Tree& tree, bufmgr::Session& session) {
    SlowComparator compare;
    std::mt19937 random(gcl_test::seed(t));
    for (uint64_t i = 0; i < kEach; ++i) {
      const TestKey key{random() % 5000, std::string(random() % 30, 'x')};
      auto done = put(tree, session, compare, key, tid_of(kEach * t + i));
      ASSERT_TRUE(done.ok()) << errc_name(done.error());
      ASSERT_TRUE(done->inserted);
    }
  });
  expect_sound(kThreads * kEach);
}

TEST_F(BlinkCluster, AscendingKeysFromAllNodesMeetAtTheLastLeaf) {
  constexpr uint64_t kEach = 1500;
  std::atomic<uint64_t> serial{0};
  everywhere([&](int, Tree& tree, bufmgr::Session& session) {
    SlowComparator compare;
    for (uint64_t i = 0; i < kEach; ++i) {
      const uint64_t n = serial.fetch_add(1);
      ASSERT_TRUE(put(tree, session, compare, {n, ""}, tid_of(n)).ok());
    }
  });
  expect_sound(kThreads * kEach);
}

// Rows up to `dead` never were; the others live.  Sometimes says that it had to wait.
class Rows final : public UniqueProbe {
 public:
  Rows(uint64_t dead, uint32_t seed) : dead_(dead), random_(seed) {}
  Result<ProbeResult> probe(const Entry& entry) override {
    if (random_() % 16 == 0) return ProbeResult::kAgain;
    if (random_() % 8 == 0) std::this_thread::yield();
    return gcl_test::number_of(entry.tid) < dead_ ? ProbeResult::kFree : ProbeResult::kConflict;
  }

 private:
  uint64_t dead_;
  std::mt19937 random_;
};

TEST_F(BlinkCluster, AUniqueKeyRacedFromAllNodesIsAcceptedOnce) {
  constexpr uint64_t kKeys = 1500;
  std::vector<std::atomic<int>> accepted(kKeys);
  everywhere([&](int t, Tree& tree, bufmgr::Session& session) {
    SlowComparator compare;
    Rows rows(0, t);
    for (uint64_t i = 0; i < kKeys; ++i) {
      auto done = put(tree, session, compare, {i, ""}, tid_of(i * kThreads + t), Unique::kCheck, &rows);
      ASSERT_TRUE(done.ok());
      ASSERT_NE(done->inserted, !done->unique);
      accepted[i] += done->inserted;
    }
  });
  for (uint64_t i = 0; i < kKeys; ++i) ASSERT_EQ(accepted[i], 1) << "key " << i;
  expect_sound(kKeys);
}

// The entries of each key fill several leaves, so that the page that decides is not the page that takes the entry.
TEST_F(BlinkCluster, AUniqueKeyWithManyDeadEntriesIsAcceptedOnce) {
  constexpr uint64_t kKeys = 6, kDead = 800;
  {
    auto session = cluster_.session(1);
    Tree tree = open(1, *session);
    SlowComparator compare;
    for (uint64_t i = 0; i < kKeys * kDead; ++i)
      ASSERT_TRUE(put(tree, *session, compare, {i % kKeys, "key"}, tid_of(i * 2)).ok());
    cluster_.end(1, std::move(session));
  }
  constexpr uint64_t kLive = 2 * kKeys * kDead;
  std::vector<std::atomic<int>> accepted(kKeys);
  everywhere([&](int t, Tree& tree, bufmgr::Session& session) {
    SlowComparator compare;
    std::mt19937 random(gcl_test::seed(t));
    class Dead final : public UniqueProbe {
     public:
      Result<ProbeResult> probe(const Entry& entry) override {
        return entry.tid.block >= kLive / 200 + 1 || gcl_test::number_of(entry.tid) % 2 == 1 ? ProbeResult::kConflict
                                                                                             : ProbeResult::kFree;
      }
    } rows;
    for (uint64_t i = 0; i < kKeys; ++i) {
      const uint64_t key = (i + t) % kKeys;
      const uint64_t odd = random() % kLive | 1;  // anywhere among the dead
      auto done = put(tree, session, compare, {key, "key"}, tid_of(odd), Unique::kCheck, &rows);
      ASSERT_TRUE(done.ok());
      accepted[key] += done->inserted;
    }
  });
  for (uint64_t i = 0; i < kKeys; ++i) ASSERT_EQ(accepted[i], 1) << "key " << i;
  expect_sound(kKeys * kDead + kKeys);
}

TEST_F(BlinkCluster, PartialUniqueInsertsAllAndTellsAllButOne) {
  constexpr uint64_t kKeys = 300;
  std::vector<std::atomic<int>> told_unique(kKeys);
  everywhere([&](int t, Tree& tree, bufmgr::Session& session) {
    SlowComparator compare;
    Rows rows(0, t);
    for (uint64_t i = 0; i < kKeys; ++i) {
      auto done = put(tree, session, compare, {i, ""}, tid_of(i * kThreads + t), Unique::kPartial, &rows);
      ASSERT_TRUE(done.ok());
      ASSERT_TRUE(done->inserted);
      told_unique[i] += done->unique;
    }
  });
  for (uint64_t i = 0; i < kKeys; ++i) ASSERT_EQ(told_unique[i], 1) << "key " << i;
  expect_sound(kKeys * kThreads);
}

// Even numbers are there from the beginning; half of the threads insert odd ones between them, the others scan.
TEST_F(BlinkCluster, ScansDuringSplitsMissNothingAndSeeNothingTwice) {
  constexpr uint64_t kStable = 4000;
  {
    auto session = cluster_.session(0);
    Tree tree = open(0, *session);
    SlowComparator compare;
    for (uint64_t i = 0; i < kStable; ++i) ASSERT_TRUE(put(tree, *session, compare, {2 * i, ""}, tid_of(2 * i)).ok());
    cluster_.end(0, std::move(session));
  }
  std::atomic<int> writers{3}, beside{0};  // scans that ended while some were at work
  everywhere([&](int t, Tree& tree, bufmgr::Session& session) {
    SlowComparator compare;
    if (t < 3) {
      std::mt19937 random(gcl_test::seed(t));
      for (int i = 0; i < 3000; ++i) {
        const uint64_t odd = 2 * (random() % kStable) + 1;
        ASSERT_TRUE(put(tree, session, compare, {odd, ""}, tid_of(100000 * (t + 1) + i)).ok());
      }
      writers.fetch_sub(1);
      return;
    }
    auto scan = std::make_unique<Scan>(tree, session, compare);
    for (int round = 0; writers.load() > 0 || round < 2; ++round) {
      const bool forward = (round + t) % 2 == 0;
      scan->reset({});
      uint64_t stable = 0;
      std::pair<uint64_t, engine::Tid> last{};
      for (bool first = true;; first = false) {
        Entry entry;
        auto more = forward ? scan->next(entry) : scan->prev(entry);
        ASSERT_TRUE(more.ok());
        if (!*more) break;
        const std::pair<uint64_t, engine::Tid> now{gcl_test::KeyView(entry.key).number, entry.tid};
        if (!first) {
          ASSERT_TRUE(forward ? last < now : now < last);
        }
        last = now;
        if (now.first % 2 == 0) {
          ASSERT_EQ(now.first, forward ? 2 * stable : 2 * (kStable - 1 - stable));
          ++stable;
        }
      }
      ASSERT_EQ(stable, kStable);
      beside += writers.load() > 0;
    }
  });
  EXPECT_GT(beside, 0);
  expect_sound(kStable + 9000);
}

// Long keys make a high tree with busy upper levels; each wait may be interrupted, between the halves of a split too.
TEST_F(BlinkCluster, InterruptedSplitsAreCompletedByOthers) {
  constexpr uint64_t kEach = 400;
  std::atomic<uint64_t> interrupted{0};
  gcl_test::Nuisance interrupts(40);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      auto session = cluster_.session(t % kNodes, &interrupts);
      std::optional<Tree> tree;
      while (!tree) {
        if (auto opened = Tree::open(cluster_.pool(t % kNodes), *session, meta_); opened.ok()) tree.emplace(*opened);
      }
      SlowComparator compare;
      std::mt19937 random(gcl_test::seed(t));
      for (uint64_t i = 0; i < kEach; ++i) {
        const TestKey key{random() % 100, std::string(700 + random() % 300, char('a' + random() % 26))};
        for (;;) {
          auto done = put(*tree, *session, compare, key, tid_of(kEach * t + i));
          ASSERT_EQ(session->guards_held(), 0);
          if (done.ok()) break;
          ASSERT_EQ(done.error(), Errc::kInterrupted);
          ++interrupted;
        }
      }
    });
  for (auto& thread : threads) thread.join();
  EXPECT_GT(interrupted, 0u);
  auto session = cluster_.session(0);
  const CheckReport report = sound(open(0, *session), *session);
  EXPECT_EQ(report.entries, kThreads * kEach);
}

TEST_F(BlinkCluster, RemovalsDuringInsertsRemoveTheDeadAndNothingElse) {
  constexpr uint64_t kDead = 4000, kEach = 1500;
  {
    auto session = cluster_.session(0);
    Tree tree = open(0, *session);
    SlowComparator compare;
    std::mt19937 random(gcl_test::seed(1));
    for (uint64_t i = 0; i < kDead; ++i)
      ASSERT_TRUE(put(tree, *session, compare, {random() % 100000, ""}, tid_of(i)).ok());
    cluster_.end(0, std::move(session));
  }
  std::atomic<uint64_t> removed{0};
  everywhere([&](int t, Tree& tree, bufmgr::Session& session) {
    SlowComparator compare;
    if (t == 0) {
      class Old final : public TidPredicate {
       public:
        bool operator()(engine::Tid tid) override {
          if (++calls_ % 5 == 0) std::this_thread::sleep_for(std::chrono::microseconds(200));  // the page may be split
          return gcl_test::number_of(tid) < kDead;
        }

       private:
        uint32_t calls_ = 0;
      } old;
      auto result = tree.remove_if(session, old);
      ASSERT_TRUE(result.ok());
      removed = result->removed;
      return;
    }
    std::mt19937 random(gcl_test::seed(t));
    for (uint64_t i = 0; i < kEach; ++i)
      ASSERT_TRUE(put(tree, session, compare, {random() % 100000, ""}, tid_of(100000 * t + i)).ok());
  });
  EXPECT_EQ(removed, kDead);
  expect_sound(5 * kEach);
}

}  // namespace
