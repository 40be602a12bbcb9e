#include "extension/engine/sequence/sequence.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <thread>
#include <vector>

#include "tests/support/cluster_fixture.hpp"

namespace {

using coherence::PageId;
using engine::LeaseTable;
using engine::Sequence;
using engine::SequenceRules;
using engine::SequenceRun;

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
constexpr SequenceRules kPlain{.increment = 1, .min = 1, .max = kMax, .cache = 1, .cycle = false};

// What the processes of a node share, and one session of it.
struct Node {
  Node(gcl_test::Cluster& cluster, int n)
      : pool(cluster.pool(n)), session(cluster.session(n)), leases(std::make_unique<LeaseTable>()) {}
  Sequence open(PageId page) { return {pool, *session, *leases, page}; }
  PageId create(int64_t first) { return *Sequence::create(pool, *session, {first, false}); }
  // The next value; `end` if there is none.
  int64_t next(PageId page, const SequenceRules& rules = kPlain, int64_t end = -1) {
    Sequence sequence = open(page);
    SequenceRun run = *sequence.take(rules);
    if (run.count == 0) run = *sequence.lease(rules);
    return run.count == 0 ? end : run.first;
  }
  std::vector<int64_t> next(PageId page, int times, const SequenceRules& rules = kPlain) {
    std::vector<int64_t> values;
    for (int i = 0; i < times; ++i) values.push_back(next(page, rules));
    return values;
  }
  bufmgr::BufferPool& pool;
  std::unique_ptr<bufmgr::Session> session;
  std::unique_ptr<LeaseTable> leases;
};

TEST(Sequence, OneNodeCountsWithoutGaps) {
  gcl_test::Cluster cluster({.nodes = 1});
  Node a(cluster, 0);
  const PageId page = a.create(1);
  for (int64_t i = 1; i <= 200; ++i) EXPECT_EQ(a.next(page), i);
}

TEST(Sequence, NodesHaveRangesOfTheirOwn) {
  gcl_test::Cluster cluster({.nodes = 2});
  Node a(cluster, 0), b(cluster, 1);
  const PageId page = a.create(1);
  EXPECT_EQ(a.next(page), 1);
  EXPECT_EQ(b.next(page), 33);
  EXPECT_EQ(a.next(page), 2);
  EXPECT_EQ(b.next(page), 34);
  a.next(page, 30);
  EXPECT_EQ(a.next(page), 65);
}

TEST(Sequence, SessionsOfAllNodesNeverGetTheSameValue) {
  constexpr int kNodes = 3, kSessions = 3, kTimes = 400;
  gcl_test::Cluster cluster({.nodes = kNodes});
  std::vector<std::unique_ptr<LeaseTable>> leases;
  for (int n = 0; n < kNodes; ++n) leases.push_back(std::make_unique<LeaseTable>());
  PageId page;
  {
    Node a(cluster, 0);
    page = a.create(1);
  }
  std::vector<std::vector<int64_t>> got(kNodes * kSessions);
  std::vector<std::thread> threads;
  for (int i = 0; i < kNodes * kSessions; ++i) {
    threads.emplace_back([&, i] {
      auto session = cluster.session(i % kNodes);
      Sequence sequence(cluster.pool(i % kNodes), *session, *leases[size_t(i % kNodes)], page);
      for (int t = 0; t < kTimes; ++t) {
        SequenceRun run = *sequence.take(kPlain);
        if (run.count == 0) run = *sequence.lease(kPlain);
        got[size_t(i)].push_back(run.first);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::vector<int64_t> all;
  for (const auto& values : got) all.insert(all.end(), values.begin(), values.end());
  std::sort(all.begin(), all.end());
  EXPECT_EQ(std::adjacent_find(all.begin(), all.end()), all.end());
  // What the sessions of a node leased is used up before more is (sequence.lease-under-latch).
  EXPECT_LE(all.back(), int64_t(all.size()) + kNodes * int64_t(engine::kSequenceLease));
}

TEST(Sequence, SetEndsTheLeasesOfAllNodes) {
  gcl_test::Cluster cluster({.nodes = 2});
  Node a(cluster, 0), b(cluster, 1);
  const PageId page = a.create(1);
  a.next(page, 3);
  b.next(page, 3);
  ASSERT_TRUE(b.open(page).set({1000, true}).ok());
  EXPECT_EQ(a.next(page), 1001);
  EXPECT_EQ(b.next(page), 1033);
  ASSERT_TRUE(a.open(page).set({5, false}).ok());
  EXPECT_EQ(b.next(page), 5);
}

TEST(Sequence, APageThatIsAnotherSequencesBelongsToNoOldLease) {
  gcl_test::Cluster cluster({.nodes = 1});
  Node a(cluster, 0);
  const PageId page = a.create(1);
  a.next(page, 3);
  ASSERT_TRUE(Sequence::drop(a.pool, *a.session, page).ok());
  PageId again = a.create(500);
  for (int i = 0; again != page && i < 1000; ++i) again = a.create(500);
  ASSERT_EQ(again, page) << "the allocator did not hand the page out again";
  EXPECT_EQ(a.next(page), 500);
}

TEST(Sequence, CacheIsTakenAtOnceAndInOrder) {
  gcl_test::Cluster cluster({.nodes = 2});
  Node a(cluster, 0), b(cluster, 1);
  const PageId page = a.create(1);
  SequenceRules rules = kPlain;
  rules.cache = 100;
  SequenceRun run = *a.open(page).lease(rules);
  EXPECT_EQ(run.first, 1);
  EXPECT_EQ(run.count, 100u);
  EXPECT_EQ(b.next(page, rules), 101);
  EXPECT_EQ(a.open(page).take(rules)->count, 0u);
}

TEST(Sequence, CountsDownAndInLargeSteps) {
  gcl_test::Cluster cluster({.nodes = 2});
  Node a(cluster, 0), b(cluster, 1);
  const SequenceRules down{.increment = -10, .min = kMin, .max = -1, .cache = 1, .cycle = false};
  const PageId page = a.create(-1);
  EXPECT_EQ(a.next(page, 3, down), (std::vector<int64_t>{-1, -11, -21}));
  EXPECT_EQ(b.next(page, down), -321);
  const SequenceRules huge{.increment = kMax, .min = kMin, .max = kMax, .cache = 1, .cycle = false};
  const PageId far = a.create(kMin);
  EXPECT_EQ(a.next(far, 3, huge), (std::vector<int64_t>{kMin, -1, kMax - 1}));
  EXPECT_EQ(a.next(far, huge, 0), 0);
}

TEST(Sequence, TheLastValuesAreNotLostInLeases) {
  gcl_test::Cluster cluster({.nodes = 2});
  Node a(cluster, 0), b(cluster, 1);
  const SequenceRules few{.increment = 1, .min = 1, .max = 10, .cache = 1, .cycle = false};
  const PageId page = a.create(1);
  std::vector<int64_t> all;
  for (int i = 0; i < 5; ++i) {
    all.push_back(a.next(page, few));
    all.push_back(b.next(page, few));
  }
  EXPECT_EQ(all, (std::vector<int64_t>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}));
  EXPECT_EQ(a.next(page, few), -1);
  EXPECT_EQ(b.next(page, few), -1);
}

TEST(Sequence, ACycleBeginsAgainWhenAllWereHandedOut) {
  gcl_test::Cluster cluster({.nodes = 2});
  Node a(cluster, 0), b(cluster, 1);
  const SequenceRules round{.increment = 1, .min = 1, .max = 1000, .cache = 1, .cycle = true};
  const PageId page = a.create(1);
  std::vector<int64_t> all;
  for (int i = 0; i < 500; ++i) {
    all.push_back(a.next(page, round));
    all.push_back(b.next(page, round));
  }
  for (int64_t i = 0; i < 1000; ++i) EXPECT_EQ(all[size_t(i)], i + 1);
  EXPECT_EQ(b.next(page, round), 1);
}

TEST(Sequence, ReadsWhatWasHandedOut) {
  gcl_test::Cluster cluster({.nodes = 2});
  Node a(cluster, 0), b(cluster, 1);
  const PageId page = a.create(7);
  EXPECT_FALSE(a.open(page).read()->called);
  EXPECT_EQ(a.open(page).read()->last, 7);
  a.next(page, 3);
  EXPECT_TRUE(a.open(page).read()->called);
  EXPECT_EQ(a.open(page).read()->last, 9);
  EXPECT_EQ(b.open(page).read()->last, 38);  // never below what a has handed out
  b.next(page);
  EXPECT_EQ(b.open(page).read()->last, 39);
  EXPECT_EQ(a.open(page).read()->last, 70);
}

}  // namespace
