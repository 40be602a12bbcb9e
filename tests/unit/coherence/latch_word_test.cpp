#include <gtest/gtest.h>

#include "coherence/latch/latch_word.hpp"
#include "coherence/latch/local_latch.hpp"

namespace coherence {

TEST(LatchWord, EveryOwnerFitsItsSixBits) {
  for (uint8_t n = 0; n < kNodesMax; n++) {
    LatchWord w = LatchWord::owned_by(NodeId{n});
    EXPECT_TRUE(w.well_formed());
    EXPECT_EQ(w.owner().value, n);
    EXPECT_TRUE(w.readers().empty());
  }
}

TEST(LatchWord, AdditionsNeitherCarryNorBorrowWhateverTheOtherBitsAre) {
  NodeSet others{LatchWord::kReaders};
  for (uint8_t n = 0; n < kNodesMax; n++) {
    NodeId a{n}, b{uint8_t((n + 1) % kNodesMax)};
    LatchWord w{others.without(a).bits | LatchWord::owner_bits(a)};
    EXPECT_EQ(w.plus(LatchWord::hand_over(a, b)).owner(), b);
    EXPECT_EQ(w.plus(LatchWord::hand_over(a, b)).readers(), others.without(a));
    EXPECT_EQ(w.plus(LatchWord::downgrade(a)), LatchWord{others.bits});
    EXPECT_EQ(w.plus(LatchWord::drop_owner(a)), LatchWord{others.without(a).bits});
    EXPECT_EQ(LatchWord{others.bits}.plus(LatchWord::drop_reader(a)).readers(), others.without(a));
  }
}

TEST(LocalWord, EndingXGrowsTheVersionAndKeepsTheRest) {
  LocalWord w =
      LocalWord{LocalWord::kX | LocalWord::kPending | LocalWord::kSharedWaiters}.with_msi(MsiState::kModified);
  LocalWord after{w.raw + LocalWord::kUnlockExclusive};
  EXPECT_EQ(after.raw, w.without_exclusive().raw);
  EXPECT_EQ(after.version(), 1u);
  EXPECT_TRUE(after.pending());
  EXPECT_TRUE(after.has_waiters());
  EXPECT_EQ(after.msi(), MsiState::kModified);
}

TEST(LocalWord, AWaitingWriterKeepsNewReadersOut) {
  LocalWord w = LocalWord{LocalWord::kExclusiveWaiters}.with_msi(MsiState::kShared).with_shared();
  EXPECT_FALSE(w.admits_shared());
  EXPECT_TRUE(w.readable());
}

}  // namespace coherence
