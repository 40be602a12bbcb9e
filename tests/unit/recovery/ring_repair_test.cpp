// Nodes die, and survivors make their pages out of rings, and sweep.
#include "recovery/ring_repair.hpp"

#include <algorithm>
#include <deque>
#include <set>
#include <thread>

#include "coherence/latch/latch_word.hpp"
#include "coherence/region/node_table.hpp"
#include "coherence/transport/shm/mapped_pool.hpp"
#include "coherence/transport/shm/shm_memory.hpp"
#include "recovery/page_sweep.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/far_memory.hpp"
#include "tests/support/pool_bytes.hpp"
#include "tests/support/random_change.hpp"
#include "tests/unit/recovery/replay.hpp"

namespace recovery {
namespace {

using bufmgr::PageId;
using coherence::Errc;
using coherence::kPageSize;
using coherence::MemberState;
using coherence::NodeId;
using coherence::NodeSet;
using gcl_test::PageBytes;
using gcl_test::random_change;

class RingRepairTest : public ::testing::Test {
 protected:
  static constexpr int kNodes = 3;
  RingRepairTest() : cluster_({.nodes = kNodes, .frames = 128, .repairs_deaths = true, .keep_records = true}) {
    for (int n = 0; n < kNodes; ++n) prepare(n);
    auto session = cluster_.session(0);
    pages_ = gcl_test::pages_of_two_memory_nodes(cluster_.pool(0), *session, 24);
  }
  void prepare(int n) {
    redo_[n] = std::make_unique<RingRepair>(cluster_.pool(n));
    sweep_[n] = std::make_unique<PageSweep>(cluster_.pool(n), *redo_[n]);
    cluster_.pool(n).coherence_node().set_repair(redo_[n].get());
  }
  void change(int node, int times) {
    auto session = cluster_.session(node);
    for (int i = 0; i < times; ++i) random_change(cluster_.pool(node), *session, pages_, random_);
    cluster_.end(node, std::move(session));
  }
  void write(int node, PageId id, uint64_t value) {
    auto session = cluster_.session(node);
    {
      bufmgr::MiniTransaction change(cluster_.pool(node), *session);
      ASSERT_TRUE(change.reserve(16).ok());
      auto page = cluster_.pool(node).fix_exclusive(*session, id);
      ASSERT_TRUE(page.ok());
      change.join(*page);
      change.set(*page, 4000, value);
      change.commit();
    }
    cluster_.end(node, std::move(session));
  }
  // What all pages are, by redo alone: no process that looks at them moves them.
  recovery_test::Images expected() {
    recovery_test::Images images;
    for (const PageId id : pages_) images[id.raw];
    for (auto& record : recovery_test::logged(cluster_)) records_.push_back(std::move(record));
    recovery_test::replay(images, records_, recovery_test::Unknown::kLeftOut);
    return images;
  }
  void expect_pages(int node, recovery_test::Images& images) {
    auto session = cluster_.session(node);
    for (const PageId id : pages_) {
      auto page = cluster_.pool(node).fix_shared(*session, id);
      ASSERT_TRUE(page.ok()) << coherence::errc_name(page.error())
                             << cluster_.pool(node).coherence_node().fence_reason();
      EXPECT_EQ(memcmp(page->bytes(), images[id.raw].bytes, kPageSize), 0) << "page " << id.raw;
    }
    cluster_.end(node, std::move(session));
  }
  MemberState state_of(int dead, int seen_by = 0) {
    return cluster_.pool(seen_by).coherence_node().info({uint8_t(dead)}).state;
  }
  PageSweep::Step step(int node) {
    auto session = cluster_.session(node);
    coherence::Problem problem;
    const auto step = sweep_[node]->step(*session, &problem);
    EXPECT_TRUE(step.ok()) << coherence::errc_name(step.error()) << problem.text;
    EXPECT_EQ(session->guards_held(), 0);
    cluster_.end(node, std::move(session));
    return step ? *step : PageSweep::Step::kIdle;
  }
  // Pages, by raw ids, of which the dead one's ring has what the pool lacks.
  std::set<uint64_t> lacking(int dead) {
    auto session = cluster_.session(0);
    std::vector<PageVersion> all(1000);
    coherence::Problem problem;
    const auto count =
        redo_[0]->pages({uint8_t(dead)}, cluster_.pool(0).coherence_node().info({uint8_t(dead)}).incarnation, PageId{0},
                        all, session->memory(), &problem);
    cluster_.end(0, std::move(session));
    EXPECT_TRUE(count.ok()) << problem.text;
    std::set<uint64_t> pages;
    for (size_t i = 0; count && i < *count; ++i) {
      uint64_t version;
      memcpy(&version, gcl_test::pool_bytes(cluster_.pool(0).coherence_pool(), all[i].page), sizeof version);
      if (version < all[i].version) pages.insert(all[i].page.raw);
    }
    return pages;
  }
  bool repairable(int dead, int seen_by = 0) {
    return gcl_test::eventually(
        [&] { return cluster_.pool(seen_by).coherence_node().repairable().has({uint8_t(dead)}); });
  }
  // By the living nodes in turn, until the dead one's name is free.
  bool sweep(int dead, std::initializer_list<int> living) {
    return gcl_test::eventually([&] {
      for (const int n : living) step(n);
      return state_of(dead, *living.begin()) == MemberState::kAbsent;
    });
  }
  void expect_in_pool(recovery_test::Images& images) {
    for (const PageId id : pages_)
      EXPECT_EQ(memcmp(gcl_test::pool_bytes(cluster_.pool(0).coherence_pool(), id), images[id.raw].bytes, kPageSize), 0)
          << "page " << id.raw;
  }
  uint64_t repairs(int node) {
    uint64_t sum = 0;
    const auto& there = cluster_.pool(node).coherence_node();
    for (uint16_t s = 0; s < there.sessions_max(); ++s) sum += there.counters({s}).get(coherence::Counter::kRepairs);
    return sum;
  }

