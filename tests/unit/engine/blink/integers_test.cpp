// What a comparator says of integers, once for a whole search.
#include <gtest/gtest.h>

#include "extension/engine/blink/entry.hpp"

namespace engine::blink {
namespace {

TEST(BlinkIntegers, OrderAsTheirKeysDo) {
  const auto head = [](uint64_t first, uint64_t second) { return KeyHead{{first, second}}; };
  const IntegerOrder wide{.decides = true, .number = -5};
  EXPECT_EQ(wide.against(head(0, uint64_t(-6))), 1);
  EXPECT_EQ(wide.against(head(0, 3)), -1);
  EXPECT_EQ(wide.against(head(0, uint64_t(-5))), IntegerOrder::kUnsure);
  const IntegerOrder alone{.decides = true, .descending = true, .alone = true, .number = 7};
  EXPECT_EQ(alone.against(head(0, 7)), 0);
  EXPECT_EQ(alone.against(head(0, 8)), 1);
  EXPECT_EQ(alone.against(head(0, 6)), -1);
  // The upper half of the word is padding then, and the integer has a sign.
  const IntegerOrder narrow{.decides = true, .narrow = true, .alone = true, .number = -1};
  EXPECT_EQ(narrow.against(head(0, 0x77777777ffffffff)), 0);
  EXPECT_EQ(narrow.against(head(0, 0x77777777fffffffe)), 1);
  EXPECT_EQ(narrow.against(head(0, 0x7777777700000000)), -1);
  const IntegerOrder marked{.decides = true, .alone = true, .unless = uint64_t{1} << 63, .number = 1};
  EXPECT_EQ(marked.against(head(uint64_t{1} << 63, 2)), IntegerOrder::kUnsure);
  EXPECT_EQ(marked.against(head(~uint64_t{0} >> 1, 2)), -1);
}

}  // namespace
}  // namespace engine::blink
