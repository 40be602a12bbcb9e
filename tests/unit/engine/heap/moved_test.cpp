// A row that an update of a partition key moved to another relation is neither deleted nor to be followed.
#include "tests/unit/engine/engine_fixture.hpp"

namespace engine_test {

class HeapMoved : public ::testing::Test {
 protected:
  HeapMoved() : engine_({.cluster = {.nodes = 2}}), a_(engine_, 0), b_(engine_, 1) {
    auto made = Heap::create(a_.txns());
    EXPECT_TRUE(made.ok());
    heap_a_ = std::make_unique<Heap>(a_.txns(), *made);
    heap_b_ = std::make_unique<Heap>(b_.txns(), *made);
    auto tid = heap_a_->insert(TestRow("row").image(), 0);
    EXPECT_TRUE(tid.ok());
    tid_ = *tid;
    a_.commit();
  }
  RowOutcome removed(Heap& heap, bool moves) {
    auto done = heap.remove(tid_, 0, true, nullptr, moves);
    EXPECT_TRUE(done.ok());
    return *done;
  }

  Engine engine_;
  Worker a_, b_;
  std::unique_ptr<Heap> heap_a_, heap_b_;
  Tid tid_;
  RowBuffer buffer_;
};

TEST_F(HeapMoved, ALaterTransactionIsToldAndDoesNotFollow) {
  EXPECT_EQ(removed(*heap_a_, true).result, RowResult::kOk);
  a_.commit();
  RowOutcome late = removed(*heap_b_, false);
  EXPECT_EQ(late.result, RowResult::kUpdated);
  EXPECT_TRUE(late.conflict.moved);
  auto lock = heap_b_->lock({.tid = tid_, .command = 0, .follow = true}, buffer_.bytes);
  ASSERT_TRUE(lock.ok());
  EXPECT_EQ(lock->row.result, RowResult::kUpdated);
  EXPECT_TRUE(lock->row.conflict.moved);
  TestRow row("new");
  auto update = heap_b_->update({.tid = tid_, .row = row.image(), .command = 0});
  ASSERT_TRUE(update.ok());
  EXPECT_EQ(update->row.result, RowResult::kUpdated);
  EXPECT_TRUE(update->row.conflict.moved);
  EXPECT_EQ(heap_b_->latest(tid_, b_.snapshot())->offset, tid_.offset);
}

TEST_F(HeapMoved, WhatWasRolledBackLeavesNoTrace) {
  EXPECT_EQ(removed(*heap_a_, true).result, RowResult::kOk);
  a_.abort();
  EXPECT_EQ(removed(*heap_b_, false).result, RowResult::kOk);
  b_.commit();
  RowOutcome late = removed(*heap_a_, false);
  EXPECT_EQ(late.result, RowResult::kDeleted);
  EXPECT_FALSE(late.conflict.moved);
}

}  // namespace engine_test
