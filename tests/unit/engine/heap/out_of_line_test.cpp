// Rows that refer to values stored elsewhere, and the rows that are the parts of such values.
#include "tests/unit/engine/engine_fixture.hpp"

namespace engine_test {

class OutOfLineTest : public ::testing::Test {
 protected:
  OutOfLineTest() : engine_({.cluster = {.nodes = 2}}), a_(engine_, 0), b_(engine_, 1) {
    auto made = Heap::create(*a_.operator->());
    EXPECT_TRUE(made.ok());
    heap_a_ = std::make_unique<Heap>(a_.txns(), *made);
    heap_b_ = std::make_unique<Heap>(b_.txns(), *made);
  }
  RowImage image(bool out_of_line) {
    RowImage image = row_.image();
    image.out_of_line = out_of_line;
    return image;
  }
  Tid insert(bool out_of_line, uint32_t command = 0) {
    auto tid = heap_a_->insert(image(out_of_line), command);
    EXPECT_TRUE(tid.ok());
    return tid ? *tid : Tid{};
  }
  std::optional<RowHeader> header(Heap& heap, Tid tid, const Snapshot& snapshot) {
    auto read = heap.fetch(tid, snapshot, buffer_.bytes);
    EXPECT_TRUE(read.ok());
    if (!read || !read->found) return std::nullopt;
    RowHeader row;
    std::memcpy(&row, buffer_.bytes, sizeof row);
    return row;
  }
  bool is_part(Heap& heap, Tid tid) { return header(heap, tid, {.kind = SnapshotKind::kPart}).has_value(); }

  Engine engine_;
  Worker a_, b_;
  TestRow row_{"row"};
  std::unique_ptr<Heap> heap_a_, heap_b_;
  RowBuffer buffer_;
};

TEST_F(OutOfLineTest, ARowThatRefersToValuesElsewhereSaysSoToReadersAndToItsRemover) {
  Tid with = insert(true, 5), without = insert(false, 5);
  a_.commit();
  EXPECT_TRUE(header(*heap_b_, with, b_.snapshot())->out_of_line());
  EXPECT_FALSE(header(*heap_b_, without, b_.snapshot())->out_of_line());
  EXPECT_EQ(header(*heap_b_, with, b_.snapshot())->command(), 5u);
  EXPECT_TRUE(heap_b_->remove(with, 0)->out_of_line);
  EXPECT_FALSE(heap_b_->remove(without, 0)->out_of_line);
  b_.commit();
}

TEST_F(OutOfLineTest, AnUpdateSaysItOfTheNewVersion) {
  Tid tid = insert(false);
  a_.commit();
  auto done = heap_b_->update({.tid = tid, .row = image(true), .command = 0});
  ASSERT_TRUE(done.ok());
  EXPECT_FALSE(header(*heap_b_, tid, {.kind = SnapshotKind::kAny})->out_of_line());
  EXPECT_TRUE(header(*heap_b_, done->tid, {.kind = SnapshotKind::kAny})->out_of_line());
  b_.commit();
}

TEST_F(OutOfLineTest, ItsCommandIsStillWhatItsOwnTransactionGoesBy) {
  Tid tid = insert(true, 5);
  EXPECT_FALSE(header(*heap_a_, tid, a_.snapshot(5)));
  EXPECT_TRUE(header(*heap_a_, tid, a_.snapshot(6)));
  EXPECT_EQ(heap_a_->remove(tid, 5)->result, RowResult::kInvisible);
  EXPECT_EQ(heap_a_->remove(tid, 6)->result, RowResult::kOk);
  a_.commit();
}

TEST_F(OutOfLineTest, PartsAreSeenWhicheverTransactionMadeOrDeletedThem) {
  Tid tid = insert(false, 5);
  EXPECT_TRUE(is_part(*heap_a_, tid));
  EXPECT_TRUE(is_part(*heap_b_, tid));
  a_.commit();
  EXPECT_TRUE(is_part(*heap_b_, tid));
  EXPECT_EQ(heap_b_->remove(tid, 0)->result, RowResult::kOk);
  EXPECT_TRUE(is_part(*heap_b_, tid));
  b_.commit();
  EXPECT_TRUE(is_part(*heap_a_, tid));
}

TEST_F(OutOfLineTest, PartsThatWereRolledBackOrAbandonedAreNotSeen) {
  Tid rolled_back = insert(false);
  a_.abort();
  EXPECT_FALSE(is_part(*heap_a_, rolled_back));
  EXPECT_FALSE(is_part(*heap_b_, rolled_back));
  Tid abandoned = insert(false);
  EXPECT_TRUE(heap_a_->abandon(abandoned).ok());
  EXPECT_FALSE(is_part(*heap_a_, abandoned));
  a_.commit();
  EXPECT_FALSE(is_part(*heap_b_, abandoned));
}

}  // namespace engine_test
