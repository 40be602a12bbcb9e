// Nodes join and leave, again and again, while others work on the same pages.
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "bufmgr/buffer_pool.hpp"
#include "tests/support/cluster_fixture.hpp"
#include "tests/support/longer.hpp"

namespace bufmgr {
namespace {

constexpr int kStaying = 2, kComing = 3, kVisited = 96;
constexpr int kVisits = 12, kChangesOfVisit = 60;

// A count and its complement, so that a torn or foreign page shows.
bool count_up(BufferPool& pool, Session& session, PageId id) {
  MiniTransaction change(pool, session);
  if (!change.reserve(64)) return false;
  auto page = pool.fix_exclusive(session, id);
  if (!page) return false;
  uint64_t counts[2];
  memcpy(counts, page->bytes() + 4096, sizeof counts);
  EXPECT_TRUE(counts[0] == ~counts[1] || (counts[0] == 0 && counts[1] == 0)) << "page " << id.number();
  counts[0] += 1;
  counts[1] = ~counts[0];
  change.join(*page);
  change.write(*page, 4096, counts, sizeof counts);
  change.commit();
  return true;
}

TEST(Members, ComeAndGoUnderLoad) {
  gcl_test::Cluster cluster({.nodes = kStaying + kComing, .frames = 48});
  auto watching = cluster.session(0);
  const std::vector<PageId> pages = gcl_test::pages_of_two_memory_nodes(cluster.pool(0), *watching, kVisited);
  for (int n = kStaying; n < kStaying + kComing; ++n) cluster.stop(n);
  std::atomic<uint64_t> done{0};
  std::atomic<int> visiting{kComing};
  std::vector<std::thread> threads;
  const auto work = [&](int node, unsigned seed, const auto& go_on) {
    auto session = cluster.session(node);
    std::mt19937 random(seed);
    for (int i = 0; go_on(i); ++i) {
      const PageId page = pages[random() % (random() % 3 == 0 ? 4 : kVisited)];  // some are hot
      ASSERT_TRUE(count_up(cluster.pool(node), *session, page));
      done.fetch_add(1);
    }
    cluster.end(node, std::move(session));
  };
  for (int n = 0; n < kStaying; ++n)
    threads.emplace_back([&, n] { work(n, gcl_test::seed(n), [&](int) { return visiting.load() > 0; }); });
  for (int n = kStaying; n < kStaying + kComing; ++n)
    threads.emplace_back([&, n] {
      for (int visit = 0; visit < kVisits * gcl_test::longer(); ++visit) {
        cluster.start(n);
        work(n, gcl_test::seed(n * 1000 + visit), [](int i) { return i < kChangesOfVisit; });
        cluster.stop(n);  // expects that nothing leaked
      }
      visiting.fetch_sub(1);
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(cluster.pool(0).coherence_node().live().count(), kStaying);
  uint64_t sum = 0, versions = 0;
  for (const PageId id : pages) {
    auto page = cluster.pool(0).fix_shared(*watching, id);
    ASSERT_TRUE(page.ok());
    uint64_t count;
    memcpy(&count, page->bytes() + 4096, sizeof count);
    sum += count;
    versions += page->header().version;
  }
  EXPECT_EQ(sum, done.load()) << "a change was lost";
  EXPECT_EQ(versions, sum);
  EXPECT_GE(sum, uint64_t(kComing * kVisits * kChangesOfVisit));
}

}  // namespace
}  // namespace bufmgr
