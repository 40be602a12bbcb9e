// What a session counts of its page accesses (bufmgr.accesses-counted-once).
#include <gtest/gtest.h>

#include "tests/support/cluster_fixture.hpp"

namespace bufmgr {
namespace {

class Traffic : public ::testing::Test {
 protected:
  Traffic() : a_(cluster_.session(0)), b_(cluster_.session(1)), page_(*pool_a().allocate(*a_, 1)) {
    write(pool_a(), *a_);
  }
  BufferPool& pool_a() { return cluster_.pool(0); }
  BufferPool& pool_b() { return cluster_.pool(1); }

  void write(BufferPool& pool, Session& session) {
    MiniTransaction change(pool, session);
    ASSERT_TRUE(change.reserve(8));
    auto page = pool.fix_exclusive(session, page_);
    ASSERT_TRUE(page);
    change.join(*page);
    change.set(*page, 64, ++word_);
    change.commit();
  }
  // Checks what `act` adds to the counters of node 1's session.
  template <class Act>
  void expect(uint64_t accesses, uint64_t fetched, uint64_t dirtied, const Act& act) {
    const uint64_t accesses_before = b_->page_accesses();
    const PageTraffic before = b_->traffic();
    act();
    EXPECT_EQ(b_->page_accesses() - accesses_before, accesses);
    EXPECT_EQ(b_->traffic().fetched - before.fetched, fetched);
    EXPECT_EQ(b_->traffic().dirtied - before.dirtied, dirtied);
  }

  gcl_test::Cluster cluster_{{.nodes = 2}};
  std::unique_ptr<Session> a_, b_;
  PageId page_;
  uint64_t word_ = 0;
};

TEST_F(Traffic, AnAccessIsCountedOnceHoweverItWasMade) {
  alignas(8) std::byte copy[kPageSize];
  expect(1, 1, 0, [&] { ASSERT_TRUE(pool_b().fix_optimistic(*b_, page_).ok()); });
  expect(1, 0, 0, [&] { ASSERT_TRUE(pool_b().fix_optimistic(*b_, page_).ok()); });
  expect(1, 0, 0, [&] { ASSERT_TRUE(pool_b().copy_page(*b_, page_, copy).ok()); });
  expect(1, 0, 0, [&] { ASSERT_TRUE(pool_b().fix_shared(*b_, page_).ok()); });
  write(pool_a(), *a_);
  expect(1, 1, 0, [&] { ASSERT_TRUE(pool_b().copy_page(*b_, page_, copy).ok()); });
  expect(1, 0, 0, [&] {
    auto access = pool_b().fix_optimistic(*b_, page_);
    ASSERT_TRUE(access.ok() && pool_b().upgrade(*b_, *access).ok());  // asks node 0, and fetches nothing
  });
  expect(0, 0, 0, [&] { ASSERT_FALSE(pool_b().try_shared(*b_, page_ + 1).ok()); });
}

TEST_F(Traffic, APageIsDirtiedOnceUntilItsBytesAreInThePool) {
  expect(1, 1, 1, [&] { write(pool_b(), *b_); });
  expect(1, 0, 0, [&] { write(pool_b(), *b_); });
  write(pool_a(), *a_);  // handed over: node 1's bytes are in the pool
  expect(1, 1, 1, [&] { write(pool_b(), *b_); });
}

TEST_F(Traffic, AHintDirtiesAPageToo) {
  expect(1, 1, 1, [&] { write(pool_b(), *b_); });
  while (pool_b().run_provider_once(*b_)) {
  }
  ASSERT_TRUE(b_->coherence().write_back(*pool_b().find(page_), page_).ok());
  const auto hint = [&] { ASSERT_TRUE(pool_b().fix_shared(*b_, page_)->set_hint(128, 7)); };
  expect(1, 0, 1, hint);
  expect(1, 0, 0, hint);
}

}  // namespace
}  // namespace bufmgr