  gcl_test::Cluster cluster_;
  std::unique_ptr<RingRepair> redo_[kNodes];
  std::unique_ptr<PageSweep> sweep_[kNodes];
  std::vector<PageId> pages_;
  std::vector<recovery_test::Record> records_;
  std::mt19937_64 random_{gcl_test::seed(31)};
};

TEST_F(RingRepairTest, ADeadNodesPagesAreReadAndChanged) {
  for (const int node : {0, 1, 2, 1}) change(node, 20);
  auto images = expected();
  cluster_.kill(1);
  ASSERT_TRUE(repairable(1));
  expect_pages(0, images);
  expect_pages(2, images);
  EXPECT_GT(repairs(0), 0u);
  EXPECT_FALSE(cluster_.pool(0).fenced());
  change(2, 5);
  auto later = expected();
  expect_pages(0, later);
}

TEST_F(RingRepairTest, TheSweepFreesTheNameAndTheRing) {
  for (int life = 0; life < 3; ++life) {
    for (const int node : {0, 1, 2, 1}) change(node, 20);
    auto images = expected();
    const uint64_t ring = cluster_.pool(1).ring().head();
    cluster_.kill(1);
    ASSERT_TRUE(repairable(1));
    EXPECT_TRUE(sweep(1, {0, 2}));
    for (const PageId id : pages_) {  // a session that waited for the node would wait for ever
      const coherence::LatchWord word = cluster_.pool(0).coherence_pool().peek_latch(id);
      ASSERT_FALSE(word.owner() == NodeId{1} || word.readers().has(NodeId{1})) << "page " << id.raw;
    }
    for (const int n : {0, 2}) EXPECT_EQ(int(step(n)), int(PageSweep::Step::kIdle));
    expect_pages(0, images);
    cluster_.start(1);
    prepare(1);
    EXPECT_GE(cluster_.pool(1).ring().head(), ring);  // log.lap-per-incarnation
    expect_pages(1, images);
  }
}

// repair.all-dead-redo
TEST_F(RingRepairTest, TheRedoOfAllDeadNodesIsApplied) {
  for (const int node : {1, 2, 1, 2, 1}) change(node, 15);
  auto images = expected();
  cluster_.kill(1);
  cluster_.kill(2);
  ASSERT_TRUE(repairable(1) && repairable(2));
  EXPECT_TRUE(sweep(1, {0}));
  EXPECT_TRUE(sweep(2, {0}));
  expect_pages(0, images);
}

// As repair.swept-means-written says: a survivor that has taken a page over writes it, and no other sweep is ahead of
// that.
TEST_F(RingRepairTest, ANodeIsSweptWhenTheOwnersOfItsPagesHaveWrittenThem) {
  const PageId id = pages_[3];
  write(1, id, 42);
  cluster_.kill(1);
  ASSERT_TRUE(repairable(1));
  write(2, id, 43);  // node 2 owns it, and the pool has neither
  int waits = 0;
  for (int i = 0; i < 100; ++i) waits += step(0) == PageSweep::Step::kWaits;
  EXPECT_GT(waits, 0);
  EXPECT_EQ(int(state_of(1)), int(MemberState::kDead));
  EXPECT_TRUE(sweep(1, {0, 2}));
  uint64_t value;
  memcpy(&value, gcl_test::pool_bytes(cluster_.pool(0).coherence_pool(), id) + 4000, sizeof value);
  EXPECT_EQ(value, 43u);
}

// What one survivor had taken over goes with it: the redo of the first is still there.  Pages that both have changed
// are in both rings, and versions alone say whose changes come first (recovery.page-and-version-order).
TEST_F(RingRepairTest, ASurvivorDiesInTheMiddleOfTheRepair) {
  for (const auto& [first, second] : {std::pair(1, 2), {2, 1}}) {
    for (const int node : {0, first, second, first}) change(node, 20);
    cluster_.kill(first);
    ASSERT_TRUE(repairable(first));
    for (int i = 0; i < 3; ++i) (void)step(second);
    cluster_.stop_workers(second);  // it writes nothing back
    change(second, 20);
    auto images = expected();
    cluster_.kill(second);
    ASSERT_TRUE(repairable(second));
    const auto of_first = lacking(first), of_second = lacking(second);
    EXPECT_GT(std::ranges::count_if(of_first, [&](uint64_t page) { return of_second.contains(page); }), 0);
    EXPECT_TRUE(sweep(first, {0}));
    EXPECT_TRUE(sweep(second, {0}));
    expect_pages(0, images);
    for (const int node : {first, second}) {
      cluster_.start(node);
      prepare(node);
    }
  }
}

// A dead node has more words, pages and redo than one step may take.
TEST_F(RingRepairTest, AStepOfTheSweepIsABoundedAmountOfWork) {
  using coherence::Counter;
  constexpr uint64_t kWordBytes = 4096, kFetches = 16, kPages = 64;  // recovery.sweep-in-steps
  {
    auto session = cluster_.session(0);
    pages_ = gcl_test::pages_of_two_memory_nodes(cluster_.pool(0), *session, 100);
    cluster_.end(0, std::move(session));
  }
  cluster_.stop_workers(1);  // it writes nothing back
  for (const PageId id : pages_) write(1, id, 42);
  cluster_.kill(1);
  ASSERT_TRUE(repairable(1));
  EXPECT_GT(lacking(1).size(), kPages) << "and the ring is read before the first step";
  auto session = cluster_.session(0);
  const coherence::Counters& counters = session->coherence().counters();
  const auto count = [&](std::initializer_list<Counter> of) {
    uint64_t sum = 0;
    for (const Counter one : of) sum += counters.get(one);
    return sum;
  };
  const uint64_t repairs = counters.get(Counter::kRepairs);
  EXPECT_TRUE(gcl_test::eventually([&] {
    const uint64_t fetches = count({Counter::kMissShared, Counter::kMissExclusive}), reads = count({Counter::kReads}),
                   bytes = count({Counter::kBytesRead}), writes = count({Counter::kWriteBacks});
    coherence::Problem problem;
    EXPECT_TRUE(sweep_[0]->step(*session, &problem).ok()) << problem.text;
    const uint64_t fetched = count({Counter::kMissShared, Counter::kMissExclusive}) - fetches;
    EXPECT_LE(fetched, kFetches);
    EXPECT_LE(count({Counter::kReads}) - reads, kPages + fetched);
    EXPECT_LE(count({Counter::kBytesRead}) - bytes, kWordBytes + fetched * kPageSize);
    EXPECT_LE(count({Counter::kWriteBacks}) - writes, kPages);
    EXPECT_EQ(session->guards_held(), 0);
    return state_of(1) != MemberState::kDead;
  }));
  EXPECT_GT(counters.get(Counter::kRepairs) - repairs, kPages) << "else nothing is shown";
  cluster_.end(0, std::move(session));
}

// recovery.gap-is-error
TEST_F(RingRepairTest, AMissingRecordFencesThePoolAndIsNamed) {
  const PageId id = pages_[3];
  write(0, id, 1);
  write(1, id, 2);  // so the pool has version 1
  cluster_.kill(1);
  ASSERT_TRUE(repairable(1));
  std::byte* const image = gcl_test::pool_bytes(cluster_.pool(0).coherence_pool(), id);
  // The worker of a node wrote it.
  const std::atomic_ref version(*reinterpret_cast<uint64_t*>(image + offsetof(bufmgr::PageHeader, version)));
  ASSERT_GT(version.fetch_sub(1), 0u);
  auto session = cluster_.session(0);
  EXPECT_EQ(cluster_.pool(0).fix_shared(*session, id).error(), Errc::kFenced);
  const std::string reason = cluster_.pool(0).coherence_node().fence_reason();
  EXPECT_NE(reason.find("page 1:"), std::string::npos) << reason;
  EXPECT_NE(reason.find("(node 1, sequence"), std::string::npos) << reason;
  cluster_.end(0, std::move(session));
}

// Nobody was told of it, and no node has seen it (log.ring-before-prepared).
TEST_F(RingRepairTest, WhatWasNotPushedHasNotHappened) {
  const PageId id = pages_[0];
  cluster_.stop_workers(1);
  write(1, id, 1);
  {
    auto session = cluster_.session(1);
    EXPECT_TRUE(session->push_redo().ok());
    cluster_.end(1, std::move(session));
  }
  write(1, id, 2);
  cluster_.kill(1, gcl_test::Cluster::Redo::kAsItIs);
  ASSERT_TRUE(repairable(1));
  auto session = cluster_.session(0);
  {
    const auto page = cluster_.pool(0).fix_shared(*session, id);
    ASSERT_TRUE(page.ok());
    uint64_t value;
    memcpy(&value, page->bytes() + 4000, sizeof value);
    EXPECT_EQ(value, 1u);
  }
  cluster_.end(0, std::move(session));
}

// A ring is read through any transport.
class Later final : public gcl_test::Network {
 public:
  void carry(std::function<void()> arrival) override { under_way_.push_back(std::move(arrival)); }
  void wait() override {
    ++round_trips;
    for (auto arrived = std::exchange(under_way_, {}); auto& one : arrived) one();
  }
  std::optional<int> breaks_after(int) override { return breaks ? std::optional<int>(0) : std::nullopt; }
  bool one_in(uint32_t) override { return false; }
  bool breaks = false;
  int round_trips = 0;

