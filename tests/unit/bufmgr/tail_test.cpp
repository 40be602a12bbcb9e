// The ring's tail, while another session writes pages back (frames.dirty-is-listed, eviction.one-writer).
#include <gtest/gtest.h>

#include "bufmgr/mini_transaction.hpp"
#include "bufmgr/page_provider.hpp"
#include "coherence/write_back_group.hpp"
#include "tests/support/cluster_fixture.hpp"

namespace bufmgr {
namespace {

// The other session has taken the line's dirty ranges, and its batch is not posted.  If its process dies now, the redo
// is all there is of the change.
TEST(RingTail, StaysBeforeAChangeThatIsBeingWrittenBack) {
  gcl_test::Cluster cluster({.nodes = 1, .workers = false});
  BufferPool& pool = cluster.pool(0);
  auto session = cluster.session(0), repairs = cluster.session(0);
  const PageId page = *pool.allocate(*session, 1);
  PageProvider provider(pool, *session);
  ASSERT_TRUE(provider.empty_ring(pool.ring().head()));
  const uint64_t before = pool.ring().head();
  {
    MiniTransaction change(pool, *session);
    ASSERT_TRUE(change.reserve(8).ok());
    auto guard = pool.fix_exclusive(*session, page);
    ASSERT_TRUE(guard.ok());
    change.join(*guard);
    change.set(*guard, kPageBody, uint64_t{5});
    change.commit();
  }
  ASSERT_TRUE(session->push_redo().ok());
  coherence::WriteBackGroup group(repairs->coherence());
  const auto added = group.add(*pool.find(page), page);
  ASSERT_TRUE(added.ok() && *added);

  EXPECT_FALSE(provider.empty_ring(pool.ring().head()));
  EXPECT_EQ(pool.ring().tail(), before);
  EXPECT_EQ(session->coherence().write_back(*pool.find(page), page).error(), coherence::Errc::kWouldBlock)
      << "a session that asks again knows that it is not in the pool yet";

  group.run([](int, bool written) { EXPECT_TRUE(written); });
  EXPECT_TRUE(provider.empty_ring(pool.ring().head()));
  EXPECT_EQ(pool.ring().tail(), pool.ring().head());
}

}  // namespace
}  // namespace bufmgr
