// Very many entries of one key: nothing that happens to one of them costs more because of the others.
#include <algorithm>
#include <functional>
#include <numeric>
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
using engine::Tid;
using gcl_test::kNodes;
using gcl_test::kThreads;
using gcl_test::Search;
using gcl_test::TestKey;
using gcl_test::tid_of;

const TestKey kKey{7, "key"};

Range equal_to(const Search& search) {
  return {.low = {.search = &search, .complete = true}, .high = {.search = &search, .complete = true}};
}

// Each probe does something in between, and says what it was told to.
class BusyProbe final : public UniqueProbe {
 public:
  explicit BusyProbe(ProbeResult result) : result_(result) {}
  Result<ProbeResult> probe(const Entry& entry) override {
    if (++probes > probes_max) return Errc::kInterrupted;
    if (meanwhile) meanwhile();
    return living.valid() && !(entry.tid < living) ? ProbeResult::kConflict : result_;
  }
  std::function<void()> meanwhile;
  Tid living;  // and all behind it
  uint64_t probes = 0, probes_max = 20000;

 private:
  ProbeResult result_;
};

class Duplicates : public ::testing::Test {
 protected:
  Duplicates() : cluster_({.nodes = 1, .frames = 1024}), session_(cluster_.session(0)), other_(cluster_.session(0)) {
    tree_.emplace(*Tree::open(pool(), *session_, *Tree::create(pool(), *session_)));
  }
  bufmgr::BufferPool& pool() { return cluster_.pool(0); }
  Tree& tree() { return *tree_; }

  void insert(bufmgr::Session& session, const TestKey& key, uint64_t serial) {
    auto done = gcl_test::put(tree(), session, compare_, key, tid_of(serial));
    ASSERT_TRUE(done.ok() && done->inserted);
  }
  // Page accesses so far.
  uint64_t visits() const {
    const auto& counts = session_->counts();
    return counts.get(bufmgr::Count::kFixes) + counts.get(bufmgr::Count::kPeeks) + counts.get(bufmgr::Count::kCopies);
  }

  gcl_test::Cluster cluster_;
  std::unique_ptr<bufmgr::Session> session_, other_;
  std::optional<Tree> tree_;
  gcl_test::TestComparator compare_;
};

// In the order of the table, and in none; with other keys on both sides.
TEST_F(Duplicates, CostTheNextOneNothing) {
  constexpr uint64_t kMany = gcl_test::by_one_thread(100000), kSome = 2000;
  for (const bool in_order : {true, false}) {
    tree_.emplace(*Tree::open(pool(), *session_, *Tree::create(pool(), *session_)));
    insert(*session_, {6, "left"}, 2 * kMany);
    insert(*session_, {8, "right"}, 2 * kMany + 1);
    std::vector<uint64_t> serials(kMany);
    std::iota(serials.begin(), serials.end(), 0);
    if (!in_order) std::shuffle(serials.begin(), serials.end(), std::mt19937(1));
    uint64_t before = 0, most = 0;
    for (uint64_t i = 0; i < kMany; ++i) {
      const uint64_t start = visits();
      if (i == kMany - kSome) before = start;
      insert(*session_, kKey, serials[i]);
      most = std::max(most, visits() - start);
    }
    const uint64_t levels = sound(tree(), *session_).height + 1;
    EXPECT_LE(double(visits() - before) / kSome, double(levels) + 2);  // down; the latch; now and then a split
    EXPECT_LE(most, 20 * levels);  // with splits up to the root, and new pages for them

    const Search search{&kKey};
    auto scan = std::make_unique<Scan>(tree(), *session_, compare_);
    Entry entry;
    scan->reset(equal_to(search));
    const uint64_t start = visits();
    ASSERT_TRUE(*scan->next(entry));
    EXPECT_EQ(entry.tid, tid_of(0));
    EXPECT_LE(visits() - start, levels + 1);
    scan->reset(equal_to(search));
    for (uint64_t i = kMany; i-- > 0;) {
      ASSERT_TRUE(*scan->prev(entry));
      ASSERT_EQ(entry.tid, tid_of(i));
    }
    EXPECT_FALSE(*scan->prev(entry));
    const uint64_t visited = visits() - start;
    EXPECT_LE(visited, sound(tree(), *session_).pages + 3 * levels);  // each leaf once
  }
}

