#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "bufmgr/buffer_pool.hpp"
#include "bufmgr/space/space_map.hpp"
#include "tests/support/cluster_fixture.hpp"

namespace bufmgr {
namespace {

using coherence::Errc;
using gcl_test::Cluster;

void scribble(BufferPool& pool, Session& session, PageId id) {
  MiniTransaction change(pool, session);
  ASSERT_TRUE(change.reserve(kPageSize));
  auto page = pool.fix_exclusive(session, id);
  ASSERT_TRUE(page);
  change.join(*page);
  change.format(*page, PageType::kHeap, 1);
  memset(change.edit(*page, kPageBody, kPageSize - kPageBody), 0xab, kPageSize - kPageBody);
  change.commit();
}

void expect_zero_but_for_its_version(BufferPool& pool, Session& session, PageId id) {
  alignas(8) std::byte copy[kPageSize];
  ASSERT_TRUE(pool.copy_page(session, id, copy));
  for (uint32_t i = 8; i < kPageSize; ++i) ASSERT_EQ(copy[i], std::byte{0}) << "byte " << i;
}

// Over both memory nodes, in used and unused groups.
TEST(PageAllocator, AWalkMeetsEveryAllocatedPageOnce) {
  Cluster cluster({.nodes = 2, .frames = 512, .pool_bytes = 288 << 20});
  auto a = cluster.session(0), b = cluster.session(1);
  std::set<uint64_t> taken;
  for (int i = 0; i < 300; ++i) {
    const bool first = i % 2 == 0;
    const uint32_t count = i % 5 == 0 ? 64 : 1;
    auto page = cluster.pool(first ? 0 : 1).allocate(first ? *a : *b, count);
    ASSERT_TRUE(page.ok());
    for (uint32_t p = 0; p < count; ++p) taken.insert((*page + p).raw);
    if (i % 7 != 0 || count != 1) continue;
    ASSERT_TRUE(cluster.pool(0).free(*a, *page, 1).ok());
    taken.erase(page->raw);
  }
  std::set<uint64_t> met;
  for (PageId at = PageId::at({0}, 0);; at = at + 1) {
    auto page = cluster.pool(1).next_allocated(*b, at);
    ASSERT_TRUE(page.ok());
    if (!page->valid()) break;
    EXPECT_TRUE(met.insert(page->raw).second);
    at = *page;
  }
  EXPECT_EQ(met, taken);
}

TEST(PageAllocator, NodesNeverGetTheSamePage) {
  Cluster cluster({.nodes = 3, .frames = 512, .pool_bytes = 96 << 20});
  std::mutex mutex;
  std::set<uint64_t> taken;
  std::vector<std::thread> threads;
  for (int t = 0; t < 6; ++t) {
    threads.emplace_back([&, t] {
      const int node = t % 3;
      auto session = cluster.session(node);
      for (int i = 0; i < 100; ++i) {
        const uint32_t count = i % 10 == 0 ? 64 : 1;
        auto first = cluster.pool(node).allocate(*session, count);
        ASSERT_TRUE(first.ok());
        EXPECT_EQ(first->number() % count, 0u);
        std::lock_guard hold(mutex);
        for (uint32_t p = 0; p < count; ++p) EXPECT_TRUE(taken.insert((*first + p).raw).second);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  auto session = cluster.session(0);
  const uint64_t left = *cluster.pool(0).free_pages(*session);
  const auto spare = SpaceGroups{{0}, cluster.pool(0).coherence_pool().pages({0})}.kept(0);
  uint64_t kept = (spare.last - spare.first) * kExtentPages;  // and page 0 and the map pages of each memory node
  for (uint8_t n = 0; n < 2; ++n) kept += 1 + SpaceGroups{{n}, cluster.pool(0).coherence_pool().pages({n})}.count();
  EXPECT_EQ(left + taken.size(), cluster.pool(0).pages() - kept);
}

TEST(PageAllocator, AFullPoolSaysSoAndAFreedPageComesBack) {
  Cluster cluster({.nodes = 2, .frames = 64, .pool_bytes = 8 << 20, .memory_nodes = 1});
  auto a = cluster.session(0), b = cluster.session(1);
  BufferPool &pa = cluster.pool(0), &pb = cluster.pool(1);
  std::vector<PageId> pages;
  const uint64_t room = *pa.free_pages(*a);
  for (;;) {
    auto page = (pages.size() % 2 ? pa : pb).allocate(pages.size() % 2 ? *a : *b, 1);
    if (!page) {
      EXPECT_EQ(page.error(), Errc::kNoSpace);
      break;
    }
    pages.push_back(*page);
  }
  EXPECT_EQ(pages.size(), room);
  EXPECT_EQ(pa.allocate(*a, 64).error(), Errc::kNoSpace);
  scribble(pb, *b, pages[7]);
  const uint64_t version = pb.fix_shared(*b, pages[7])->header().version;
  ASSERT_TRUE(pa.free(*a, pages[7], 1));
  auto again = pb.allocate(*b, 1);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(*again, pages[7]);
  expect_zero_but_for_its_version(pb, *b, *again);
  EXPECT_GT(pb.fix_shared(*b, *again)->header().version, version) << "versions are never reset";
}

// space.housekeeping-kept
TEST(PageAllocator, AFullPoolHasPagesLeftForHousekeeping) {
  Cluster cluster({.nodes = 1, .frames = 128, .pool_bytes = 48 << 20, .memory_nodes = 2});
  auto a = cluster.session(0);
  BufferPool& pool = cluster.pool(0);
  const uint64_t room = *pool.free_pages(*a);
  uint64_t taken = 0;
  PageId data;
  for (uint32_t count : {64u, 1u})
    for (;;) {
      auto page = pool.allocate(*a, count);
      if (!page) break;
      taken += count;
      data = *page;
    }
  EXPECT_EQ(taken, room);
  EXPECT_EQ(*pool.free_pages(*a), 0u);
  std::set<uint64_t> kept;
  for (;;) {
    auto page = pool.allocate(*a, 1, PageUse::kHousekeeping);
    if (!page) {
      EXPECT_EQ(page.error(), Errc::kNoSpace);
      break;
    }
    EXPECT_TRUE(kept.insert(page->raw).second);
    EXPECT_EQ(page->node(), MemoryNodeId{0});
    EXPECT_EQ(*pool.free_pages(*a), 0u) << "what is broken into is not for data either";
    ASSERT_EQ(pool.allocate(*a, 1).error(), Errc::kNoSpace);
  }
  EXPECT_GE(kept.size(), 64u);
  ASSERT_TRUE(pool.free(*a, PageId{*kept.begin()}, 1));
  EXPECT_EQ(pool.allocate(*a, 1).error(), Errc::kNoSpace) << "given back, it is kept again";
  EXPECT_EQ(pool.allocate(*a, 1, PageUse::kHousekeeping)->raw, *kept.begin());
  ASSERT_TRUE(pool.free(*a, data, 1));
  EXPECT_EQ(*pool.allocate(*a, 1, PageUse::kHousekeeping), data) << "what is kept is taken last";
}

TEST(PageAllocator, ExtentsAreGivenBackWhole) {
  Cluster cluster({.nodes = 1, .frames = 256, .pool_bytes = 32 << 20});
  auto a = cluster.session(0);
  BufferPool& pool = cluster.pool(0);
  const uint64_t before = *pool.free_pages(*a);
  const PageId extent = *pool.allocate(*a, 64);
  EXPECT_EQ(*pool.free_pages(*a), before - 64);
  for (int i = 0; i < 64; i += 9) scribble(pool, *a, extent + i);
  ASSERT_TRUE(pool.free(*a, extent, 64));
  EXPECT_EQ(*pool.free_pages(*a), before);
  for (int i = 0; i < 64; ++i) expect_zero_but_for_its_version(pool, *a, extent + i);
  EXPECT_EQ(pool.free(*a, extent, 64).error(), Errc::kCorrupt) << "twice";
  for (uint8_t n : {0, 1}) {
    EXPECT_EQ(pool.free(*a, PageId::at({n}, 0), 1).error(), Errc::kCorrupt) << "the root page";
    EXPECT_EQ(pool.free(*a, PageId::at({n}, 1), 1).error(), Errc::kCorrupt) << "a map page";
  }
  EXPECT_EQ(pool.free(*a, PageId::at({2}, 64), 64).error(), Errc::kCorrupt) << "no such memory node";
}

TEST(PageAllocator, MemoryNodesGivePagesInTurn) {
  Cluster cluster({.nodes = 2, .pool_bytes = 96 << 20, .memory_nodes = 3});
  for (int node = 0; node < 2; ++node) {
    auto session = cluster.session(node);
    std::map<std::pair<uint8_t, uint32_t>, int> given;
    for (int i = 0; i < 30; ++i) {  // a table grows: extents, and now and then a single page
      for (const uint32_t count : {64u, 1u}) {
        const auto page = cluster.pool(node).allocate(*session, count);
        ASSERT_TRUE(page.ok());
        ++given[{page->node().value, count}];
      }
    }
    for (uint8_t n = 0; n < 3; ++n) {
      EXPECT_EQ((given[{n, 1u}]), 10) << "memory node " << int(n);
      EXPECT_EQ((given[{n, 64u}]), 10) << "memory node " << int(n);
    }
  }
}

// Memory node 0 holds rings and words, too, so it is full first.
TEST(PageAllocator, AFullMemoryNodeLeavesItsTurnToTheOthers) {
  Cluster cluster({.nodes = 2, .frames = 256, .pool_bytes = 24 << 20, .memory_nodes = 2});
  auto a = cluster.session(0), b = cluster.session(1);
  BufferPool &pa = cluster.pool(0), &pb = cluster.pool(1);
  const uint64_t room[2] = {*pa.free_pages(*a, {0}), *pa.free_pages(*a, {1})};
  EXPECT_LT(room[0] + 64, room[1]);
  uint64_t given[2] = {0, 0};
  PageId last[2];
  std::set<uint64_t> taken;
  for (;;) {
    auto page = taken.size() % 2 ? pb.allocate(*b, 1) : pa.allocate(*a, 1);
    if (!page) {
      EXPECT_EQ(page.error(), Errc::kNoSpace);
      break;
    }
    EXPECT_TRUE(taken.insert(page->raw).second);
    last[page->node().value] = *page;
    ++given[page->node().value];
    if (given[0] < room[0]) {
      EXPECT_LE(std::max(given[0], given[1]) - std::min(given[0], given[1]), 3u);
    }
  }
  EXPECT_EQ(given[0], room[0]);
  EXPECT_EQ(given[1], room[1]);
  for (uint8_t n : {0, 1}) {  // a requester gets the room, wherever it is
    ASSERT_TRUE(pb.free(*b, last[n], 1));
    auto again = pa.allocate(*a, 1);
    ASSERT_TRUE(again.ok());
    EXPECT_EQ(*again, last[n]);
    EXPECT_EQ(pa.allocate(*a, 1).error(), Errc::kNoSpace);
  }
}

}  // namespace
}  // namespace bufmgr
