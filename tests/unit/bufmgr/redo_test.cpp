#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <random>
#include <thread>

#include "bufmgr/buffer_pool.hpp"
#include "bufmgr/log/record.hpp"
#include "tests/support/cluster_fixture.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/pool_bytes.hpp"

namespace bufmgr {
namespace {

using coherence::Errc;
using gcl_test::Cluster;

struct Image {
  alignas(8) std::byte bytes[kPageSize];
};

// Applies records to images, page by page in order of versions, as a merge of several nodes' logs does.
void replay(std::map<uint64_t, Image>& images, const std::vector<std::vector<std::byte>>& records) {
  struct Step {
    uint64_t page, version;
    const std::vector<std::byte>* record;
    bool operator<(const Step& o) const { return page != o.page ? page < o.page : version < o.version; }
  };
  std::vector<Step> steps;
  for (const auto& record : records) {
    RecordReader reader(record);
    while (const RecordPage* page = reader.next()) steps.push_back({page->page, page->version, &record});
    ASSERT_FALSE(reader.corrupt());
  }
  std::sort(steps.begin(), steps.end());
  for (const Step& step : steps) {
    RecordReader reader(*step.record);
    while (const RecordPage* page = reader.next()) {
      if (page->page != step.page || !images.contains(step.page)) continue;
      EXPECT_NE(apply_to_page(reader, *page, images[step.page].bytes), Applied::kGap)
          << "page " << step.page << " version " << page->version;
    }
  }
}

// A change of one to three pages, of every kind.  Pages are taken in order of their numbers.
void random_change(BufferPool& pool, Session& session, const std::vector<PageId>& pages, std::mt19937_64& random) {
  auto below = [&](uint32_t n) { return uint32_t(random() % n); };
  std::set<PageId> chosen;
  for (uint32_t i = below(3) + 1; i > 0; --i) chosen.insert(pages[below(uint32_t(pages.size()))]);
  MiniTransaction change(pool, session);
  ASSERT_TRUE(change.reserve(40000));
  std::vector<ExclusiveGuard> guards;
  guards.reserve(chosen.size());
  for (const PageId id : chosen) {
    session.next_wait(WaitOrder::kById);
    auto guard = pool.fix_exclusive(session, id);
    ASSERT_TRUE(guard.ok());
    guards.push_back(guard.take());
    change.join(guards.back());
  }
  std::byte noise[512];
  for (auto& b : noise) b = std::byte(random());
  for (uint32_t steps = below(100) + 1; steps > 0; --steps) {
    ExclusiveGuard& page = guards[below(uint32_t(guards.size()))];
    const uint32_t bytes = below(200) + 1, at = 40 + below(kPageSize - 40 - bytes);
    switch (below(12)) {
      case 0:
        change.zero(page, at, bytes);
        break;
      case 1:
        change.move(page, at, 40 + below(kPageSize - 40 - bytes), bytes);
        break;
      case 2:
        memcpy(change.edit(page, at, bytes), noise, bytes);
        break;
      case 3:
        change.set(page, at, uint16_t(random()));
        break;
      case 4:
        if (below(8) == 0) change.format(page, PageType::kHeap, below(1000), uint16_t(8 * below(10)));
        break;
      default:
        change.write(page, at, noise + below(300), bytes);
        break;
    }
  }
  change.commit();
}

TEST(Redo, ReplayedOverOldImagesGivesThePages) {
  Cluster cluster({.nodes = 3, .frames = 32, .lazy_log = true, .keep_records = true});
  auto first = cluster.session(0);
  std::vector<PageId> pages;
  std::map<uint64_t, Image> images;
  pages = gcl_test::pages_of_two_memory_nodes(cluster.pool(0), *first, 48);
  for (const PageId id : pages) ASSERT_TRUE(cluster.pool(0).copy_page(*first, id, images[id.raw].bytes));
  std::vector<std::thread> threads;
  for (int t = 0; t < 6; ++t) {
    threads.emplace_back([&, t] {
      auto session = cluster.session(t % 3);
      std::mt19937_64 random(uint64_t(t) + 1);
      for (int i = 0; i < 150; ++i) random_change(cluster.pool(t % 3), *session, pages, random);
    });
  }
  for (auto& thread : threads) thread.join();
  std::vector<std::vector<std::byte>> records;
  for (int n = 0; n < 3; ++n) {
    for (auto& record : cluster.log(n).records()) {
      EXPECT_TRUE(sound_record(record, RecordReader(record).header().sequence));
      EXPECT_EQ(RecordReader(record).header().node, n);
      records.push_back(std::move(record));
    }
  }
  std::shuffle(records.begin(), records.end(), std::mt19937(5));  // order comes from versions alone
  replay(images, records);
  replay(images, records);  // idempotent
  for (const PageId id : pages) {
    Image now;
    ASSERT_TRUE(cluster.pool(0).copy_page(*first, id, now.bytes));
    EXPECT_EQ(memcmp(now.bytes, images[id.raw].bytes, kPageSize), 0) << "page " << id.raw;
  }
}

TEST(Redo, TheRingHoldsWhatTheLogHolds) {
  Cluster cluster({.nodes = 2, .keep_records = true, .workers = true});
  auto a = cluster.session(0), b = cluster.session(1);
  const auto pages = gcl_test::pages_of_two_memory_nodes(cluster.pool(0), *a, 64);
  std::mt19937_64 random(3);
  for (int i = 0; i < 4; ++i) random_change(cluster.pool(0), *a, pages, random);
  const RegionSpan ring = cluster.pool(1).ring_of({0});
  auto reader = RingReader::open(b->memory(), ring.at, ring.bytes);  // a survivor reads it
  ASSERT_TRUE(reader.ok());
  std::vector<std::byte> buffer(kMiniRecordMax);
  for (const auto& logged : cluster.log(0).records()) {
    auto record = reader->next(b->memory(), buffer);
    ASSERT_TRUE(record.ok());
    EXPECT_TRUE(std::equal(record->begin(), record->end(), logged.begin(), logged.end()));
  }
  EXPECT_EQ(reader->next(b->memory(), buffer).error(), Errc::kNotFound);
  EXPECT_EQ(reader->position(), cluster.pool(0).ring().head());
}

TEST(Redo, TheRingWrapsAndKeepsWhatPagesInThePoolDoNotHave) {
  Cluster cluster({.nodes = 2, .frames = 128, .ring_bytes = kRingBytesLeast, .lazy_log = true, .keep_records = true});
  auto a = cluster.session(0), b = cluster.session(1);
  BufferPool& pool = cluster.pool(0);
  const auto pages = gcl_test::pages_of_two_memory_nodes(pool, *a, 64);
  std::mt19937_64 random(9);
  std::map<uint64_t, Image> images;
  while (pool.ring().head() < 8 * pool.ring().data_bytes()) random_change(pool, *a, pages, random);
  EXPECT_GT(pool.ring().tail(), 6 * pool.ring().data_bytes());
  // What a survivor would do: the pages as the pool has them, then the ring.
  cluster.stop_workers(0);
  for (const PageId id : pages) {
    memcpy(images[id.raw].bytes, gcl_test::pool_bytes(pool.coherence_pool(), id), kPageSize);
  }
  auto reader = RingReader::open(b->memory(), pool.ring_of({0}).at, pool.ring_of({0}).bytes);
  ASSERT_TRUE(reader.ok());
  std::vector<std::vector<std::byte>> records;
  std::vector<std::byte> buffer(kMiniRecordMax);
  for (;;) {
    auto record = reader->next(b->memory(), buffer);
    if (!record) break;
    records.emplace_back(record->begin(), record->end());
  }
  EXPECT_EQ(reader->position(), pool.ring().head());
  replay(images, records);
  for (const PageId id : pages) {
    Image now;
    ASSERT_TRUE(pool.copy_page(*a, id, now.bytes));
    EXPECT_EQ(memcmp(now.bytes, images[id.raw].bytes, kPageSize), 0) << "page " << id.raw;
  }
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

TEST(Redo, ACorruptRecordIsNotSound) {
  std::vector<std::byte> record(sizeof(RecordHeader) + 32);
  RecordHeader header{RecordHeader::kMagic, uint32_t(record.size()), 0, 0, 1, 0, 0};
  memcpy(record.data(), &header, sizeof header);
  seal_record(record, 4096);
  EXPECT_TRUE(sound_record(record, 4096));
  EXPECT_FALSE(sound_record(record, 8192));
  for (size_t i = 0; i < record.size(); ++i) {
    record[i] ^= std::byte{1};
    EXPECT_FALSE(sound_record(record, 4096)) << i;
    record[i] ^= std::byte{1};
  }
  EXPECT_EQ(crc32c(0, "123456789", 9), 0xe3069283u);
}

}  // namespace
}  // namespace bufmgr