// All of them die, VACUUM takes them out, and their pages serve the next ones.
TEST_F(Duplicates, GoAllAtOnceAndTheirPagesComeBack) {
  constexpr uint64_t kMany = gcl_test::by_one_thread(60000);
  gcl_test::Crowd crowd;
  class All final : public TidPredicate {
   public:
    bool operator()(Tid) override { return true; }
  } all;
  uint64_t used = 0;
  for (int round = 0; round < 4; ++round) {
    for (uint64_t i = 0; i < kMany; ++i) insert(*session_, kKey, i);
    const uint64_t free = *pool().free_pages(*session_);
    if (round == 0) used = free;
    EXPECT_GE(free + 8, used) << "pages are lost each round";
    auto removed = tree().remove_if(*session_, all);
    ASSERT_TRUE(removed.ok());
    EXPECT_EQ(removed->removed, kMany);
    EXPECT_GE(removed->deleted + 4, removed->leaves);
    auto freed = tree().recycle(*session_, crowd);
    ASSERT_TRUE(freed.ok());
    EXPECT_EQ(freed->freed, removed->deleted);
    EXPECT_EQ(sound(tree(), *session_).entries, 0u);
    const Search search{&kKey};
    auto scan = std::make_unique<Scan>(tree(), *session_, compare_);
    Entry entry;
    const uint64_t start = visits();
    scan->reset(equal_to(search));
    EXPECT_FALSE(*scan->next(entry));
    EXPECT_LE(visits() - start, 12u);
  }
}

// A unique check has dead entries to probe, and others use the leaf where it began.
TEST_F(Duplicates, OthersKeysInTheGateDoNotMakeACheckStartAgain) {
  constexpr uint64_t kDead = 100;
  for (uint64_t i = 0; i < kDead; ++i) insert(*session_, kKey, i);
  uint64_t serial = 10000;
  BusyProbe probe(ProbeResult::kFree);
  probe.meanwhile = [&] {
    const uint64_t n = serial++;
    insert(*other_, {n % 2 == 0 ? 6u : 8u, "beside"}, n);
  };
  auto done = gcl_test::put(tree(), *session_, compare_, kKey, tid_of(kDead), Unique::kCheck, &probe);
  ASSERT_TRUE(done.ok() && done->inserted);
  EXPECT_EQ(probe.probes, kDead);
  EXPECT_EQ(sound(tree(), *session_).entries, 2 * kDead + 1);
}

// An insert that met a conflict which may go again says so, whatever became of the gate meanwhile.
TEST_F(Duplicates, AConflictThatWasMetIsStillReportedAfterwards) {
  for (uint64_t i = 0; i < 20; ++i) insert(*session_, kKey, i);
  uint64_t serial = 10000;
  BusyProbe probe(ProbeResult::kFree);
  probe.living = tid_of(15);
  probe.meanwhile = [&] { insert(*other_, {6, "beside"}, serial++); };
  auto done = gcl_test::put(tree(), *session_, compare_, kKey, tid_of(100), Unique::kPartial, &probe);
  ASSERT_TRUE(done.ok() && done->inserted);
  EXPECT_FALSE(done->unique);
  EXPECT_EQ(done->conflict, tid_of(15));
}

