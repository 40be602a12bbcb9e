#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <random>
#include <thread>

#include "bufmgr/buffer_pool.hpp"
#include "tests/support/cluster_fixture.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/longer.hpp"

namespace bufmgr {
namespace {

using gcl_test::Cluster;
using gcl_test::ClusterOptions;
using gcl_test::Switch;

// Every page of the test has its number and sums up to a check word, so that a torn, stale or foreign page shows.
struct Body {
  uint64_t page;
  uint64_t changes;
  uint64_t noise[1000];
  uint64_t sum;

  uint64_t right_sum() const {
    uint64_t right = page * 31 + changes;
    for (uint64_t word : noise) right = right * 0x9e3779b97f4a7c15u + word;
    return right;
  }
  bool sound(PageId id) const { return changes == 0 || (page == id.raw && sum == right_sum()); }
};
static_assert(sizeof(Body) + kPageBody <= kPageSize);

coherence::Status change_page(BufferPool& pool, Session& session, PageId id, std::mt19937_64& random) {
  MiniTransaction change(pool, session);
  GCL_TRY(change.reserve(1024));
  auto page = pool.fix_exclusive(session, id);
  if (!page) return page.error();
  Body body;
  memcpy(&body, page->bytes() + kPageBody, sizeof body);
  EXPECT_TRUE(body.sound(id)) << "page " << id.number();
  change.join(*page);
  body.page = id.raw;
  ++body.changes;
  const uint32_t at = uint32_t(random() % 990);
  for (uint32_t i = at; i < at + 10; ++i) body.noise[i] = random();
  body.sum = body.right_sum();
  change.write(*page, kPageBody, &body, 16);
  change.write(*page, kPageBody + offsetof(Body, noise) + at * 8, &body.noise[at], 80);
  change.write(*page, kPageBody + offsetof(Body, sum), &body.sum, 8);
  change.commit();
  return {};
}

void read_page(BufferPool& pool, Session& session, PageId id, std::mt19937_64& random) {
  Body body;
  if (random() % 2 == 0) {
    alignas(8) std::byte copy[kPageSize];
    ASSERT_TRUE(pool.copy_page(session, id, copy));
    memcpy(&body, copy + kPageBody, sizeof body);
  } else {
    auto page = pool.fix_shared(session, id);
    ASSERT_TRUE(page.ok());
    memcpy(&body, page->bytes() + kPageBody, sizeof body);
  }
  EXPECT_TRUE(body.sound(id)) << "page " << id.number();
}

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr int kStressChanges = 300;
#else
constexpr int kStressChanges = 2000;
#endif

void run_stress(const ClusterOptions& options, int pages_count, bool hot) {
  const int changes_per_thread = kStressChanges * gcl_test::longer();
  Cluster cluster(options);
  auto first = cluster.session(0);
  std::vector<PageId> pages;
  for (int i = 0; i < pages_count; i += 64) {
    const PageId extent = *cluster.pool(0).allocate(*first, 64);
    for (int j = 0; j < 64 && i + j < pages_count; ++j) pages.push_back(extent + j);
  }
  std::vector<std::thread> threads;
  for (int t = 0; t < options.nodes * 2; ++t) {
    threads.emplace_back([&, t] {
      const int node = t % options.nodes;
      auto session = cluster.session(node);
      std::mt19937_64 random(gcl_test::seed(t * 77 + 1));
      for (int changes = 0; changes < changes_per_thread;) {
        const uint64_t span = hot && random() % 2 ? 4 : pages.size();
        const PageId id = pages[random() % span];
        if (random() % 3 == 0) {
          ASSERT_TRUE(change_page(cluster.pool(node), *session, id, random).ok());
          ++changes;
        } else {
          read_page(cluster.pool(node), *session, id, random);
        }
      }
      EXPECT_EQ(session->guards_held(), 0);
      EXPECT_EQ(session->ring_reserved(), 0u);
    });
  }
  for (auto& thread : threads) thread.join();
  uint64_t total = 0;
  for (const PageId id : pages) {
    auto page = cluster.pool(0).fix_shared(*first, id);
    ASSERT_TRUE(page.ok());
    Body body;
    memcpy(&body, page->bytes() + kPageBody, sizeof body);
    EXPECT_TRUE(body.sound(id));
    EXPECT_EQ(page->header().version, body.changes);
    total += body.changes;
  }
  EXPECT_EQ(total, uint64_t(options.nodes) * 2 * changes_per_thread) << "an update was lost";
  // The leak check: what no page holds is free.
  for (int n = 0; n < options.nodes; ++n) {
    cluster.stop_workers(n);
    BufferPool& pool = cluster.pool(n);
    uint32_t used = 0;
    for (uint32_t f = 0; f < pool.frames(); ++f) used += pool.coherence_node().line(f).page().valid();
    EXPECT_EQ(used + pool.free_frames(), pool.frames()) << "frames leaked on node " << n;
    EXPECT_EQ(pool.ring().reserved_now(), 0);
  }
}

TEST(Stress, TenTimesMorePagesThanFrames) { run_stress({.nodes = 3, .frames = 64}, 640, false); }

TEST(Stress, HotPagesAndSecondChance) {
  run_stress({.nodes = 3, .frames = 64, .replacement = ReplacementKind::kSecondChance}, 640, true);
}

TEST(Stress, ASmallRingALazyLogAndFewFrames) {
  run_stress({.nodes = 2, .frames = 32, .ring_bytes = kRingBytesLeast, .lazy_log = true}, 320, true);
}

// How many requests of peers the node has let wait so far.
uint64_t parked(BufferPool& pool) {
  const coherence::Node& node = pool.coherence_node();
  uint64_t count = 0;
  for (uint16_t s = 0; s < node.sessions_max(); ++s)
    count += node.counters(SessionId{s}).get(coherence::Counter::kParked);
  return count;
}

TEST(Interrupts, AnInterruptedWaitLeavesNothingBehind) {
  Cluster cluster({.nodes = 2});
  auto a = cluster.session(0);
  BufferPool& pool = cluster.pool(1);
  const PageId id = *cluster.pool(0).allocate(*a, 1);
  std::mt19937_64 random(1);
  {
    auto held = cluster.pool(0).fix_exclusive(*a, id);
    ASSERT_TRUE(held.ok());
    Switch interrupts;
    const uint64_t before = parked(cluster.pool(0));
    std::thread waiter([&] {
      auto b = cluster.session(1, &interrupts);
      EXPECT_EQ(change_page(pool, *b, id, random).error(), coherence::Errc::kInterrupted);
      EXPECT_EQ(b->guards_held(), 0);
      EXPECT_EQ(b->ring_reserved(), 0u);
      EXPECT_EQ(pool.fix_shared(*b, id).error(), coherence::Errc::kInterrupted);
      EXPECT_EQ(pool.fix_optimistic(*b, id).error(), coherence::Errc::kInterrupted);
      EXPECT_EQ(b->guards_held(), 0);
    });
    EXPECT_TRUE(gcl_test::eventually([&] { return parked(cluster.pool(0)) > before; }));
    interrupts.set(true);
    waiter.join();
  }
  auto b = cluster.session(1);
  EXPECT_TRUE(change_page(pool, *b, id, random).ok());
  EXPECT_TRUE(change_page(cluster.pool(0), *a, id, random).ok());
}

TEST(Interrupts, AWaitForFramesEnds) {
  Cluster cluster({.nodes = 1, .frames = 8, .sessions_max = 40});
  auto a = cluster.session(0);
  BufferPool& pool = cluster.pool(0);
  const PageId extent = *pool.allocate(*a, 64);
  std::vector<SharedGuard> guards;
  Switch interrupts;
  auto b = cluster.session(0, &interrupts);
  for (int i = 0; i < 8; ++i) {
    b->next_wait(WaitOrder::kById);
    auto page = pool.fix_shared(*b, extent + i);
    ASSERT_TRUE(page.ok());
    guards.push_back(page.take());
  }
  interrupts.set(true);
  b->next_wait(WaitOrder::kById);
  auto page = pool.fix_shared(*b, extent + 20);
  EXPECT_EQ(page.error(), coherence::Errc::kInterrupted);
  guards.clear();
  interrupts.set(false);
  EXPECT_TRUE(pool.fix_shared(*b, extent + 20).ok());
}

TEST(Interrupts, AFencedPoolEndsEveryWait) {
  Cluster cluster({.nodes = 2});
  auto a = cluster.session(0), b = cluster.session(1);
  const PageId id = *cluster.pool(0).allocate(*a, 1);
  auto held = cluster.pool(0).fix_exclusive(*a, id);
  ASSERT_TRUE(held.ok());
  const uint64_t before = parked(cluster.pool(0));
  std::thread waiter([&] { EXPECT_EQ(cluster.pool(1).fix_shared(*b, id).error(), coherence::Errc::kFenced); });
  EXPECT_TRUE(gcl_test::eventually([&] { return parked(cluster.pool(0)) > before; }));
  cluster.pool(0).coherence_node().fence("test");
  waiter.join();
  EXPECT_TRUE(cluster.pool(1).fenced());
}

}  // namespace
}  // namespace bufmgr
