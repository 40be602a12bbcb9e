#include "coherence/base/crc32c.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

namespace coherence {
namespace {

// By the polynomial, bit for bit.
uint32_t by_definition(const unsigned char* bytes, size_t count) {
  uint32_t crc = ~0u;
  for (size_t i = 0; i < count; i++) {
    crc ^= bytes[i];
    for (int bit = 0; bit < 8; bit++) crc = crc & 1 ? crc >> 1 ^ 0x82f63b78 : crc >> 1;
  }
  return ~crc;
}

}  // namespace

// The values of RFC 3720, B.4, and the customary one.
TEST(Crc32c, IsTheOneOfTheStandards) {
  unsigned char bytes[32];
  EXPECT_EQ(crc32c(0, "123456789", 9), 0xe3069283u);
  memset(bytes, 0, sizeof bytes);
  EXPECT_EQ(crc32c(0, bytes, sizeof bytes), 0x8a9136aau);
  memset(bytes, 0xff, sizeof bytes);
  EXPECT_EQ(crc32c(0, bytes, sizeof bytes), 0x62a8ab43u);
  for (int i = 0; i < 32; i++) bytes[i] = uint8_t(i);
  EXPECT_EQ(crc32c(0, bytes, sizeof bytes), 0x46dd794eu);
}

TEST(Crc32c, OfAnyLengthAtAnyPlaceInAnyPieces) {
  std::mt19937 random(1);
  std::vector<unsigned char> bytes(8192 + 64);
  for (auto& byte : bytes) byte = uint8_t(random());
  for (size_t count : {0, 1, 7, 8, 9, 63, 64, 100, 1000, 8191, 8192})
    for (size_t from = 0; from < 9; from++) {
      const unsigned char* const at = bytes.data() + from;
      const uint32_t whole = by_definition(at, count);
      ASSERT_EQ(crc32c(0, at, count), whole) << count << " from " << from;
      const size_t cut = count == 0 ? 0 : random() % count;
      ASSERT_EQ(crc32c(crc32c(0, at, cut), at + cut, count - cut), whole) << count << " cut at " << cut;
    }
}

}  // namespace coherence
