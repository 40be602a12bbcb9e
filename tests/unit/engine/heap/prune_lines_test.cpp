// How often pages are pruned whose rows are updated again and again.
#include <random>

#include "tests/unit/engine/engine_fixture.hpp"

namespace engine_test {

namespace {

uint64_t changes_of(Session& session) { return session.counts().get(bufmgr::Count::kMiniTransactions); }

}  // namespace

// Small rows, more than half a page of them, whose first versions are seen while all are updated once: the page is full
// of line pointers then, one for each row's first version and one for its newest, and rows leave it.
TEST(HeapPrune, AHotPageWithoutFreeLinePointersIsNotPrunedByEachUpdate) {
  constexpr int kRows = 110, kUpdates = 500;
  Engine engine({.cluster = {.nodes = 1}});
  Worker me(engine, 0), other(engine, 0);
  Heap heap(me.txns(), *Heap::create(me.txns()));
  Heap others(other.txns(), heap.relation());
  const std::string text(13, 'a');
  std::vector<Tid> rows;
  for (int i = 0; i < kRows; ++i) rows.push_back(*heap.insert(TestRow(text).image(), 0));
  me.commit();
  const uint32_t block = rows.front().block;
  ASSERT_EQ(rows.back().block, block);
  const auto update = [&](Tid& row) {
    const auto done = heap.update({.tid = row, .row = TestRow(text).image(), .command = 0, .indexed_changed = false});
    ASSERT_TRUE(done.ok() && done->row.result == RowResult::kOk);
    row = done->tid;
    me.commit();
  };
  const Snapshot first = other.snapshot();
  for (Tid& row : rows) update(row);
  EXPECT_EQ(scan_all(others, first).size(), size_t{kRows});
  other->set_oldest(std::nullopt);
  std::erase_if(rows, [&](Tid row) { return row.block != block; });
  ASSERT_GT(rows.size(), size_t{kRows} / 2);
  ASSERT_LT(rows.size(), size_t{kRows}) << "the page was not full";
  std::mt19937 random(7);
  const auto update_some = [&](int count) {
    for (int i = 0; i < count; ++i) update(rows[random() % rows.size()]);
  };
  update_some(kRows);
  const uint64_t before = changes_of(me.session());
  update_some(kUpdates);
  EXPECT_LE(changes_of(me.session()) - before, uint64_t{kUpdates} * 11 / 10);
  for (const Tid row : rows) EXPECT_EQ(row.block, block);
}

}  // namespace engine_test
