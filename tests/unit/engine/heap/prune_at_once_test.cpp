// An update that finds its page full prunes it under the guard that it has (heap.room-at-once).
#include "tests/unit/engine/heap/heap_fixture.hpp"

namespace engine_test {

namespace {

// Two rows of this fit a page, a third one does not.
const std::string kLarge(3000, 'x');

}  // namespace

class PruneAtOnce : public HeapTest {
 protected:
  PruneAtOnce() : first_(committed(kLarge)), second_(committed(kLarge)) { EXPECT_EQ(first_.block, second_.block); }
  // The first row leaves its page; its first version stays.
  void supersede() {
    EXPECT_NE(update(*heap_a_, first_, kLarge, 0).tid.block, first_.block);
    a_.commit();
  }
  // Where the second row's new version is, and how many pages the update asked for.
  Tid update_second(Worker& worker, Heap& heap, uint64_t* accesses) {
    const uint64_t before = worker.session().page_accesses();
    const Tid now = update(heap, second_, kLarge, 0).tid;
    *accesses = worker.session().page_accesses() - before;
    worker.commit();
    return now;
  }

  Tid first_, second_;
  uint64_t accesses_ = 0;
};

TEST_F(PruneAtOnce, ItTakesNoOtherGuardAndNoCopy) {
  supersede();
  a_.pass_horizon();
  EXPECT_EQ(update_second(a_, *heap_a_, &accesses_).block, second_.block);
  EXPECT_EQ(accesses_, 1u);
  EXPECT_EQ(at(*heap_b_, first_, b_.snapshot()), "-");
  EXPECT_EQ(chain(*heap_b_, second_, b_.snapshot()), kLarge);
  EXPECT_EQ(scan_all(*heap_b_, b_.snapshot()).size(), 2u);
}

// So the next prune of the page, and readers, need not ask for the status of those rows' maker.
TEST_F(PruneAtOnce, ItLeavesHints) {
  const Tid small = committed("small");
  ASSERT_EQ(small.block, second_.block);
  supersede();
  a_.pass_horizon();
  EXPECT_EQ(update_second(a_, *heap_a_, &accesses_).block, second_.block);
  PageRows rows;  // as they were before this reader stores hints
  ASSERT_TRUE(heap_a_->read_block(small.block, a_.snapshot(), rows).ok());
  EXPECT_EQ(HeapPage(rows.page).row_header(small.offset).creator.kind(), RowTxnKind::kFrozen);
  a_->set_oldest(std::nullopt);
}

TEST_F(PruneAtOnce, AStatusThatIsNotKnownIsAskedForOnACopy) {
  supersede();
  a_.pass_horizon();
  EXPECT_EQ(update_second(b_, *heap_b_, &accesses_).block, second_.block);
  EXPECT_GT(accesses_, 1u);
  EXPECT_EQ(at(*heap_a_, first_, a_.snapshot()), "-");
  EXPECT_EQ(chain(*heap_a_, second_, a_.snapshot()), kLarge);
}

// A fresh horizon does not help as long as somebody needs the version: the row leaves the page, too.
TEST_F(PruneAtOnce, AVersionThatIsStillSeenStays) {
  const auto old = b_.snapshot();
  supersede();
  EXPECT_NE(update_second(a_, *heap_a_, &accesses_).block, second_.block);
  EXPECT_EQ(at(*heap_b_, first_, old), kLarge);
  EXPECT_EQ(at(*heap_b_, second_, old), kLarge);
  b_->set_oldest(std::nullopt);
}

// Without member workers, which publish: what has ended is beyond the published horizon until the update looks.
TEST(PruneAtOnceAlone, AFreshHorizonIsLookedAt) {
  Engine engine({.cluster = {.nodes = 1}, .tickers = false});
  Worker me(engine, 0);
  Heap heap(me.txns(), *Heap::create(me.txns()));
  const auto put = [&] {
    const auto tid = heap.insert(TestRow(kLarge).image(), 0);
    EXPECT_TRUE(tid.ok());
    me.commit();
    return *tid;
  };
  const auto update = [&](Tid row) {
    (void)me.snapshot();
    const auto done = heap.update({.tid = row, .row = TestRow(kLarge).image(), .command = 0, .indexed_changed = false});
    EXPECT_TRUE(done.ok() && done->row.result == RowResult::kOk);
    me.commit();
    me->set_oldest(std::nullopt);
    return done->tid;
  };
  const Tid first = put(), second = put();
  ASSERT_NE(update(first).block, first.block);
  const Cts before = me->horizon();
  EXPECT_EQ(update(second).block, second.block);
  EXPECT_GT(me->horizon(), before);
}

}  // namespace engine_test
