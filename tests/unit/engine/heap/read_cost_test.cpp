// What a look at a row takes of its page: counts that do not vary.
#include "tests/unit/engine/heap/heap_fixture.hpp"

namespace engine_test {

class HeapReadCost : public HeapTest {
 protected:
  uint64_t copies() { return a_.session().counts().get(bufmgr::Count::kCopies); }
  // What a look-up of `root` finds now, and how many pages it copies for that.
  void expect(Tid root, const std::string& text, uint64_t copied) {
    const Snapshot now = a_.snapshot();
    const uint64_t before = copies();
    EXPECT_EQ(chain(*heap_a_, root, now), text);
    EXPECT_EQ(copies() - before, copied) << text;
    a_->set_oldest(std::nullopt);
  }
  Tid update_committed(Tid tid, const std::string& text) {
    const UpdateOutcome done = update(*heap_a_, tid, text, 0);
    EXPECT_TRUE(done.chained);
    a_.commit();
    return done.tid;
  }
};

TEST_F(HeapReadCost, AShortChainIsReadWithoutACopyOfItsPage) {
  const Tid root = committed("0");
  Tid newest = root;
  expect(root, "0", 0);
  for (const char* text : {"1", "2", "3"}) {
    newest = update_committed(newest, text);
    expect(root, text, 0);
  }
  update_committed(newest, "4");
  expect(root, "4", 1);  // of a long one that is cheaper
}

TEST_F(HeapReadCost, ARowThatItsPruneHasRedirectedIsReadWithoutACopy) {
  const Tid root = committed("0");
  Tid newest = update_committed(root, "1");
  a_.pass_horizon();
  const uint64_t before = copies();
  ASSERT_EQ(*heap_a_->prune(root.block), 1u);
  EXPECT_EQ(copies(), before);  // a plan that leaves the rows where they are needs their headers
  EXPECT_EQ(at(*heap_a_, root, {.kind = SnapshotKind::kAny}), "-") << "not redirected";
  expect(root, "1", 0);
  newest = update_committed(newest, "2");
  expect(root, "2", 0);
}

}  // namespace engine_test
