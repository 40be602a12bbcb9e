// The page provider: what it makes room with.
#include <gtest/gtest.h>

#include "bufmgr/frame/page_provider.hpp"
#include "tests/support/cluster_fixture.hpp"

namespace bufmgr {
namespace {

// Three quarters of the frames are wanted all the time, pages that are wanted once pass through the rest.  There is
// always enough that is old, so hardly anything of the three quarters goes: of 32 pages less than one, which the epoch
// that began meanwhile made look old.
TEST(PageProvider, WhatIsWantedAllTheTimeStaysWhileEnoughIsOld) {
  constexpr uint32_t kFrames = 2048, kWanted = kFrames * 3 / 4, kPassing = 4 * kFrames;
  gcl_test::Cluster cluster({.nodes = 1, .frames = kFrames, .pool_bytes = 128 << 20, .workers = false});
  BufferPool& pool = cluster.pool(0);
  auto session = cluster.session(0), provider = cluster.session(0);
  std::vector<PageId> pages;
  while (pages.size() < kWanted + kPassing) {
    auto extent = pool.allocate(*session, 64);
    ASSERT_TRUE(extent.ok());
    for (uint32_t i = 0; i < 64; ++i) pages.push_back(*extent + i);
  }
  auto look = [&](PageId page) { ASSERT_TRUE(pool.fix_optimistic(*session, page).ok()); };
  uint64_t gone = 0, refills = 0;
  auto look_at_the_wanted = [&] {
    const uint64_t before = session->traffic().fetched;
    for (uint32_t i = 0; i < kWanted; ++i) look(pages[i]);
    gone += session->traffic().fetched - before;
  };
  look_at_the_wanted();
  gone = 0;  // they had to come once
  for (uint32_t i = kWanted; i < kWanted + kPassing; ++i) {
    look(pages[i]);
    if (pool.free_frames() > PageProvider::low_mark(kFrames)) continue;
    ++refills;
    ASSERT_TRUE(pool.run_provider_once(*provider));
    look_at_the_wanted();
  }
  EXPECT_GT(refills, 100u);
  EXPECT_LT(gone, refills);
}

}  // namespace
}  // namespace bufmgr
