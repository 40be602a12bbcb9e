// What bufmgr makes of a page that a transaction of another node holds until its end.
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "bufmgr/buffer_pool.hpp"
#include "bufmgr/mini_transaction.hpp"
#include "tests/support/cluster_fixture.hpp"

namespace bufmgr {
namespace {

using coherence::Errc;
using gcl_test::Cluster;

class HeldPages : public testing::Test {
 protected:
  void write(uint64_t word) {
    MiniTransaction change(cluster.pool(0), *holder);
    ASSERT_TRUE(change.reserve(8));
    auto page = cluster.pool(0).fix_exclusive(*holder, id);
    ASSERT_TRUE(page);
    change.join(*page);
    change.set(*page, kAt, word);
    change.commit();
  }
  uint64_t copied() {
    alignas(8) std::byte page[kPageSize];
    EXPECT_TRUE(cluster.pool(1).copy_page(*reader, id, page).ok());
    uint64_t word;
    memcpy(&word, page + kAt, 8);
    return word;
  }
  static constexpr uint16_t kAt = 64;
  Cluster cluster{{.nodes = 2}};
  std::unique_ptr<Session> holder = cluster.session(0), reader = cluster.session(1);
  PageId id = *cluster.pool(0).allocate(*holder, 1);
};

TEST_F(HeldPages, AreCopiedOutAndNotLatched) {
  write(1);
  coherence::Line* line = cluster.pool(0).find(id);
  ASSERT_NE(line, nullptr);
  {
    auto page = cluster.pool(0).fix_exclusive(*holder, id);
    ASSERT_TRUE(page);
    holder->coherence().hold(*line, true, 99);
  }
  EXPECT_EQ(copied(), 1u);
  write(2);
  EXPECT_EQ(copied(), 2u);
  EXPECT_EQ(cluster.pool(1).fix_shared(*reader, id).error(), Errc::kHeld);
  EXPECT_EQ(reader->coherence().holder().by, 99u);
  EXPECT_EQ(cluster.pool(1).fix_exclusive(*reader, id).error(), Errc::kHeld);
  EXPECT_EQ(cluster.pool(1).fix_optimistic(*reader, id).error(), Errc::kHeld);
  alignas(8) std::byte parts[kPageSize];
  EXPECT_TRUE(cluster.pool(1).copy_parts(*reader, id, parts, Intent::kWrite).ok());
  EXPECT_EQ(reader->guards_held(), 0);
  EXPECT_FALSE(cluster.pool(1).peek(*reader, id));
  holder->coherence().drop_hold(*line, true, 99);
  EXPECT_TRUE(cluster.pool(1).fix_shared(*reader, id).ok());
  EXPECT_EQ(copied(), 2u);
}

}  // namespace
}  // namespace bufmgr