// The same with newcomers of the very key: in the gate's leaf, so many that it is split, or in a leaf far away.
TEST_F(Duplicates, ANewcomerIsShownToTheCheckThatHadBegun) {
  for (const uint64_t dead : {100, 2000})
    for (const uint64_t newcomers : {1, 400}) {
      for (const bool in_front : {true, false}) {
        tree_.emplace(*Tree::open(pool(), *session_, *Tree::create(pool(), *session_)));
        constexpr uint64_t kFirst = 1000;
        for (uint64_t i = 0; i < dead; ++i) insert(*session_, kKey, kFirst + i);
        insert(*session_, {8, "right"}, 9000);
        BusyProbe probe(ProbeResult::kFree), nobody(ProbeResult::kFree);
        nobody.probes_max = newcomers * (dead + newcomers);
        Tid last{};
        probe.meanwhile = [&] {
          if (probe.probes != dead) return;  // all have been seen
          for (uint64_t i = 0; i < newcomers; ++i) {
            last = tid_of(in_front ? kFirst - 1 - i : kFirst + dead + i);
            auto done = gcl_test::put(tree(), *other_, compare_, kKey, last, Unique::kPartial, &nobody);
            ASSERT_TRUE(done.ok() && done->inserted);
          }
          probe.meanwhile = [] {};
        };
        class Living final : public UniqueProbe {
         public:
          Living(BusyProbe& busy, const Tid& from, uint64_t first, uint64_t count)
              : busy_(busy), from_(from), first_(first), count_(count) {}
          Result<ProbeResult> probe(const Entry& entry) override {
            auto said = busy_.probe(entry);
            if (!said.ok() || !from_.valid()) return said;
            const uint64_t n = gcl_test::number_of(entry.tid);
            return n < first_ || n >= first_ + count_ ? ProbeResult::kConflict : ProbeResult::kFree;
          }

         private:
          BusyProbe& busy_;
          const Tid& from_;
          uint64_t first_, count_;
        } living(probe, last, kFirst, dead);
        probe.probes_max = 3 * (dead + newcomers);
        auto done = gcl_test::put(tree(), *session_, compare_, kKey, tid_of(8000), Unique::kCheck, &living);
        ASSERT_TRUE(done.ok());
        EXPECT_FALSE(done->inserted) << dead << " dead, " << newcomers << " newcomers";
        EXPECT_FALSE(done->unique);
      }
    }
}

// All sessions of three nodes insert one key at once: none of the entries is lost, whatever the order of the rows.
TEST(DuplicatesCluster, OfAllNodesAreAllThere) {
  const uint64_t each = 4000;
  gcl_test::Cluster cluster({.nodes = kNodes, .frames = 256});
  PageId meta;
  {
    auto session = cluster.session(0);
    meta = *Tree::create(cluster.pool(0), *session);
    cluster.end(0, std::move(session));
  }
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      auto session = cluster.session(t % kNodes);
      Tree tree = *Tree::open(cluster.pool(t % kNodes), *session, meta);
      gcl_test::TestComparator compare;
      std::mt19937 random(gcl_test::seed(t));
      std::vector<uint64_t> serials(each);  // of its own, or between all others'
      for (uint64_t i = 0; i < each; ++i) serials[i] = t < 3 ? t * each + i : 3 * each + i * 3 + uint64_t(t) - 3;
      if (t % 2 == 1) std::shuffle(serials.begin(), serials.end(), random);
      for (const uint64_t serial : serials)
        ASSERT_TRUE(gcl_test::put(tree, *session, compare, kKey, tid_of(serial)).ok());
      cluster.end(t % kNodes, std::move(session));
    });
  for (auto& thread : threads) thread.join();
  for (int node = 0; node < kNodes; ++node) {
    auto session = cluster.session(node);
    Tree tree = *Tree::open(cluster.pool(node), *session, meta);
    gcl_test::TestComparator compare;
    const Search search{&kKey};
    auto scan = std::make_unique<Scan>(tree, *session, compare);
    scan->reset(equal_to(search));
    Entry entry;
    for (uint64_t i = 0; i < kThreads * each; ++i) {
      ASSERT_TRUE(*scan->next(entry));
      ASSERT_EQ(entry.tid, tid_of(i));
    }
    EXPECT_FALSE(*scan->next(entry));
    (void)sound(tree, *session);
    cluster.end(node, std::move(session));
  }
}

}  // namespace
