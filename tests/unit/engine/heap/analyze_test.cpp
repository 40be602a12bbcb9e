// ANALYZE sees every row once, whatever changes it meanwhile.
#include "tests/unit/engine/heap/heap_fixture.hpp"

namespace engine_test {

class Analyze : public HeapTest {};

TEST_F(Analyze, IsToldWhatEachVersionIs) {
  Tid live = committed("live");
  Tid gone = committed("gone");
  EXPECT_EQ(heap_a_->remove(gone, 0)->result, RowResult::kOk);
  Tid mine = insert("mine");
  auto rows = std::make_unique<PageRows>();
  AsOf is[kLinesMax];
  const auto sample = [&](uint32_t command) {
    const Snapshot seen = a_.snapshot(command);
    ASSERT_TRUE(heap_a_->sample_block(live.block, seen, *rows, is).ok());
    ASSERT_EQ(rows->count, 3);
    EXPECT_EQ(rows->offset[2], mine.offset);
  };
  sample(1);
  EXPECT_EQ(std::vector({AsOf::kThere, AsOf::kGone, AsOf::kThere}), std::vector(is, is + 3));
  sample(0);  // behind what this command does
  EXPECT_EQ(std::vector({AsOf::kThere, AsOf::kThere, AsOf::kToCome}), std::vector(is, is + 3));
}

TEST_F(Analyze, ARowThatIsUpdatedMeanwhileIsCountedOnce) {
  std::vector<Tid> rows;
  for (int i = 0; i < 300; ++i) rows.push_back(committed(std::string(100, 'a')));
  const Snapshot seen = b_.snapshot();
  const auto count = [&](uint32_t from, uint32_t to) {
    auto page = std::make_unique<PageRows>();
    AsOf is[kLinesMax];
    int there = 0;
    for (uint32_t n = from; n < to; ++n) {
      EXPECT_TRUE(heap_b_->sample_block(heap_b_->block_at(n), seen, *page, is).ok());
      there += int(std::count(is, is + page->count, AsOf::kThere));
    }
    return there;
  };
  const uint32_t before = *heap_b_->used_blocks();
  const int first = count(0, before / 2);
  for (const Tid& row : rows) EXPECT_EQ(update(*heap_a_, row, std::string(100, 'b'), 1).row.result, RowResult::kOk);
  const int running = count(before / 2, before * 3 / 4);
  a_.commit();
  EXPECT_EQ(300, first + running + count(before * 3 / 4, *heap_b_->used_blocks()));
}

}  // namespace engine_test
