// Leaves that serializable transactions hold: what they cover stays as it was read, wherever it goes.
#include "tests/unit/engine/serializable/leaves_fixture.hpp"

namespace engine_test {

using coherence::Errc;

TEST_F(LeavesTest, AnEmptyRangeIsHeld) {
  Session reader(*this, 0), here(*this, 0), there(*this, 1);
  (void)reader.begin();
  EXPECT_EQ(*reader.count(10, 20), 0);
  EXPECT_EQ(here.put(15), Errc::kHeld);
  EXPECT_EQ(there.put(15), Errc::kHeld);
  reader.commit();
  EXPECT_EQ(there.put(15), Errc::kOk);
  EXPECT_EQ(here.put(16), Errc::kOk);
}

// Far from what is read, entries come.
TEST_F(LeavesTest, OtherLeavesAreFree) {
  Session reader(*this, 0), there(*this, 1);
  for (uint64_t i = 0; i < 4000; i += 2) ASSERT_EQ(there.put(i), Errc::kOk);
  for (const bool forward : {true, false}) {
    (void)reader.begin();
    EXPECT_EQ(*reader.count(1000, 1010, forward), 6);
    EXPECT_EQ(there.put(1005), Errc::kHeld);
    EXPECT_EQ(there.put(forward ? 3901 : 3903), Errc::kOk);
    reader.commit();
  }
}

// A writer's leaf is split by the writer: no part of it is anybody else's before it ends.
TEST_F(LeavesTest, PartsOfALeafAreHeld) {
  Session writer(*this, 0), there(*this, 1), here(*this, 0), reads(*this, 1);
  (void)writer.begin();
  for (uint64_t i = 0; i < 2000; i += 2) ASSERT_EQ(writer.put(i), Errc::kOk);
  const uint64_t pages = *writer.tree.pages(writer.worker.session());
  ASSERT_GT(pages, 4u);
  for (uint64_t i = 1; i < 2000; i += 97) {
    EXPECT_EQ(there.put(i | 1), Errc::kHeld) << i;
    EXPECT_EQ(here.put(i | 1), Errc::kHeld) << i;
  }
  (void)reads.begin();
  EXPECT_EQ(reads.count(0, 2000).error(), Errc::kHeld);
  EXPECT_EQ(reads.count(1900, 2000, false).error(), Errc::kHeld);
  writer.commit();
  EXPECT_EQ(*reads.count(0, 2000), 1000);
}

// The part of a leaf that is split off is held, though its holder puts nothing there.
TEST_F(LeavesTest, APartThatIsNotWrittenIsHeld) {
  Session serial(*this, 0), there(*this, 1), here(*this, 0);
  for (uint64_t i = 2000; i < 2200; i += 2) ASSERT_EQ(there.put(i), Errc::kOk);
  (void)serial.begin();
  const uint64_t before = *serial.tree.pages(serial.worker.session());
  for (uint64_t i = 0; *serial.tree.pages(serial.worker.session()) < before + 2; ++i)
    ASSERT_EQ(serial.put(i), Errc::kOk);
  for (uint64_t i = 2001; i < 2200; i += 20) {
    EXPECT_EQ(there.put(i), Errc::kHeld) << i;
    EXPECT_EQ(here.put(i), Errc::kHeld) << i;
  }
  serial.commit();
  EXPECT_EQ(there.put(2199), Errc::kOk);
}

// What was read as a part of one leaf is held as such when its holder splits it.
TEST_F(LeavesTest, AReaderThatWritesKeepsWhatItHasRead) {
  Session serial(*this, 0), there(*this, 1);
  for (uint64_t i = 0; i < 100; i += 2) ASSERT_EQ(there.put(i), Errc::kOk);
  (void)serial.begin();
  EXPECT_EQ(*serial.count(0, 100), 50);
  for (uint64_t i = 1000; i < 3000; ++i) ASSERT_EQ(serial.put(i), Errc::kOk);
  for (uint64_t i = 1; i < 100; i += 10) EXPECT_EQ(there.put(i), Errc::kHeld);
  serial.commit();
}

TEST_F(LeavesTest, AHeldLeafStaysInTheTree) {
  Session reader(*this, 0), there(*this, 1);
  for (uint64_t i = 0; i < 3000; ++i) ASSERT_EQ(there.put(i), Errc::kOk);
  (void)reader.begin();
  EXPECT_EQ(*reader.count(1500, 1510), 11);
  AllEntries all;
  auto removed = there.tree.remove_if(there.worker.session(), all);
  ASSERT_TRUE(removed.ok());
  EXPECT_TRUE(removed->skipped);
  EXPECT_GT(removed->deleted, 0u);
  EXPECT_GT(removed->kept, 0u);
  EXPECT_EQ(there.put(1505), Errc::kHeld);
  EXPECT_EQ(*reader.count(1500, 1510), 11);
  reader.commit();
  removed = there.tree.remove_if(there.worker.session(), all);
  ASSERT_TRUE(removed.ok());
  EXPECT_FALSE(removed->skipped);
  EXPECT_EQ(removed->kept, 0u);
}

TEST_F(LeavesTest, ATreeBehindALockIsNotHeld) {
  Session writer(*this, 0), there(*this, 1);
  (void)writer.begin();
  writer.tree = writer.tree.unheld();
  ASSERT_EQ(writer.put(1), Errc::kOk);
  EXPECT_EQ(there.put(2), Errc::kOk);
  EXPECT_EQ(writer.holds.held(), 0u);
}

}  // namespace engine_test
