// ANALYZE sees every row once, whoever changes it meanwhile.
#include "tests/unit/engine/engine_fixture.hpp"

namespace engine_test {

class Analyze : public ::testing::Test {
 protected:
  Analyze() : engine_({.cluster = {.nodes = 2}}), a_(engine_, 0), b_(engine_, 1) {
    auto made = Heap::create(*a_.operator->());
    EXPECT_TRUE(made.ok());
    heap_a_ = std::make_unique<Heap>(a_.txns(), *made);
    heap_b_ = std::make_unique<Heap>(b_.txns(), *made);
  }
  Tid insert(const std::string& text) {
    auto tid = heap_a_->insert(TestRow(text).image(), 0);
    EXPECT_TRUE(tid.ok());
    return tid ? *tid : Tid{};
  }
  Tid committed(const std::string& text) {
    Tid tid = insert(text);
    a_.commit();
    return tid;
  }
  void update(Tid tid, const std::string& text) {
    TestRow row(text);
    auto done = heap_a_->update({.tid = tid, .row = row.image(), .command = 1, .indexed_changed = false, .wait = true});
    EXPECT_TRUE(done.ok() && done->row.result == RowResult::kOk);
  }

  Engine engine_;
  Worker a_, b_;
  std::unique_ptr<Heap> heap_a_, heap_b_;
};

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
  for (const Tid& row : rows) update(row, std::string(100, 'b'));
  const int running = count(before / 2, before * 3 / 4);
  a_.commit();
  EXPECT_EQ(300, first + running + count(before * 3 / 4, *heap_b_->used_blocks()));
}

}  // namespace engine_test
