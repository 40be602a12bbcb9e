// Three nodes: leaves leave the tree while others insert, split, scan in both directions and check uniqueness.
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

constexpr uint64_t kStableEvery = 400;  // numbers; several leaves lie between two that stay
constexpr uint64_t kStable = 40;
constexpr uint64_t kNumbers = kStable * kStableEvery;
constexpr uint64_t kDeletedMin = 60;

// Whether entry `tid` is dead; set once, before VACUUM may hear of it.
class MortalRows {
 public:
  explicit MortalRows(uint64_t most) : dead_(most) {}
  uint64_t take() { return next_.fetch_add(1); }
  uint64_t taken() const { return next_.load(); }
  uint64_t most() const { return dead_.size(); }
  void kill(uint64_t row) { dead_[row].store(true); }
  bool dead(uint64_t row) const { return dead_[row].load(); }

 private:
  std::vector<std::atomic<bool>> dead_;
  std::atomic<uint64_t> next_{kStable};
};

class Condemned final : public TidPredicate {
 public:
  explicit Condemned(const MortalRows& rows) : rows_(rows) {}
  bool operator()(engine::Tid tid) override { return rows_.dead(gcl_test::number_of(tid)); }

 private:
  const MortalRows& rows_;
};

class MortalProbe final : public UniqueProbe {
 public:
  explicit MortalProbe(const MortalRows& rows) : rows_(rows) {}
  Result<ProbeResult> probe(const Entry& entry) override {
    return rows_.dead(gcl_test::number_of(entry.tid)) ? ProbeResult::kFree : ProbeResult::kConflict;
  }

 private:
  const MortalRows& rows_;
};

class ShrinkStress : public ::testing::Test {
 protected:
  ShrinkStress() : cluster_({.nodes = kNodes, .frames = 256}) {
    auto session = cluster_.session(0);
    before_ = *cluster_.pool(0).free_pages(*session);
    meta_ = *Tree::create(cluster_.pool(0), *session);
    cluster_.end(0, std::move(session));
  }
  // Runs body(thread, tree, session) on two threads of each node, and a VACUUM beside them until they end.
  template <class Body>
  void beside_vacuum(const Body& body) {
    std::atomic<int> running{kThreads};
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t)
      threads.emplace_back([this, t, &body, &running] {
        auto session = cluster_.session(t % kNodes);
        Tree tree = *Tree::open(cluster_.pool(t % kNodes), *session, meta_);
        body(t, tree, *session);
        EXPECT_EQ(session->guards_held(), 0);
        crowd_.leave(t);
        cluster_.end(t % kNodes, std::move(session));
        running.fetch_sub(1);
      });
    for (int node = 0; running.load() > 0; node = (node + 1) % kNodes) vacuum(node);
    for (auto& thread : threads) thread.join();
  }
  void vacuum(int node) {
    auto session = cluster_.session(node);
    Tree tree = *Tree::open(cluster_.pool(node), *session, meta_);
    Condemned condemned(rows_);
    auto removed = tree.remove_if(*session, condemned);
    ASSERT_TRUE(removed.ok()) << errc_name(removed.error());
    deleted_ += removed->deleted;
    auto recycled = tree.recycle(*session, crowd_);
    ASSERT_TRUE(recycled.ok()) << errc_name(recycled.error());
    freed_ += recycled->freed;
    cluster_.end(node, std::move(session));
  }
  // As long as the test is to run, and until enough has happened (besides, `enough` of what the test itself counts),
  // however slow the machine is; rows are used once.
  bool going_on(bool enough) const {
    const auto now = std::chrono::steady_clock::now();
    enough = (enough && deleted_.load() > kDeletedMin) || now > begin_ + std::chrono::seconds(100);
    return (now < begin_ + gcl_test::longer(std::chrono::seconds(2)) || !enough) &&
           rows_.taken() < rows_.most() - kThreads * 400;
  }
  void insert_stable() {
    auto session = cluster_.session(0);
    Tree tree = *Tree::open(cluster_.pool(0), *session, meta_);
    SlowComparator compare;
    for (uint64_t i = 0; i < kStable; ++i)
      ASSERT_TRUE(put(tree, *session, compare, {i * kStableEvery, "stable"}, tid_of(i)).ok());
    cluster_.end(0, std::move(session));
  }
  // After all others have ended and everything but `stays` was vacuumed away.
  void expect_shrunk(uint64_t stays) {
    for (int i = 0; i < 3; ++i) vacuum(0);
    auto session = cluster_.session(0);
    Tree tree = *Tree::open(cluster_.pool(0), *session, meta_);
    const CheckReport report = sound(tree, *session);
    EXPECT_EQ(report.entries, stays);
    EXPECT_EQ(report.half_dead, 0u);
    EXPECT_GT(deleted_.load(), kDeletedMin);
    EXPECT_EQ(freed_, deleted_.load());
    EXPECT_EQ(before_ - *cluster_.pool(0).free_pages(*session), report.pages + 2) << "meta page and bin; no leak";
    EXPECT_LE(report.pages, 2 * stays + 8);
    cluster_.end(0, std::move(session));
    printf("%lu pages deleted\n", (unsigned long)deleted_.load());
  }

  gcl_test::Cluster cluster_;
  PageId meta_;
  gcl_test::Crowd crowd_;
  MortalRows rows_{uint64_t(400000 * gcl_test::longer())};
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  std::atomic<uint64_t> deleted_{0};
  uint64_t before_ = 0, freed_ = 0;
};

