// What a reader of a page waits for, when other nodes have changed its rows: counts that do not vary.
#include "extension/engine/heap/page_statuses.hpp"
#include "tests/unit/engine/heap/heap_fixture.hpp"

namespace engine_test {

constexpr int kOnPage = 20;

class PageStatusesTest : public HeapTest {
 protected:
  static uint64_t awaited(Worker& worker) {
    return worker.session().coherence().counters().get(coherence::Counter::kAwaited);
  }
  // On one page, each by a transaction of its own on node 0, and seen there.
  std::vector<Tid> rows() {
    std::vector<Tid> tids;
    for (int i = 0; i < kOnPage; ++i) tids.push_back(committed("0"));
    for (const Tid tid : tids) EXPECT_EQ(tid.block, tids.front().block);
    return tids;
  }
  // What node 1 sees of the block, and how many round trips it waits for beyond those of the page.
  int seen(uint32_t block, uint64_t* trips) {
    const Snapshot now = b_.snapshot();
    auto page = std::make_unique<PageRows>();
    const uint64_t before = awaited(b_);
    EXPECT_TRUE(heap_b_->read_block(block, now, *page, coherence::Intent::kRead).ok());
    *trips = awaited(b_) - before;
    b_->set_oldest(std::nullopt);
    return page->count;
  }
};

TEST_F(PageStatusesTest, ManyCommitsAreOneRoundTrip) {
  const auto tids = rows();
  uint64_t first, second;
  EXPECT_EQ(seen(tids.front().block, &first), kOnPage);
  EXPECT_EQ(seen(tids.front().block, &second), kOnPage);
  EXPECT_EQ(second, 0u);
  EXPECT_LE(first, 4u);  // the page, its relation's map, and the statuses
}

TEST_F(PageStatusesTest, WhatRunsIsAskedForOnceAPage) {
  const auto tids = rows();
  uint64_t trips;
  seen(tids.front().block, &trips);
  for (const Tid tid : tids) update(*heap_a_, tid, "1", 0);  // by one transaction, which goes on
  EXPECT_EQ(seen(tids.front().block, &trips), kOnPage);
  seen(tids.front().block, &trips);
  EXPECT_EQ(trips, 1u);
  a_.commit();
  EXPECT_EQ(seen(tids.front().block, &trips), kOnPage);
}

TEST_F(PageStatusesTest, WhatWasFoundRunningCountsUntilThePageIsRead) {
  const auto tids = rows();
  update(*heap_a_, tids.front(), "1", 0);
  const TxnId maker = a_->current().top();
  {
    StatusBatch batch(b_.txns());
    ASSERT_TRUE(batch.is_unknown(maker));
    batch.add(maker);
    ASSERT_TRUE(batch.ask().ok());
    EXPECT_FALSE(batch.is_unknown(maker));
    a_.commit();
    EXPECT_TRUE(b_->status(maker)->running());
  }
  EXPECT_TRUE(b_->status(maker)->committed());
}

// Its word names another id.
TEST_F(PageStatusesTest, ASavepointIsLeftToStatus) {
  committed("0");
  ASSERT_TRUE(a_->sub_begin(2).ok());
  const TxnId savepoint = *a_->id_for_write();
  StatusBatch batch(b_.txns());
  batch.add(savepoint);
  ASSERT_TRUE(batch.ask().ok());
  EXPECT_FALSE(batch.is_unknown(savepoint));
  EXPECT_EQ(b_->status(savepoint)->top, a_->current().top());
  a_->sub_commit(2);
  a_.commit();
  EXPECT_TRUE(b_->status(savepoint)->committed());
}

TEST_F(PageStatusesTest, ManyMoreIdsThanABatchHasRoomFor) {
  std::vector<Tid> tids;
  for (int i = 0; i < 120; ++i) tids.push_back(committed("0"));
  uint64_t trips;
  int count = seen(tids.front().block, &trips);
  EXPECT_GT(count, 100);
  EXPECT_LE(trips, 8u);
}

}  // namespace engine_test
