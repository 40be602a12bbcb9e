// A relation's map: what it costs to find room through it, and what it takes of the pool.
#include "extension/engine/heap/relation_map.hpp"
#include "tests/unit/engine/engine_fixture.hpp"

namespace engine_test {

// Two rows of it do not fit a page.
TestRow page_of_row() { return TestRow(std::string(6000, 'x')); }

class MapTest : public ::testing::Test {
 protected:
  static constexpr int kFillers = 3;
  MapTest() : engine_({.cluster = {.nodes = kFillers, .frames = 4096}}) {
    for (int n = 0; n < kFillers; ++n) workers_.push_back(std::make_unique<Worker>(engine_, n));
    relation_ = *Heap::create(worker(0).txns());
    for (int n = 0; n < kFillers; ++n) heaps_.push_back(std::make_unique<Heap>(worker(n).txns(), relation_));
  }
  Worker& worker(int n) { return *workers_[size_t(n)]; }
  void fill_pages(int node, int pages) {
    for (int i = 0; i < pages; ++i) ASSERT_TRUE(heaps_[size_t(node)]->insert(page_of_row().image(), 0).ok());
  }
  uint64_t fetched(int node) { return worker(node).session().traffic().fetched; }

  Engine engine_;
  std::vector<std::unique_ptr<Worker>> workers_;
  RelationId relation_;
  std::vector<std::unique_ptr<Heap>> heaps_;
};

TEST_F(MapTest, ANodeThatFillsPagesFetchesNoOtherNodesMap) {
  constexpr int kPages = 40;
  for (int n = 0; n < kFillers; ++n) fill_pages(n, 70);  // all have maps, and an extent beyond the first
  const uint64_t before = fetched(0);
  for (int i = 0; i < kPages; ++i) {
    fill_pages(1, 1);
    fill_pages(2, 1);
    fill_pages(0, 1);
  }
  EXPECT_EQ(fetched(0) - before, uint64_t{kPages}) << "each page that is filled, and nothing else";
  EXPECT_EQ(scan_all(*heaps_[0], worker(0).snapshot(1)).size(), 70u + kPages);  // its own, not yet committed
}

// What a node that stopped has left empty is filled before the table grows (heap.away-maps-filled).
TEST_F(MapTest, RoomInMapsOfANodeThatIsAwayIsFilledByTheOthers) {
  fill_pages(1, 40);
  fill_pages(0, 1);
  worker(1).commit();
  worker(0).commit();
  std::vector<FoundRow> rows = scan_rows(*heaps_[0], worker(0).snapshot());
  for (const FoundRow& row : rows) {
    ASSERT_EQ(heaps_[0]->remove(row.tid, 1)->result, RowResult::kOk);
  }
  worker(0).commit();
  worker(0).pass_horizon();
  NoIndexes none;
  for (int round = 0; round < 2; ++round) ASSERT_TRUE(heaps_[0]->vacuum(none, gcl_test::kPatienceMs).ok());
  const uint32_t before = *heaps_[0]->used_blocks();
  heaps_[1].reset();
  workers_[1].reset();
  engine_.pause_ticker(1);
  {
    Worker last(engine_, 1);
    last->leave();
  }
  ASSERT_TRUE(worker(0)->tick().ok());
  fill_pages(0, 40);
  EXPECT_EQ(*heaps_[0]->used_blocks(), before);
}

TEST_F(MapTest, ARelationTakesAsManyPagesAsItsRowsNeed) {
  auto taken = [&, free = *worker(0).txns().pool().free_pages(worker(0).session())] {
    return int(free - *worker(0).txns().pool().free_pages(worker(0).session()));
  };
  Heap& heap = *heaps_[0];
  EXPECT_EQ(heap.pages()->allocated, 1u) << "empty";
  EXPECT_EQ(taken(), 0);
  for (int n = 0; n < kFillers; ++n) {
    fill_pages(n, 1);
    EXPECT_EQ(heap.pages()->allocated, 1u + 2 * (n + 1)) << "a map page and one of rows for each node that has any";
    EXPECT_EQ(taken(), 2 * (n + 1));
  }
  fill_pages(0, 7);
  EXPECT_EQ(heap.pages()->allocated, 14u) << "one by one";
  fill_pages(0, 1);
  EXPECT_EQ(heap.pages()->allocated, 22u) << "eight at a time";
  fill_pages(0, 56);
  EXPECT_EQ(heap.pages()->allocated, 7u + 63 + 64) << "then an extent";
  EXPECT_EQ(uint64_t(taken()) + 1, heap.pages()->allocated);
  for (uint32_t i = 0; i < *heap.used_blocks(); ++i) {
    const uint32_t block = heap.block_at(i);
    auto rows = std::make_unique<PageRows>();
    ASSERT_TRUE(heap.read_block(block, {.kind = SnapshotKind::kAny}, *rows).ok()) << block;
  }
  for (int n = 0; n < kFillers; ++n) worker(n).commit();
  EXPECT_EQ(scan_all(heap, worker(0).snapshot()).size(), 67u);
  ASSERT_TRUE(Heap::drop(worker(0).txns(), relation_).ok());
  EXPECT_EQ(taken(), -1) << "the header was there before";
}

// Others take the last whole extents: what is left of the pool's broken ones is still good for a small table.
TEST_F(MapTest, ASmallTableFindsRoomInAPoolWithoutWholeExtents) {
  auto& pool = worker(0).txns().pool();
  Session& session = worker(0).session();
  while (pool.allocate(session, kExtentPages).ok()) {
  }
  ASSERT_GT(*pool.free_pages(session), 12u);
  while (*pool.free_pages(session) > 12) ASSERT_TRUE(pool.allocate(session, 1).ok());
  uint32_t filled = 0;
  while (heaps_[0]->insert(page_of_row().image(), 0).ok()) ++filled;
  EXPECT_EQ(filled, 11u) << "all but the map page";
  EXPECT_EQ(*heaps_[0]->used_blocks(), filled);
  EXPECT_EQ(*pool.free_pages(session), 0u);
}

TEST(Map, ASessionFindsTheMapThatAnotherOneOfItsNodeHasAdded) {
  Engine engine({.cluster = {.nodes = 1, .frames = 4096, .pool_bytes = 128 << 20}});
  Worker first(engine, 0), second(engine, 0);
  const RelationId relation = *Heap::create(first.txns());
  Heap fills(first.txns(), relation), comes_later(second.txns(), relation);
  ASSERT_TRUE(comes_later.insert(TestRow("early").image(), 0).ok());
  for (uint32_t i = 0; i <= kBlocksPerMap; ++i) ASSERT_TRUE(fills.insert(page_of_row().image(), 0).ok());
  EXPECT_GE(fills.block_at(*fills.used_blocks() - 1), kBlocksPerMap);
  for (int i = 0; i < 3; ++i) {
    auto tid = comes_later.insert(page_of_row().image(), 0);
    ASSERT_TRUE(tid.ok());
    EXPECT_TRUE(i == 0 || tid->block >= kBlocksPerMap) << tid->block;  // the first one may fit what it has begun
  }
}

}  // namespace engine_test
