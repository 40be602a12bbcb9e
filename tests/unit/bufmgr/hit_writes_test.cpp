// What a hit writes to memory that processes share.
#ifndef __SANITIZE_THREAD__
#include "tests/support/cluster_fixture.hpp"
#include "tests/support/stores.hpp"

namespace bufmgr {
namespace {

class HitWrites : public ::testing::Test {
 protected:
  HitWrites()
      : cluster_({.nodes = 1, .frames = 64, .workers = false}),
        session_(cluster_.session(0)),
        page_(*pool().allocate(*session_, 1)),
        stores_(&touched_line()) {
    // The session's own counters: one writer, a cache line of their own.
    stores_.ignore(&pool().counts(session_->id()), sizeof(BufferCounts));
  }
  BufferPool& pool() { return cluster_.pool(0); }
  coherence::Line& line() { return *pool().find(page_); }
  coherence::Line& touched_line() {
    (void)pool().fix_exclusive(*session_, page_);
    (void)pool().peek(*session_, page_);
    return line();
  }
  std::vector<uintptr_t> latch() { return {reinterpret_cast<uintptr_t>(&line())}; }

  gcl_test::Cluster cluster_;
  std::unique_ptr<Session> session_;
  PageId page_;
  gcl_test::Stores stores_;
};

TEST_F(HitWrites, AnOptimisticHitWritesNothingButItsOwnCounters) {
  stores_.watch([&] {
    for (int i = 0; i < 100; ++i) {
      const OptimisticGuard look = pool().peek(*session_, page_);
      if (!look || look.get<uint64_t>(64) != 0 || !look.validate()) _exit(4);
    }
  });
  EXPECT_FALSE(stores_.elsewhere_than(nullptr, 0));
  EXPECT_TRUE(stores_.changed().empty());
  EXPECT_TRUE(stores_.anything());  // the net catches its counters
}

TEST_F(HitWrites, ASharedHitWritesTheLatchOfItsLineOnly) {
  SharedGuard guard;
  stores_.watch([&] { guard = pool().fix_shared(*session_, page_).take(); });
  EXPECT_FALSE(stores_.elsewhere_than(&line(), 8));
  EXPECT_EQ(stores_.changed(), latch());
  stores_.watch([&] { guard.release(); });
  EXPECT_FALSE(stores_.elsewhere_than(&line(), 8));
  EXPECT_EQ(stores_.changed(), latch());
}

TEST_F(HitWrites, AnExclusiveHitWritesTheLatchOfItsLineOnly) {
  stores_.watch([&] { (void)pool().fix_exclusive(*session_, page_); });
  EXPECT_FALSE(stores_.elsewhere_than(&line(), 8));
  EXPECT_EQ(stores_.changed(), latch());  // its version grew
}

}  // namespace
}  // namespace bufmgr
#endif
