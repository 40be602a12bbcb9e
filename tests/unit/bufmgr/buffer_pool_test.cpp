#include "bufmgr/buffer_pool.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <set>

#include "tests/support/cluster_fixture.hpp"

namespace bufmgr {
namespace {

using coherence::Errc;
using gcl_test::Cluster;

void write_word(BufferPool& pool, Session& session, PageId id, uint32_t offset, uint64_t word) {
  MiniTransaction change(pool, session);
  ASSERT_TRUE(change.reserve(8));
  auto page = pool.fix_exclusive(session, id);
  ASSERT_TRUE(page);
  change.join(*page);
  change.set(*page, offset, word);
  change.commit();
}

uint64_t read_word(BufferPool& pool, Session& session, PageId id, uint32_t offset) {
  auto page = pool.fix_shared(session, id);
  EXPECT_TRUE(page.ok());
  uint64_t word;
  memcpy(&word, page->bytes() + offset, 8);
  return word;
}

TEST(BufferPool, WhatOneNodeWritesTheOthersRead) {
  Cluster cluster({.nodes = 3});
  auto a = cluster.session(0), b = cluster.session(1), c = cluster.session(2);
  auto id = cluster.pool(0).allocate(*a, 1);
  ASSERT_TRUE(id);
  for (uint64_t round = 1; round < 50; ++round) {
    write_word(cluster.pool(round % 3), round % 3 == 0 ? *a : round % 3 == 1 ? *b : *c, *id, 64, round);
    EXPECT_EQ(read_word(cluster.pool(0), *a, *id, 64), round);
    EXPECT_EQ(read_word(cluster.pool(1), *b, *id, 64), round);
    EXPECT_EQ(read_word(cluster.pool(2), *c, *id, 64), round);
  }
}

TEST(BufferPool, EveryMiniTransactionRaisesTheVersionByOne) {
  Cluster cluster({.nodes = 2});
  auto a = cluster.session(0), b = cluster.session(1);
  const PageId id = *cluster.pool(0).allocate(*a, 1);
  const uint64_t before = cluster.pool(0).fix_shared(*a, id)->header().version;
  write_word(cluster.pool(0), *a, id, 100 * 8, 1);
  write_word(cluster.pool(1), *b, id, 100 * 8, 2);
  EXPECT_EQ(cluster.pool(0).fix_shared(*a, id)->header().version, before + 2);
}

TEST(BufferPool, TryNeverFetches) {
  Cluster cluster({.nodes = 2});
  auto a = cluster.session(0), b = cluster.session(1);
  const PageId id = *cluster.pool(0).allocate(*a, 1);
  write_word(cluster.pool(0), *a, id, 64, 1);
  EXPECT_EQ(cluster.pool(1).try_exclusive(*b, id).error(), Errc::kWouldBlock);
  EXPECT_EQ(cluster.pool(1).try_shared(*b, id).error(), Errc::kWouldBlock);
  EXPECT_TRUE(cluster.pool(0).try_exclusive(*a, id).ok());
  EXPECT_FALSE(cluster.pool(1).peek(*b, id));
}

TEST(BufferPool, AnOptimisticCopyCountsOnlyWhileNobodyWrote) {
  Cluster cluster({.nodes = 2});
  auto a = cluster.session(0), b = cluster.session(1);
  BufferPool &pa = cluster.pool(0), &pb = cluster.pool(1);
  const PageId id = *pa.allocate(*a, 1);
  write_word(pa, *a, id, 64, 17);
  auto look = pb.fix_optimistic(*b, id);
  ASSERT_TRUE(look);
  EXPECT_EQ(look->get<uint64_t>(64), 17u);
  EXPECT_TRUE(look->validate());
  write_word(pa, *a, id, 64, 18);
  EXPECT_FALSE(look->validate());
  EXPECT_EQ(pb.upgrade(*b, *look).error(), Errc::kRestart);
  look = pb.fix_optimistic(*b, id);
  ASSERT_TRUE(look);
  EXPECT_EQ(look->get<uint64_t>(64), 18u);
  auto guard = pb.upgrade(*b, *look);  // asks node 0 for its share
  EXPECT_TRUE(guard.ok());
}

TEST(BufferPool, CopyPageIsTheWholePage) {
  Cluster cluster({.nodes = 2});
  auto a = cluster.session(0), b = cluster.session(1);
  const PageId id = *cluster.pool(0).allocate(*a, 1);
  write_word(cluster.pool(0), *a, id, kPageSize - 8, 99);
  alignas(8) std::byte copy[kPageSize];
  ASSERT_TRUE(cluster.pool(1).copy_page(*b, id, copy));
  auto guard = cluster.pool(1).fix_shared(*b, id);
  EXPECT_EQ(memcmp(copy, guard->bytes(), kPageSize), 0);
  EXPECT_EQ(*reinterpret_cast<uint64_t*>(copy + kPageSize - 8), 99u);
}

TEST(BufferPool, OddCopiesAreExact) {
  Cluster cluster({.nodes = 1});
  auto a = cluster.session(0);
  BufferPool& pool = cluster.pool(0);
  const PageId id = *pool.allocate(*a, 1);
  std::byte pattern[600];
  for (int i = 0; i < 600; ++i) pattern[i] = std::byte(i * 7);
  {
    MiniTransaction change(pool, *a);
    ASSERT_TRUE(change.reserve(600));
    auto page = pool.fix_exclusive(*a, id);
    change.join(*page);
    change.write(*page, 1000, pattern, sizeof pattern);
    change.commit();
  }
  auto look = pool.fix_optimistic(*a, id);
  for (uint32_t from = 0; from < 17; ++from) {
    for (uint32_t bytes : {0, 1, 3, 7, 8, 9, 15, 64, 500}) {
      std::byte got[512];
      look->copy(1000 + from, got, bytes);
      EXPECT_EQ(memcmp(got, pattern + from, bytes), 0) << from << " " << bytes;
    }
  }
  EXPECT_TRUE(look->validate());
}

TEST(BufferPool, HintsNeedOwnershipAndNoRedo) {
  Cluster cluster({.nodes = 2});
  auto a = cluster.session(0), b = cluster.session(1);
  const PageId id = *cluster.pool(0).allocate(*a, 1);
  write_word(cluster.pool(0), *a, id, 64, 1);
  const uint64_t redo = cluster.pool(0).ring().head();
  {
    auto page = cluster.pool(0).fix_shared(*a, id);
    EXPECT_TRUE(page->set_hint(72, 5));
  }
  EXPECT_EQ(cluster.pool(0).ring().head(), redo);
  EXPECT_EQ(read_word(cluster.pool(1), *b, id, 72), 5u);  // travelled with the page
  {
    auto page = cluster.pool(1).fix_shared(*b, id);
    EXPECT_FALSE(page->set_hint(72, 6));  // only shared here
  }
}

TEST(BufferPool, PagesThatAreNotThereAreNotFound) {
  Cluster cluster({.nodes = 1});
  auto a = cluster.session(0);
  BufferPool& pool = cluster.pool(0);
  for (uint8_t n : {0, 1}) {
    const uint64_t pages = pool.coherence_pool().pages({n});
    EXPECT_TRUE(pool.fix_shared(*a, PageId::at({n}, pages - 1)));
    EXPECT_EQ(pool.fix_shared(*a, PageId::at({n}, pages)).error(), Errc::kNotFound);
  }
  EXPECT_EQ(pool.fix_shared(*a, PageId{PageId::at({0}, 5).raw | uint64_t{1} << 48}).error(), Errc::kNotFound);
  EXPECT_EQ(pool.fix_exclusive(*a, PageId::at({3}, 1)).error(), Errc::kNotFound);
  EXPECT_EQ(pool.fix_optimistic(*a, PageId{}).error(), Errc::kNotFound);
  EXPECT_FALSE(pool.peek(*a, PageId{0x0123456789abcdef}));
}

TEST(BufferPool, ReleaseAllEndsWhatAnAbortLeftBehind) {
  Cluster cluster({.nodes = 2});
  auto a = cluster.session(0), b = cluster.session(1);
  BufferPool& pool = cluster.pool(0);
  const PageId one = *pool.allocate(*a, 1), two = *pool.allocate(*a, 1);
  {
    MiniTransaction change(pool, *a);
    ASSERT_TRUE(change.reserve(1000));
    auto g1 = pool.fix_exclusive(*a, one);
    a->next_wait(WaitOrder::kNew);
    auto g2 = pool.fix_shared(*a, two);
    EXPECT_EQ(a->guards_held(), 2);
    EXPECT_GT(a->ring_reserved(), 0u);
    a->release_all();
    EXPECT_EQ(a->guards_held(), 0);
    EXPECT_EQ(a->ring_reserved(), 0u);
    EXPECT_EQ(pool.ring().reserved_now(), 0);
    write_word(cluster.pool(1), *b, one, 64, 3);  // no other session has it
  }
  EXPECT_EQ(pool.ring().reserved_now(), 0);
  EXPECT_EQ(read_word(pool, *a, one, 64), 3u);
}

TEST(BufferPool, ANodeMayLeaveAndComeBack) {
  Cluster cluster({.nodes = 2});
  PageId id;
  {
    auto a = cluster.session(0);
    id = *cluster.pool(0).allocate(*a, 1);
    write_word(cluster.pool(0), *a, id, 64, 77);
  }
  cluster.stop(0);
  auto b = cluster.session(1);
  EXPECT_EQ(read_word(cluster.pool(1), *b, id, 64), 77u);
  write_word(cluster.pool(1), *b, id, 64, 78);
  cluster.start(0);
  auto a = cluster.session(0);
  EXPECT_EQ(read_word(cluster.pool(0), *a, id, 64), 78u);
  write_word(cluster.pool(0), *a, id, 64, 79);
  EXPECT_EQ(read_word(cluster.pool(1), *b, id, 64), 79u);
}

TEST(BufferPool, ExtraMemoryIsZeroedAndApart) {
  Cluster cluster({.nodes = 1, .extra_bytes = 100000});
  EXPECT_EQ(cluster.pool(0).extra_bytes(), 100000u);
  for (int i = 0; i < 100000; ++i) ASSERT_EQ(cluster.pool(0).extra_memory()[i], std::byte{0});
  memset(cluster.pool(0).extra_memory(), 0xff, 100000);
  auto a = cluster.session(0);
  EXPECT_TRUE(cluster.pool(0).allocate(*a, 1).ok());
}

}  // namespace
}  // namespace bufmgr