// Three threads fill stretches between the stable entries and kill what they have put there; three scan.
TEST_F(ShrinkStress, ScansFindWhatStaysWhileLeavesComeAndGo) {
  insert_stable();
  constexpr uint64_t kScansMin = 3;
  std::atomic<uint64_t> scans{0};
  beside_vacuum([&](int t, Tree& tree, bufmgr::Session& session) {
    SlowComparator compare;
    std::mt19937 random(gcl_test::seed(t));
    while (going_on(scans.load() > kScansMin)) {
      crowd_.count_in(t);
      if (t < 3) {
        std::vector<uint64_t> mine;
        const uint64_t from = random() % kNumbers;
        for (int i = 0; i < 400; ++i) {
          mine.push_back(rows_.take());
          const TestKey key{from + random() % (2 * kStableEvery), std::string(random() % 200, 'x')};
          ASSERT_TRUE(put(tree, session, compare, key, tid_of(mine.back())).ok());
        }
        crowd_.leave(t);
        for (const uint64_t row : mine) rows_.kill(row);
        continue;
      }
      auto scan = std::make_unique<Scan>(tree, session, compare);
      const bool forward = random() % 2 == 0;
      uint64_t next = forward ? 0 : kStable - 1;
      scan->reset({});
      for (;;) {
        Entry entry;
        auto more = forward ? scan->next(entry) : scan->prev(entry);
        ASSERT_TRUE(more.ok()) << errc_name(more.error());
        if (!*more) break;
        const gcl_test::KeyView key(entry.key);
        ASSERT_EQ(key.number % kStableEvery == 0 && key.text == "stable", gcl_test::number_of(entry.tid) < kStable);
        if (key.text != "stable") continue;
        ASSERT_EQ(key.number, next * kStableEvery);
        next += forward ? 1 : uint64_t(-1);
      }
      ASSERT_EQ(next, forward ? kStable : uint64_t(-1));
      scans.fetch_add(1);
      crowd_.leave(t);
    }
  });
  expect_shrunk(kStable);
  EXPECT_GT(scans.load(), kScansMin);
}

// Each key is taken by one thread at a time, given up by killing its row, and its leaf leaves in between.
TEST_F(ShrinkStress, AUniqueKeyHasOneOwnerWhileItsLeafComesAndGoes) {
  constexpr uint64_t kKeys = 3000, kTakenMin = 100, kRefusedMin = 10;
  std::vector<std::atomic<int>> owners(kKeys);
  std::atomic<uint64_t> taken{0}, refused{0};
  beside_vacuum([&](int t, Tree& tree, bufmgr::Session& session) {
    SlowComparator compare;
    MortalProbe probe(rows_);
    std::mt19937 random(gcl_test::seed(t));
    while (going_on(taken.load() > kTakenMin && refused.load() > kRefusedMin)) {
      // All are after the same stretch of keys; so leaves fill, and are given up.
      const auto now = std::chrono::steady_clock::now().time_since_epoch();
      const uint64_t from = uint64_t(now / std::chrono::milliseconds(5)) * 97 % kKeys;
      std::vector<std::pair<uint64_t, uint64_t>> mine;
      crowd_.count_in(t);
      for (uint64_t i = 0; i < 30; ++i) {
        const uint64_t key = (from + random() % 40) % kKeys, row = rows_.take();
        auto done = put(tree, session, compare, {key, std::string(300, 'u')}, tid_of(row), Unique::kCheck, &probe);
        ASSERT_TRUE(done.ok()) << errc_name(done.error());
        if (!done->inserted) {
          refused.fetch_add(1);
          continue;
        }
        ASSERT_EQ(owners[key].fetch_add(1), 0) << "key " << key;
        mine.emplace_back(key, row);
        taken.fetch_add(1);
      }
      crowd_.leave(t);
      if (random() % 2 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      for (const auto& [key, row] : mine) {
        owners[key].fetch_sub(1);
        rows_.kill(row);
      }
    }
  });
  expect_shrunk(0);
  EXPECT_GT(taken.load(), kTakenMin);
  EXPECT_GT(refused.load(), kRefusedMin);
}

// A VACUUM that is stopped anywhere leaves a tree that works, and the next one finishes what it left.
TEST_F(ShrinkStress, AStoppedVacuumIsFinishedByTheNext) {
  gcl_test::Nuisance interrupts(40);
  uint64_t stopped = 0, serial = kStable;
  auto session = cluster_.session(1, &interrupts);
  auto other = cluster_.session(0);
  Tree tree = *Tree::open(cluster_.pool(0), *other, meta_);
  std::optional<Tree> mine;
  while (!mine)
    if (auto opened = Tree::open(cluster_.pool(1), *session, meta_); opened.ok()) mine.emplace(*opened);
  SlowComparator compare;
  for (int round = 0; round < 15; ++round) {
    const uint64_t first = serial;
    for (; serial < first + 800; ++serial)  // long keys: inner pages leave, too
      ASSERT_TRUE(put(tree, *other, compare, {serial % 977, std::string(900, 'v')}, tid_of(serial)).ok());
    for (uint64_t row = first; row < serial; ++row) rows_.kill(row);
    Condemned condemned(rows_);
    for (;;) {
      auto removed = mine->remove_if(*session, condemned);
      ASSERT_EQ(session->guards_held(), 0);
      if (removed.ok()) break;
      ASSERT_EQ(removed.error(), Errc::kInterrupted);
      ++stopped;
      (void)tree.count(*other);
    }
  }
  cluster_.end(1, std::move(session));
  EXPECT_GT(stopped, 0u);
  vacuum(2);
  const CheckReport report = sound(tree, *other);
  EXPECT_EQ(report.entries, 0u);
  EXPECT_EQ(report.half_dead, 0u);
  for (int i = 0; i < 2; ++i) vacuum(0);
  EXPECT_EQ(before_ - *cluster_.pool(0).free_pages(*other), report.pages + 2);
  cluster_.end(0, std::move(other));
}

}  // namespace
