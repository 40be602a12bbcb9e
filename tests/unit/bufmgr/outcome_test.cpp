// A batch of bufmgr's own that may or may not have taken place: its node is cut off, whichever it was, the pool is
// fenced with the reason, and nobody goes on as if it had succeeded (transport.unknown-cuts-off).
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

#include "bufmgr/global_memory.hpp"
#include "bufmgr/mini_transaction.hpp"
#include "tests/support/breaking_transport.hpp"
#include "tests/support/cluster_fixture.hpp"
#include "tests/support/eventually.hpp"

namespace bufmgr {
namespace {

using coherence::Errc;

constexpr const char* kReason = "node 0 lost a memory node in the middle of an operation";
constexpr uint32_t kAt = kPageBody;

class UnknownOutcomeHere : public ::testing::TestWithParam<bool> {
 protected:
  UnknownOutcomeHere() { transport_.took_place = GetParam(); }
  // Changes the page on node 0; `then` happens between the change and its record.
  template <class Then>
  static void change_page(gcl_test::Cluster& cluster, Session& session, PageId page, Then then) {
    MiniTransaction change(cluster.pool(0), session);
    ASSERT_TRUE(change.reserve(64).ok());
    auto guard = cluster.pool(0).fix_exclusive(session, page);
    ASSERT_TRUE(guard.ok());
    change.join(*guard);
    change.set<uint64_t>(*guard, kAt, 7);
    then();
    change.commit();
  }
  gcl_test::BreakingTransport transport_;
};

// What has changed and has perhaps no redo stays where it is, though the transport works again for all others.
TEST_P(UnknownOutcomeHere, OfARedoRecord) {
  gcl_test::Cluster cluster({.nodes = 2, .transport = &transport_});
  auto mine = cluster.session(0), peers = cluster.session(1);
  const PageId page = *cluster.pool(0).allocate(*mine, 1);
  change_page(cluster, *mine, page, [&] { transport_.break_after(0); });
  (void)mine->push_redo();  // or the provider has
  EXPECT_TRUE(gcl_test::eventually([&] { return cluster.pool(1).fenced(); }));
  EXPECT_STREQ(cluster.pool(1).coherence_node().fence_reason(), kReason);
  const auto there = cluster.pool(1).fix_shared(*peers, page);
  EXPECT_EQ(there.error(), Errc::kFenced);
}

TEST_P(UnknownOutcomeHere, OfTheRingsTail) {
  gcl_test::Cluster cluster({.nodes = 2, .workers = false, .transport = &transport_});
  auto mine = cluster.session(0);
  const PageId page = *cluster.pool(0).allocate(*mine, 1);
  change_page(cluster, *mine, page, [] {});
  const RedoRing& ring = cluster.pool(0).ring();
  const uint64_t tail = ring.tail(), used = ring.used();
  ASSERT_GT(used, 0u);
  transport_.break_after(0);
  RedoRing(ring).move_tail(mine->memory(), ring.head());
  EXPECT_EQ(ring.tail(), tail) << "a reader may start there";
  EXPECT_EQ(ring.used(), used) << "and nothing is written over it";
  EXPECT_TRUE(cluster.pool(1).fenced());
  EXPECT_STREQ(cluster.pool(1).coherence_node().fence_reason(), kReason);
}

TEST_P(UnknownOutcomeHere, OfARingThatIsRead) {
  gcl_test::Cluster cluster({.nodes = 2, .transport = &transport_});
  auto mine = cluster.session(0);
  const auto at = cluster.pool(0).ring_of({1});
  auto reader = RingReader::open(mine->memory(), at.at, at.bytes);
  ASSERT_TRUE(reader.ok());
  transport_.break_after(0);
  EXPECT_EQ(RingReader::open(mine->memory(), at.at, at.bytes).error(), Errc::kFenced);
  std::byte buffer[kMiniRecordMax];
  EXPECT_EQ(reader->next(mine->memory(), buffer).error(), Errc::kFenced) << "that is no hole";
  EXPECT_STREQ(cluster.pool(1).coherence_node().fence_reason(), kReason);
}

TEST_P(UnknownOutcomeHere, OfAWord) {
  const std::string path = "/dev/shm/gcl-test-outcome-" + std::to_string(getpid());
  Problem problem;
  ASSERT_TRUE(GlobalMemory::create(path.c_str(), {.bytes = 16 << 20, .nodes_max = 2}, &problem)) << problem.text;
  {
    auto memory = GlobalMemory::join(path.c_str(), {.node = {0}, .frames = 256}, &problem);
    ASSERT_TRUE(memory.ok()) << problem.text;
    auto& node = (*memory)->pool().coherence_node();
    node.set_transport(transport_);
    GlobalThread thread(**memory);
    ASSERT_TRUE(thread.fetch_add(0, 1));
    transport_.break_after(0);
    EXPECT_EQ(thread.fetch_add(0, 1).error(), Errc::kFenced);
    EXPECT_EQ(thread.compare_and_swap(0, 1, 5).error(), Errc::kFenced);
    EXPECT_EQ(thread.load(0).error(), Errc::kFenced);
    EXPECT_TRUE(node.fenced());
    EXPECT_STREQ(node.fence_reason(), kReason);
  }
  GlobalMemory::remove(path.c_str());
}

INSTANTIATE_TEST_SUITE_P(TookPlace, UnknownOutcomeHere, ::testing::Bool());

}  // namespace
}  // namespace bufmgr
