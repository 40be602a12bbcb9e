#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <thread>

#include "bufmgr/buffer_pool.hpp"
#include "bufmgr/log/record.hpp"
#include "tests/support/cluster_fixture.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/random_change.hpp"

namespace bufmgr {
namespace {

using coherence::Errc;
using gcl_test::Cluster;
using gcl_test::random_change;

// What the record changes, but for its steps.
std::vector<std::pair<PageId, uint64_t>> pages_of(std::span<const std::byte> record) {
  std::vector<std::pair<PageId, uint64_t>> pages;
  RecordReader reader(record);
  while (const RecordPage* page = reader.next_page()) pages.emplace_back(page->page, page->version);
  EXPECT_FALSE(reader.corrupt());
  return pages;
}

int copies_of(std::span<const std::byte> record) {
  int copies = 0;
  RecordReader reader(record);
  while (reader.next_page())
    while (const RecordStep* step = reader.next_step()) copies += step->kind == RecordStep::kCopy;
  return copies;
}

// Whether all behind their headers is the same, byte by byte.
bool same_pages(std::span<const std::byte> in_ring, std::span<const std::byte> in_log) {
  const auto pages = in_ring.subspan(sizeof(RecordHeader));
  const size_t brief = in_log.size() - std::min(in_log.size(), pages.size());
  return brief <= sizeof(RecordHeader) && std::ranges::equal(pages, in_log.subspan(brief));
}

TEST(Redo, TheRingHoldsWhatTheLogHoldsWithBytesForCopies) {
  Cluster cluster({.nodes = 2, .keep_records = true, .workers = true});
  auto a = cluster.session(0), b = cluster.session(1);
  const auto pages = gcl_test::pages_of_two_memory_nodes(cluster.pool(0), *a, 64);
  std::mt19937_64 random(3);
  for (int i = 0; i < 8; ++i) random_change(cluster.pool(0), *a, pages, random);
  ASSERT_TRUE(a->push_redo().ok());
  const RegionSpan ring = cluster.pool(1).ring_of({0});
  auto reader = RingReader::open(b->memory(), ring.at, ring.bytes);  // a survivor reads it
  ASSERT_TRUE(reader.ok());
  std::vector<std::byte> buffer(kMiniRecordMax);
  int same = 0, copied = 0;
  for (const auto& logged : cluster.log(0).records()) {
    auto record = reader->next(b->memory(), buffer);
    ASSERT_TRUE(record.ok());
    EXPECT_EQ(copies_of(*record), 0);
    EXPECT_EQ(RecordReader(*record).header().sequence, RecordReader(logged).header().sequence);
    EXPECT_EQ(pages_of(*record), pages_of(logged));
    const bool equal = same_pages(*record, logged);
    EXPECT_EQ(equal, copies_of(logged) == 0);
    (equal ? same : copied)++;
  }
  EXPECT_GT(same, 0);
  EXPECT_GT(copied, 0);
  EXPECT_EQ(reader->next(b->memory(), buffer).error(), Errc::kNotFound);
  EXPECT_EQ(reader->position(), cluster.pool(0).ring().head());
}

TEST(Redo, AChangedPageStaysUntilItsLogIsFlushed) {
  Cluster cluster({.nodes = 2, .lazy_log = true});
  auto a = cluster.session(0);
  const PageId id = *cluster.pool(0).allocate(*a, 1);
  cluster.log(0).set_stuck(true);
  {
    MiniTransaction change(cluster.pool(0), *a);
    ASSERT_TRUE(change.reserve(8));
    auto page = cluster.pool(0).fix_exclusive(*a, id);
    change.join(*page);
    change.set(*page, 64, uint64_t{5});
    change.commit();
  }
  const uint64_t before = cluster.log(0).requests();
  std::atomic<bool> read{false};
  std::thread reader([&] {
    auto b = cluster.session(1);
    auto page = cluster.pool(1).fix_shared(*b, id);
    EXPECT_TRUE(page.ok());
    EXPECT_EQ(*reinterpret_cast<const uint64_t*>(page->bytes() + 64), 5u);
    read.store(true);
  });
  EXPECT_TRUE(gcl_test::eventually([&] { return cluster.log(0).requests() > before; }));
  std::this_thread::sleep_for(std::chrono::milliseconds(50));  // the reader could have it by then
  EXPECT_FALSE(read.load());
  cluster.log(0).set_stuck(false);
  cluster.log(0).request_flush({~uint64_t{0} >> 1});
  reader.join();
}

}  // namespace
// log.ring-before-words
TEST(Redo, IsInThePoolBeforeItsSessionWritesAWord) {
  Cluster cluster({.nodes = 1, .workers = false});
  auto session = cluster.session(0);
  BufferPool& pool = cluster.pool(0);
  const PageId page = *pool.allocate(*session, 1);
  const auto word = pool.region(Region::kTxnWords).at;
  const auto pushed = [&] { return pool.ring().pushed() == pool.ring().head(); };
  EXPECT_FALSE(pushed());
  ASSERT_TRUE(session->unordered_memory().faa(word, 1).ok());
  EXPECT_FALSE(pushed());
  ASSERT_TRUE(session->memory().faa(word, 1).ok());
  EXPECT_TRUE(pushed());
  MiniTransaction change(pool, *session);
  ASSERT_TRUE(change.reserve(64).ok());
  {
    auto guard = pool.fix_exclusive(*session, page);
    ASSERT_TRUE(guard.ok());
    change.join(*guard);
    change.set<uint64_t>(*guard, kPageBody, 1);
    change.commit();
    EXPECT_FALSE(pushed());
    ASSERT_TRUE(session->memory().load(word).ok()) << "under a guard, too";
  }
  EXPECT_TRUE(pushed());
}

// log.redo-before-page
TEST(Redo, IsInThePoolBeforeItsPageLeaves) {
  Cluster cluster({.nodes = 2});
  auto mine = cluster.session(0), peers = cluster.session(1);
  const PageId page = *cluster.pool(0).allocate(*mine, 1);
  for (uint64_t i = 0; i < 200; ++i) {
    const int at = int(i % 2);
    bufmgr::Session& session = at == 0 ? *mine : *peers;
    MiniTransaction change(cluster.pool(at), session);
    ASSERT_TRUE(change.reserve(64).ok());
    auto guard = cluster.pool(at).fix_exclusive(session, page);
    ASSERT_TRUE(guard.ok());
    const RedoRing& others = cluster.pool(1 - at).ring();
    EXPECT_EQ(others.pushed(), others.head()) << "of its last change";
    change.join(*guard);
    change.set<uint64_t>(*guard, kPageBody, i);
    change.commit();
  }
}

}  // namespace bufmgr
