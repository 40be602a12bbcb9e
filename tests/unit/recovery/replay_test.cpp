// Random mini-transactions of several nodes, replayed.
#include <thread>

#include "tests/support/longer.hpp"
#include "tests/support/pool_bytes.hpp"
#include "tests/support/random_change.hpp"
#include "tests/unit/recovery/replay.hpp"

namespace recovery_test {
namespace {

using bufmgr::BufferPool;
using bufmgr::PageId;
using gcl_test::Cluster;
using gcl_test::random_change;

// Nobody hints these pages.
void expect_same(BufferPool& pool, bufmgr::Session& session, PageId id, const PageBytes& replayed) {
  PageBytes now;
  copy_to(pool, session, id, &now);
  EXPECT_EQ(memcmp(now.bytes, replayed.bytes, coherence::kPageSize), 0) << "page " << id.raw;
}

TEST(Replay, OverOldImagesGivesThePages) {
  Cluster cluster({.nodes = 3, .frames = 32, .lazy_log = true, .keep_records = true});
  auto first = cluster.session(0);
  Images images;
  const auto pages = gcl_test::pages_of_two_memory_nodes(cluster.pool(0), *first, 48);
  for (const PageId id : pages) copy_to(cluster.pool(0), *first, id, &images[id.raw]);
  std::vector<std::thread> threads;
  for (int t = 0; t < 6; ++t) {
    threads.emplace_back([&, t] {
      auto session = cluster.session(t % 3);
      std::mt19937_64 random(gcl_test::seed(t + 1));
      for (int i = 0; i < 150; ++i) random_change(cluster.pool(t % 3), *session, pages, random);
    });
  }
  for (auto& thread : threads) thread.join();
  const std::vector<Record> records = logged(cluster);
  replay(images, records);
  replay(images, records);  // idempotent
  for (const PageId id : pages) expect_same(cluster.pool(0), *first, id, images[id.raw]);
}

TEST(Replay, OfARingThatHasWrappedGivesWhatPagesInThePoolDoNotHave) {
  Cluster cluster({.nodes = 2, .frames = 128, .ring_bytes = bufmgr::kRingBytesLeast, .lazy_log = true});
  auto a = cluster.session(0), b = cluster.session(1);
  BufferPool& pool = cluster.pool(0);
  const auto pages = gcl_test::pages_of_two_memory_nodes(pool, *a, 64);
  std::mt19937_64 random(gcl_test::seed(9));
  while (pool.ring().head() < 8 * pool.ring().data_bytes()) random_change(pool, *a, pages, random);
  EXPECT_GT(pool.ring().tail(), 6 * pool.ring().data_bytes());
  // What a survivor would do: the pages as the pool has them, then the ring.
  cluster.stop_workers(0);
  ASSERT_TRUE(a->push_redo().ok());
  Images images;
  for (const PageId id : pages)
    memcpy(images[id.raw].bytes, gcl_test::pool_bytes(pool.coherence_pool(), id), coherence::kPageSize);
  replay(images, ring_of(pool, *b, {0}));
  for (const PageId id : pages) expect_same(pool, *a, id, images[id.raw]);
}

}  // namespace
}  // namespace recovery_test
