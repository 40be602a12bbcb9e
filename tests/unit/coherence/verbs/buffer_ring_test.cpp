// Pieces of a ring: apart, whole, and all of it used.
#include "coherence/transport/verbs/buffer_ring.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <random>
#include <utility>
#include <vector>

namespace coherence::verbs {

TEST(VerbsBufferRing, APieceAsLongAsAllOfItFitsWhenThereIsNoOther) {
  BufferRing ring(64);
  for (int i = 0; i < 3; i++) {
    ASSERT_EQ(ring.take(64), 0u);
    EXPECT_FALSE(ring.take(8));
    EXPECT_TRUE(ring.take(0));
    ring.give_back();
    ring.give_back();
    ASSERT_EQ(ring.take(24), 0u);
    ring.give_back();
  }
}

TEST(VerbsBufferRing, APieceThatDoesNotFitAtTheEndBeginsInFront) {
  BufferRing ring(64);
  EXPECT_EQ(ring.take(24), 0u);
  EXPECT_EQ(ring.take(24), 24u);
  ring.give_back();
  EXPECT_EQ(ring.take(24), 0u);
  EXPECT_FALSE(ring.take(8)) << "it would lie in the second";
  ring.give_back();
  EXPECT_EQ(ring.take(8), 24u);
}

// Against a list of what is taken.
TEST(VerbsBufferRing, PiecesAreApartAtAnyTime) {
  constexpr uint32_t kBytes = 512;
  std::mt19937 random(3);
  BufferRing ring(kBytes);
  std::deque<std::pair<uint32_t, uint32_t>> pieces;
  uint64_t taken = 0, refused = 0;
  for (int step = 0; step < 100'000; step++) {
    if (!pieces.empty() && random() % 2 == 0) {
      ring.give_back();
      pieces.pop_front();
      continue;
    }
    const uint32_t bytes = uint32_t(random() % 20) * 8;
    const auto at = ring.take(bytes);
    if (!at) {
      refused++;
      ASSERT_FALSE(pieces.empty());
      continue;
    }
    taken++;
    ASSERT_LE(*at + bytes, kBytes);
    for (const auto& [there, length] : pieces)
      ASSERT_TRUE(bytes == 0 || length == 0 || *at + bytes <= there || there + length <= *at);
    pieces.emplace_back(*at, bytes);
  }
  EXPECT_GT(taken, 10'000u);
  EXPECT_GT(refused, 100u);
}

}  // namespace coherence::verbs
