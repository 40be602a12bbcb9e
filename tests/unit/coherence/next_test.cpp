// Which session goes next at a line that several want: every combination of what the local word can say.
#include "coherence/latch/next.hpp"

#include <gtest/gtest.h>

namespace coherence {
namespace {

constexpr uint64_t kWaiters[] = {0, LocalWord::kSharedWaiters, LocalWord::kExclusiveWaiters};

TEST(WhoGoesNext, NobodyWhileTheLineIsLatched) {
  for (uint64_t holder : {LocalWord::kSharedOne, LocalWord::kX})
    for (uint64_t waiter : kWaiters)
      for (uint64_t pending : {uint64_t{0}, LocalWord::kPending})
        for (bool over : {false, true}) EXPECT_EQ(who_goes_next({holder | waiter | pending}, over), Next::kNobody);
}

TEST(WhoGoesNext, WaitersBeforeThePeerWhileTheLeaseLastsAndAfterItThen) {
  for (uint64_t waiter : kWaiters) {
    const bool waits = waiter != 0;
    EXPECT_EQ(who_goes_next({waiter}, false), waits ? Next::kWaiter : Next::kNobody);
    EXPECT_EQ(who_goes_next({waiter}, true), waits ? Next::kWaiter : Next::kNobody) << "no peer waits";
    EXPECT_EQ(who_goes_next({waiter | LocalWord::kPending}, false), waits ? Next::kWaiter : Next::kPeer);
    EXPECT_EQ(who_goes_next({waiter | LocalWord::kPending}, true), Next::kPeer);
  }
}

TEST(WhoGoesNext, APromiseLastsUntilItsTimeOrTheLeaseIsOver) {
  EXPECT_FALSE(is_promised(0, 1, false)) << "nobody was woken";
  EXPECT_TRUE(is_promised(100, 99, false));
  EXPECT_FALSE(is_promised(100, 100, false));
  EXPECT_FALSE(is_promised(100, 99, true));
}

// R / P + W against gamma.
TEST(Lease, AReadersTurnIsTheNthPartOfAWriters) {
  const Lease four{.gamma = 4, .sessions = 3};
  EXPECT_FALSE(four.over({3 * Turns::kWriter}));
  EXPECT_TRUE(four.over({4 * Turns::kWriter}));
  EXPECT_FALSE(four.over({11 * Turns::kReader}));
  EXPECT_TRUE(four.over({12 * Turns::kReader}));
  EXPECT_FALSE(four.over({3 * Turns::kWriter + 2 * Turns::kReader}));
  EXPECT_TRUE(four.over({3 * Turns::kWriter + 3 * Turns::kReader}));
  EXPECT_FALSE((Lease{.gamma = 4, .sessions = 3, .without_end = true}).over({100 * Turns::kWriter}));
  EXPECT_TRUE((Lease{.gamma = 0, .sessions = 3}).over({}));
}

TEST(Blocked, AWriterByAnyLatchAReaderByAWriterThatHasItOrWaits) {
  const LocalWord shares = LocalWord{}.with_msi(MsiState::kShared);
  EXPECT_FALSE(is_blocked(shares, true));
  EXPECT_TRUE(is_blocked(shares.with_shared(), true));
  EXPECT_TRUE(is_blocked(shares.with_exclusive(), true));
  EXPECT_FALSE(is_blocked(shares.with_shared(), false));
  EXPECT_TRUE(is_blocked(shares.with_exclusive(), false));
  EXPECT_TRUE(is_blocked({shares.with_shared().raw | LocalWord::kExclusiveWaiters}, false));
  EXPECT_FALSE(is_blocked({shares.raw | LocalWord::kExclusiveWaiters}, false))
      << "it is free: the writer may come too late";
  EXPECT_TRUE(is_blocked(LocalWord{}.with_shared(), false)) << "to fetch the page needs the line alone";
}

}  // namespace
}  // namespace coherence
