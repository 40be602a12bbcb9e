// Redo of rows that prune moves together, where a hint of a former row lies under what they bring.
#include "tests/unit/engine/heap/heap_fixture.hpp"

namespace engine_test {

// The last 32 bytes of a row are by chance those of a dead row that lay there, with its hint: a replayed page has no
// such hint, so that nothing of the row may be left out of the redo (bufmgr.redo-reads-no-hints).  The cluster's
// watcher replays it.
TEST_F(HeapTest, ARowThatMovesOntoBytesLikeItsOwnIsLoggedWhole) {
  const Tid dead = committed("deadrow8");
  a_.pass_horizon();
  PageRows rows;
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(heap_a_->read_block(dead.block, a_.snapshot(), rows).ok());
  ASSERT_TRUE(heap_a_->remove(dead, 0).ok());
  a_.commit();
  a_.pass_horizon();
  ASSERT_TRUE(heap_a_->read_block(dead.block, a_.snapshot(), rows).ok());
  ASSERT_EQ(rows.bytes(dead.offset), 32u);
  ASSERT_EQ(HeapPage(rows.page).row_header(dead.offset).creator.kind(), RowTxnKind::kFrozen);
  const std::string tail(reinterpret_cast<const char*>(rows.row(dead.offset)), 32);
  const Tid like = insert(std::string(72, 'y') + tail);
  const Tid rest = insert(std::string(7936, 'z'));
  a_.commit();
  ASSERT_EQ(like.block, dead.block);
  ASSERT_EQ(rest.block, dead.block);
  a_.pass_horizon();
  auto removed = heap_a_->prune(dead.block, 40);
  ASSERT_TRUE(removed.ok());
  ASSERT_GT(*removed, 0u);
  ASSERT_TRUE(heap_a_->read_block(dead.block, a_.snapshot(), rows).ok());
  EXPECT_EQ(HeapPage(rows.page).line(like.offset).offset(), coherence::kPageSize - 128) << "it has moved";
  EXPECT_EQ(text_of(rows, like.offset), std::string(72, 'y') + tail);
  a_->set_oldest(std::nullopt);
}

}  // namespace engine_test
