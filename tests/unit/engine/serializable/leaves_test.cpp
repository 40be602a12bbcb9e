// Leaves that serializable transactions hold: what they cover stays as it was read, wherever it goes.
#include <thread>

#include "extension/engine/blink/scan.hpp"
#include "extension/engine/blink/tree.hpp"
#include "tests/unit/engine/blink/keys.hpp"
#include "tests/unit/engine/serializable/holds_fixture.hpp"

namespace engine_test {

using coherence::Errc;
using gcl_test::Search;
using gcl_test::TestKey;

class LeavesTest : public HoldsTest {
 protected:
  struct Session : Actor {
    Session(LeavesTest& test, int node)
        : Actor(test, node),
          tree(*blink::Tree::open(test.engine_.cluster().pool(node), worker.session(), test.meta_)) {}
    Errc put(uint64_t number) {
      auto done = gcl_test::put(tree, worker.session(), compare, TestKey{number}, gcl_test::tid_of(number + 1));
      return done ? Errc::kOk : done.error();
    }
    // How many entries the range has; or an error.
    coherence::Result<int> count(uint64_t low, uint64_t high, bool forward = true) {
      const TestKey from{low}, to{high};
      const Search first{&from}, last{&to};
      auto scan = std::make_unique<blink::Scan>(tree, worker.session(), compare);
      scan->hold_leaves();
      scan->reset({.low = {.search = &first, .complete = true}, .high = {.search = &last, .complete = true}});
      for (int found = 0;; ++found) {
        blink::Entry entry;
        auto more = forward ? scan->next(entry) : scan->prev(entry);
        if (!more) return more.error();
        if (!*more) return found;
      }
    }
    blink::Tree tree;
    gcl_test::TestComparator compare;
  };

  LeavesTest() {
    Worker maker(engine_, 0);
    meta_ = *blink::Tree::create(engine_.cluster().pool(0), maker.session());
  }
  PageId meta_;
};

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

struct All final : blink::TidPredicate {
  bool operator()(Tid) override { return true; }
};

TEST_F(LeavesTest, AHeldLeafStaysInTheTree) {
  Session reader(*this, 0), there(*this, 1);
  for (uint64_t i = 0; i < 3000; ++i) ASSERT_EQ(there.put(i), Errc::kOk);
  (void)reader.begin();
  EXPECT_EQ(*reader.count(1500, 1510), 11);
  All all;
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