 private:
  std::deque<std::function<void()>> under_way_;
};

TEST_F(RingRepairTest, ARingIsReadOverADistance) {
  cluster_.stop_workers(1);  // nothing is written back: what the ring has, the pool lacks
  change(1, 60);
  auto images = expected();
  cluster_.kill(1);
  ASSERT_TRUE(repairable(1));
  Later network;
  coherence::Counters counters{};
  gcl_test::FarMemory far(
      std::make_unique<coherence::ShmMemory>(coherence::MappedPool::of(cluster_.pool(0).coherence_pool()), counters),
      network);
  coherence::Problem problem;
  int changed = 0;
  for (const PageId id : pages_) {
    PageBytes image;
    memcpy(image.bytes, gcl_test::pool_bytes(cluster_.pool(0).coherence_pool(), id), kPageSize);
    const auto repaired = redo_[0]->repair(id, image.bytes, NodeSet::of({1}), far, &problem);
    ASSERT_TRUE(repaired.ok()) << problem.text;
    changed += *repaired;
    EXPECT_EQ(memcmp(image.bytes, images[id.raw].bytes, kPageSize), 0) << "page " << id.raw;
  }
  EXPECT_GT(changed, 0);
  EXPECT_GT(network.round_trips, 2);  // each batch there and back
  const int once = network.round_trips;
  PageBytes zeros;
  (void)redo_[0]->repair(pages_[0], zeros.bytes, NodeSet::of({1}), far, &problem);
  EXPECT_EQ(network.round_trips, once);  // recovery.ring-read-once

  network.breaks = true;
  EXPECT_EQ(redo_[2]->repair(pages_[0], zeros.bytes, NodeSet::of({1}), far, &problem).error(), Errc::kFenced);
}

}  // namespace
}  // namespace recovery
