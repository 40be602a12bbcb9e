#include "extension/engine/serializable/hold_table.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <thread>
#include <vector>

namespace engine {
namespace {

using Entered = HoldTable::Entered;

class HoldTableTest : public ::testing::Test {
 protected:
  HoldTableTest() { table_ = make(kEntries); }
  HoldTable* make(uint32_t entries) {
    memory_.push_back(std::make_unique<std::byte[]>(HoldTable::bytes_for(entries) + 64));
    auto at = (reinterpret_cast<uintptr_t>(memory_.back().get()) + 63) & ~uintptr_t{63};
    return HoldTable::create(reinterpret_cast<void*>(at), entries, nullptr);
  }
  Entered enter(PageId page, TxnId by, bool exclusive) {
    return table_->enter(page, by, exclusive, &other_, [this] { ++counted_; });
  }
  void leave(PageId page, TxnId by) {
    modes_ = "";
    table_->leave(page, by, [this](bool shared, bool exclusive, TxnId next) {
      modes_ = std::string(shared ? "S" : "") + (exclusive ? "X" : "");
      next_ = next;
    });
  }
  static constexpr uint32_t kEntries = 8;
  static constexpr PageId kPage{17}, kOther{18};
  static constexpr TxnId kA = TxnId::make({1}, 5), kB = TxnId::make({1}, 6), kC = TxnId::make({1}, 7);
  std::vector<std::unique_ptr<std::byte[]>> memory_;
  HoldTable* table_;
  TxnId other_{}, next_{};
  std::string modes_;
  int counted_ = 0;
};

TEST_F(HoldTableTest, ReadersHoldAPageTogether) {
  EXPECT_EQ(enter(kPage, kA, false), Entered::kNow);
  EXPECT_EQ(enter(kPage, kB, false), Entered::kNow);
  EXPECT_EQ(enter(kPage, kA, false), Entered::kBefore);
  EXPECT_EQ(counted_, 2);
  EXPECT_EQ(table_->used(), 2u);
}

TEST_F(HoldTableTest, AWriterHoldsItAlone) {
  EXPECT_EQ(enter(kPage, kA, true), Entered::kNow);
  EXPECT_EQ(enter(kPage, kB, false), Entered::kHeld);
  EXPECT_EQ(other_, kA);
  EXPECT_EQ(enter(kPage, kB, true), Entered::kHeld);
  EXPECT_EQ(enter(kOther, kB, true), Entered::kNow);
  EXPECT_EQ(counted_, 2);
}

TEST_F(HoldTableTest, AReaderBecomesAWriterIfItIsAlone) {
  EXPECT_EQ(enter(kPage, kA, false), Entered::kNow);
  EXPECT_EQ(enter(kPage, kB, false), Entered::kNow);
  EXPECT_EQ(enter(kPage, kA, true), Entered::kHeld);
  EXPECT_EQ(other_, kB);
  leave(kPage, kB);
  EXPECT_EQ(modes_, "S");
  EXPECT_EQ(next_, kA);
  EXPECT_EQ(enter(kPage, kA, true), Entered::kNow);
  leave(kPage, kA);
  EXPECT_EQ(modes_, "SX");
  EXPECT_FALSE(next_.valid());
  EXPECT_EQ(table_->used(), 0u);
}

TEST_F(HoldTableTest, SaysWhoElseHoldsAPage) {
  enter(kPage, kA, false);
  EXPECT_FALSE(table_->other_holder(kPage, kA).valid());
  EXPECT_EQ(table_->other_holder(kPage, kB), kA);
  EXPECT_EQ(table_->other_holder(kPage, TxnId{}), kA);
  EXPECT_FALSE(table_->other_holder(kOther, kB).valid());
  leave(kOther, kA);
  EXPECT_EQ(modes_, "");
}

TEST_F(HoldTableTest, IsFullAndHasRoomAgain) {
  for (uint32_t i = 0; i < kEntries; ++i) EXPECT_EQ(enter(PageId{i}, kA, false), Entered::kNow);
  EXPECT_EQ(enter(PageId{99}, kA, false), Entered::kFull);
  EXPECT_EQ(enter(PageId{3}, kA, true), Entered::kNow);  // takes no entry
  leave(PageId{5}, kA);
  EXPECT_EQ(enter(PageId{99}, kC, false), Entered::kNow);
}

// Exclusive holds of many threads: each page's counter is changed by one at a time, and all entries come back.
TEST_F(HoldTableTest, ManyAtOnce) {
  constexpr int kThreads = 4, kRounds = 20000, kPages = 3;
  table_ = make(kThreads * kPages);
  int inside[kPages] = {};
  std::vector<std::thread> threads;
  for (int n = 0; n < kThreads; ++n)
    threads.emplace_back([&, n] {
      const TxnId me = TxnId::make({1}, uint64_t(n) + 1);
      for (int i = 0; i < kRounds; ++i) {
        const PageId page{uint64_t(i + n) % kPages};
        TxnId other{};
        if (table_->enter(page, me, true, &other, [] {}) != Entered::kNow) {
          EXPECT_TRUE(other.valid() && other != me);
          continue;
        }
        EXPECT_EQ(++inside[page.raw], 1);
        --inside[page.raw];
        table_->leave(page, me, [](bool, bool exclusive, TxnId) { EXPECT_TRUE(exclusive); });
      }
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(table_->used(), 0u);
}

}  // namespace
}  // namespace engine
