// Containers that say when there is no memory, and then are what they were.
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <random>
#include <vector>

#include "extension/engine/memory/growing_array.hpp"
#include "extension/engine/memory/growing_map.hpp"
#include "tests/support/longer.hpp"
#include "tests/unit/engine/memory/no_memory.hpp"

namespace engine_test {

using engine::GrowingArray;
using engine::GrowingMap;

TEST(GrowingArray, IsWhatAVectorIsThatIsToldTheSame) {
  std::mt19937 random(gcl_test::seed(1));
  GrowingArray<int> array;
  std::vector<int> model;
  for (int i = 0; i < 20000; ++i) {
    const size_t at = model.empty() ? 0 : random() % model.size();
    switch (random() % 8) {
      case 0:
      case 1:
      case 2:
        ASSERT_TRUE(array.make_room(1));
        array.insert(uint32_t(at), i);
        model.insert(model.begin() + long(at), i);
        break;
      case 3:
      case 4:
        ASSERT_TRUE(array.make_room(1 + random() % 3));
        array.push_back(i);
        model.push_back(i);
        break;
      case 5:
      case 6:
        if (model.empty()) break;
        array.erase(uint32_t(at));
        model.erase(model.begin() + long(at));
        break;
      default:
        if (random() % 50 != 0) break;
        array.truncate(uint32_t(at));
        model.resize(at);
    }
    ASSERT_EQ(array.size(), model.size());
    ASSERT_EQ(array.empty(), model.empty());
    ASSERT_TRUE(std::equal(model.begin(), model.end(), array.begin(), array.end()));
  }
}

TEST(GrowingArray, WithoutMemoryItStaysAsItIs) {
  GrowingArray<uint64_t> array;
  {
    NoMemory none;
    EXPECT_FALSE(array.make_room(1));
  }
  ASSERT_TRUE(array.make_room(2));
  array.push_back(7);
  array.push_back(8);
  {
    NoMemory none;
    EXPECT_TRUE(array.make_room(0));
    EXPECT_FALSE(array.make_room(1));
  }
  EXPECT_EQ(array.size(), 2u);
  EXPECT_EQ(array.front(), 7u);
  EXPECT_EQ(array.back(), 8u);
  EXPECT_FALSE(array.make_room(uint64_t{1} << 32)) << "more than it can count";
  GrowingArray<uint64_t> other = std::move(array);
  EXPECT_EQ(other.size(), 2u);
  EXPECT_TRUE(array.empty());  // NOLINT(bugprone-use-after-move): that is what is asked
}

TEST(GrowingMap, HasWhatWasPutInWhetherOrNotThereWasMemoryForMore) {
  std::mt19937_64 random(gcl_test::seed(2));
  for (int round = 0; round < 20; ++round) {
    GrowingMap<uint64_t> map;
    std::map<uint64_t, uint64_t> model;
    int refused = 0;
    EXPECT_EQ(map.find(1), nullptr);
    for (uint64_t i = 0; i < 3000; ++i) {
      const uint64_t key = random() % 4 == 0 ? random() : random() % 2000 << (round % 3 * 16);
      std::optional<NoMemory> none;
      if (random() % 2 == 0) none.emplace();
      uint64_t* value = map.make(key);
      if (value == nullptr) {
        EXPECT_TRUE(none);
        ASSERT_FALSE(model.contains(key)) << "what is there needs no memory";
        ++refused;
        continue;
      }
      ASSERT_EQ(*value, model[key]);
      *value = model[key] = i;
    }
    EXPECT_GT(refused, 0);
    uint64_t sum = 0, expected = 0, count = 0;
    for (const auto& [key, value] : model) {
      ASSERT_NE(map.find(key), nullptr);
      ASSERT_EQ(*map.find(key), value);
      expected += value;
    }
    map.for_each([&](uint64_t value) { sum += value, ++count; });
    EXPECT_EQ(sum, expected);
    EXPECT_EQ(count, model.size());
    map.forget();
    EXPECT_EQ(map.find(model.begin()->first), nullptr);
  }
}

}  // namespace engine_test
