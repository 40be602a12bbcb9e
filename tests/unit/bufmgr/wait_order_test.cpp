// Debug builds find waits for pages under guards that keep to no order (guards.ordered-waits).
#include "bufmgr/wait_order.hpp"

#include <gtest/gtest.h>

#include "tests/support/cluster_fixture.hpp"

namespace bufmgr {
namespace {

constexpr WaitOrder kOrders[] = {WaitOrder::kAlone, WaitOrder::kUp,    WaitOrder::kRight,
                                 WaitOrder::kById,  WaitOrder::kLocks, WaitOrder::kNew};
constexpr PageType kTypes[] = {PageType::kUnused,    PageType::kPoolRoot,  PageType::kSpaceMap,  PageType::kRelation,
                               PageType::kExtentMap, PageType::kHeap,      PageType::kBlinkMeta, PageType::kBlinkInner,
                               PageType::kBlinkLeaf, PageType::kLockCells, PageType::kLog,       PageType::kList,
                               PageType::kSequence,  PageType::kStatus,    PageType::kReclaim,   PageType::kLogRoot};

LatchedPage latched(PageType type, uint64_t number = 5, uint8_t memory_node = 0) {
  return {PageId::at({memory_node}, number), type};
}
bool any_order(LatchedPage held, LatchedPage wanted) {
  for (WaitOrder order : kOrders) {
    if (in_order(order, held, wanted)) return true;
  }
  return false;
}

bool leads_to_chain(PageType a, PageType b) { return a == PageType::kLogRoot && b == PageType::kLog; }

// Two kinds of pages are waited for in one direction at most, so kinds make no circle; within a kind there is a chain
// or the page's number.
TEST(WaitOrder, KindsOfPagesAreWaitedForInOneDirection) {
  for (PageType a : kTypes) {
    for (PageType b : kTypes) {
      if (a == b || a == PageType::kUnused || b == PageType::kUnused) continue;
      const bool there = any_order(latched(a, 5), latched(b, 6)) || any_order(latched(a, 6), latched(b, 5));
      const bool back = any_order(latched(b, 5), latched(a, 6)) || any_order(latched(b, 6), latched(a, 5));
      EXPECT_FALSE(there && back) << int(a) << " and " << int(b);
      const bool up = (a == PageType::kBlinkLeaf && (b == PageType::kBlinkInner || b == PageType::kBlinkMeta)) ||
                      (a == PageType::kBlinkInner && b == PageType::kBlinkMeta);
      const bool down = (a == PageType::kHeap && b == PageType::kLockCells) || leads_to_chain(a, b);
      EXPECT_EQ(there, up || down) << int(a) << " and " << int(b);
    }
  }
}

TEST(WaitOrder, HeapPagesAreWaitedForByNumberAcrossMemoryNodes) {
  for (PageType a : {PageType::kHeap, PageType::kUnused}) {
    for (PageType b : {PageType::kHeap, PageType::kUnused}) {
      EXPECT_TRUE(in_order(WaitOrder::kById, latched(a, 7), latched(b, 8)));
      EXPECT_FALSE(in_order(WaitOrder::kById, latched(a, 8), latched(b, 7)));
      EXPECT_FALSE(in_order(WaitOrder::kById, latched(a, 8), latched(b, 8)));
      EXPECT_TRUE(in_order(WaitOrder::kById, latched(a, 8, 0), latched(b, 7, 1)));
      EXPECT_FALSE(in_order(WaitOrder::kById, latched(a, 7, 1), latched(b, 8, 0)));
    }
  }
  EXPECT_FALSE(in_order(WaitOrder::kById, latched(PageType::kHeap, 7), latched(PageType::kExtentMap, 8)));
  EXPECT_FALSE(in_order(WaitOrder::kById, latched(PageType::kBlinkLeaf, 7), latched(PageType::kBlinkLeaf, 8)));
}

TEST(WaitOrder, ChainsAreWaitedForWithinTheirKind) {
  for (PageType a : kTypes) {
    for (PageType b : kTypes) {
      if (a == PageType::kUnused || b == PageType::kUnused) continue;
      const bool chain =
          a == PageType::kBlinkLeaf || a == PageType::kBlinkInner || a == PageType::kList || a == PageType::kLog;
      EXPECT_EQ(in_order(WaitOrder::kRight, latched(a), latched(b)), (a == b && chain) || leads_to_chain(a, b))
          << int(a) << " and " << int(b);
      EXPECT_FALSE(in_order(WaitOrder::kNew, latched(a), latched(b))) << "neither is new";
      EXPECT_FALSE(in_order(WaitOrder::kAlone, latched(a), latched(b)));
    }
  }
}

// A session that frees a page waits for the allocator's map with that page in hand, which no other session knows;
// behind the map come the pages of notes, and the list of what is being reclaimed last.  No other order leads to the
// map.
TEST(WaitOrder, NotesComeBehindTheAllocatorsMap) {
  for (PageType a : kTypes) {
    if (a == PageType::kUnused) continue;
    EXPECT_FALSE(any_order(latched(a), latched(PageType::kSpaceMap))) << int(a);
    EXPECT_EQ(in_order(WaitOrder::kSpace, latched(a), latched(PageType::kSpaceMap)), a != PageType::kSpaceMap);
    EXPECT_FALSE(in_order(WaitOrder::kNote, latched(a), latched(PageType::kSpaceMap))) << int(a);
    EXPECT_FALSE(in_order(WaitOrder::kNote, latched(a), latched(PageType::kHeap))) << int(a);
    EXPECT_EQ(in_order(WaitOrder::kNote, latched(PageType::kReclaim), latched(a)),
              a == PageType::kReclaim || a == PageType::kUnused)
        << int(a);
  }
  EXPECT_TRUE(in_order(WaitOrder::kNote, latched(PageType::kSpaceMap), latched(PageType::kReclaim)));
}

class WaitsUnderGuards : public testing::Test {
 protected:
  void SetUp() override { first_ = *pool_.allocate(*session_, 64); }
  gcl_test::Cluster cluster_{{.nodes = 1, .workers = false}};  // only the test runs: it forks
  BufferPool& pool_ = cluster_.pool(0);
  std::unique_ptr<Session> session_ = cluster_.session(0);
  PageId first_;
};

TEST_F(WaitsUnderGuards, AreAdmittedInTheOrderTheyClaim) {
  auto low = pool_.fix_exclusive(*session_, first_);
  ASSERT_TRUE(low.ok());
  session_->next_wait(WaitOrder::kById);
  auto high = pool_.fix_shared(*session_, first_ + 1);
  ASSERT_TRUE(high.ok());
  session_->next_wait(WaitOrder::kNew);
  EXPECT_TRUE(pool_.fix_shared(*session_, first_ + 2));
  auto never_waits = pool_.try_shared(*session_, first_ + 2);
  EXPECT_TRUE(never_waits.ok()) << "try_ needs no order";
}

#ifndef NDEBUG
using WaitsUnderGuardsDeathTest = WaitsUnderGuards;

// Each dies before it waits, and so before it latches anything: the pool is unharmed.
TEST_F(WaitsUnderGuardsDeathTest, WithoutAnOrderAreABug) {
  auto held = pool_.fix_shared(*session_, first_);
  ASSERT_TRUE(held.ok());
  alignas(8) std::byte copy[kPageSize];
  EXPECT_DEATH((void)pool_.fix_shared(*session_, first_ + 1), "VERIFY.*kAlone");
  EXPECT_DEATH((void)pool_.fix_exclusive(*session_, first_ + 1), "VERIFY.*kAlone");
  EXPECT_DEATH((void)pool_.fix_optimistic(*session_, first_ + 1), "VERIFY.*kAlone");
  EXPECT_DEATH((void)pool_.copy_page(*session_, first_ + 1, copy), "VERIFY.*kAlone");
  EXPECT_DEATH((void)pool_.upgrade(*session_, pool_.peek(*session_, first_)), "VERIFY.*kAlone");
}

TEST_F(WaitsUnderGuardsDeathTest, AgainstTheClaimedOrderAreABug) {
  auto held = pool_.fix_shared(*session_, first_ + 1);
  ASSERT_TRUE(held.ok());
  session_->next_wait(WaitOrder::kById);
  EXPECT_DEATH((void)pool_.fix_shared(*session_, first_), "VERIFY.*kById");
  session_->next_wait(WaitOrder::kById);
  auto next = pool_.fix_shared(*session_, first_ + 2);
  EXPECT_TRUE(next.ok());
  EXPECT_DEATH((void)pool_.fix_shared(*session_, first_ + 3), "VERIFY.*kAlone") << "a claim is for one wait";
}
#endif

}  // namespace
}  // namespace bufmgr
