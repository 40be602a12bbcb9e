#include "extension/engine/serializable/hold_table.hpp"

#include <gtest/gtest.h>
#include <sys/syscall.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "tests/support/eventually.hpp"
#include "tests/support/processes.hpp"

namespace engine {
namespace {

using bufmgr::kWholePage;
using bufmgr::part;
using bufmgr::Parts;
using Entered = HoldTable::Entered;

class HoldTableTest : public ::testing::Test {
 protected:
  HoldTableTest() { table_ = make(kEntries); }
  HoldTable* make(uint32_t entries) {
    memory_.push_back(std::make_unique<std::byte[]>(HoldTable::bytes_for(entries, kSessions) + 64));
    auto at = (reinterpret_cast<uintptr_t>(memory_.back().get()) + 63) & ~uintptr_t{63};
    return HoldTable::create(reinterpret_cast<void*>(at), entries, kSessions, nullptr);
  }
  Entered enter(PageId page, TxnId by, bool exclusive, Parts parts = kWholePage) {
    HoldTable::Other other;
    const Entered entered = table_->enter(page, holder(by), by, exclusive, parts, &other, [this] { ++counted_; });
    other_ = other.by;
    only_reads_ = other.only_reads;
    return entered;
  }
  // What is told of each that gets parts of kNew.
  std::vector<std::string> give(PageId from, TxnId self, bool* room) {
    std::vector<std::string> told;
    *room = table_->give_parts(from, kNew, self, [&](TxnId by, Parts read, Parts write) {
      told.push_back(std::to_string(by.sequence()) + (read != 0 ? "S" : "") + (write != 0 ? "X" : ""));
    });
    std::sort(told.begin(), told.end());
    return told;
  }
  void leave(PageId page, TxnId by) {
    modes_ = "";
    table_->leave(page, by, [this](bool shared, bool exclusive, TxnId next) {
      modes_ = std::string(shared ? "S" : "") + (exclusive ? "X" : "");
      next_ = next;
    });
  }
  // A session for each.
  Holder& holder(TxnId by) { return table_->holder(uint32_t(by.sequence() - kA.sequence())); }
  static constexpr uint32_t kEntries = 8, kSessions = 4;
  static constexpr PageId kPage{17}, kOther{18}, kNew{19};
  static constexpr TxnId kA = TxnId::make({1}, 5), kB = TxnId::make({1}, 6), kC = TxnId::make({1}, 7);
  std::vector<std::unique_ptr<std::byte[]>> memory_;
  HoldTable* table_;
  TxnId other_{}, next_{};
  std::string modes_;
  int counted_ = 0;
  bool only_reads_ = false;
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

class UpgradeTest : public HoldTableTest {
 protected:
  UpgradeTest() {
    for (const TxnId by : {kA, kB, kC}) holder(by).begin(by, 0);
  }
};

// serializable.one-upgrader
TEST_F(UpgradeTest, OfReadersThatWantToWriteOneWaits) {
  for (const TxnId by : {kA, kB, kC}) EXPECT_EQ(enter(kPage, by, false), Entered::kNow);
  EXPECT_EQ(enter(kPage, kA, true, part(1)), Entered::kHeld);
  EXPECT_EQ(enter(kPage, kB, true, part(2)), Entered::kUpgrade);
  EXPECT_EQ(enter(kPage, kC, true), Entered::kUpgrade);
  EXPECT_EQ(enter(kPage, kA, true, part(1)), Entered::kHeld) << "it asks again";
  leave(kPage, kB);
  leave(kPage, kC);
  EXPECT_EQ(enter(kPage, kA, true, part(1)), Entered::kNow);
}

TEST_F(UpgradeTest, OneThatWaitsNoLongerRefusesNobody) {
  for (const TxnId by : {kA, kB}) EXPECT_EQ(enter(kPage, by, false), Entered::kNow);
  EXPECT_EQ(enter(kPage, kA, true), Entered::kHeld);
  holder(kA).note_request();
  EXPECT_EQ(enter(kPage, kB, true), Entered::kHeld);
  EXPECT_EQ(enter(kPage, kA, true), Entered::kUpgrade);
  ASSERT_TRUE(holder(kB).take(kB, 0));
  EXPECT_EQ(enter(kPage, kA, true), Entered::kHeld) << "it has given up, and waits for nobody";
}

TEST_F(UpgradeTest, OneThatWaitsForAnotherPartRefusesNobody) {
  EXPECT_EQ(enter(kPage, kA, false, part(1)), Entered::kNow);
  EXPECT_EQ(enter(kPage, kB, false, part(1) | part(2)), Entered::kNow);
  EXPECT_EQ(enter(kPage, kC, false, part(2)), Entered::kNow);
  EXPECT_EQ(enter(kPage, kA, true, part(2)), Entered::kHeld);
  EXPECT_EQ(enter(kPage, kC, true, part(2)), Entered::kHeld) << "the first waits for it, and not the other way round";
  EXPECT_EQ(enter(kOther, kC, true), Entered::kNow);
  EXPECT_EQ(enter(kPage, kB, true, part(1)), Entered::kUpgrade);
}

TEST_F(UpgradeTest, OneThatHasNotReadWaitsBehind) {
  EXPECT_EQ(enter(kPage, kA, false), Entered::kNow);
  EXPECT_EQ(enter(kPage, kB, false), Entered::kNow);
  EXPECT_EQ(enter(kPage, kA, true), Entered::kHeld);
  EXPECT_EQ(enter(kPage, kC, true), Entered::kHeld);
  EXPECT_EQ(enter(kPage, kC, false), Entered::kNow) << "a reader waits for nobody";
}

// serializable.parts-apart
TEST_F(HoldTableTest, WritersOfDifferentPartsHoldAPageTogether) {
  EXPECT_EQ(enter(kPage, kA, true, part(3)), Entered::kNow);
  EXPECT_EQ(enter(kPage, kB, true, part(4)), Entered::kNow);
  EXPECT_EQ(counted_, 2);
  EXPECT_EQ(enter(kPage, kB, true, part(3)), Entered::kHeld);
  EXPECT_EQ(other_, kA);
  EXPECT_FALSE(only_reads_);
  EXPECT_EQ(enter(kPage, kC, false, part(4)), Entered::kHeld);
  EXPECT_EQ(other_, kB);
  EXPECT_EQ(enter(kPage, kC, false), Entered::kHeld);
  EXPECT_EQ(enter(kPage, kC, false, part(5)), Entered::kNow);
  EXPECT_EQ(enter(kPage, kA, true, part(5)), Entered::kHeld);
  EXPECT_EQ(other_, kC);
  EXPECT_TRUE(only_reads_);
  EXPECT_EQ(enter(kPage, kA, false, part(5)), Entered::kNow);
  EXPECT_EQ(enter(kPage, kA, true), Entered::kHeld);
}

TEST_F(HoldTableTest, FurtherPartsAreCountedOnce) {
  EXPECT_EQ(enter(kPage, kA, true, part(3)), Entered::kNow);
  EXPECT_EQ(enter(kPage, kA, true, part(4)), Entered::kNow);
  EXPECT_EQ(enter(kPage, kA, true, part(3) | part(4)), Entered::kBefore);
  EXPECT_EQ(counted_, 1);
  EXPECT_EQ(enter(kPage, kA, false, part(9)), Entered::kNow);
  EXPECT_EQ(counted_, 2);
  EXPECT_EQ(table_->used(), 1u);
  leave(kPage, kA);
  EXPECT_EQ(modes_, "SX");
  EXPECT_EQ(table_->used(), 0u);
}

// serializable.parts-are-held
TEST_F(HoldTableTest, WhatIsHeldOfAPageIsHeldOfWhatItBecomes) {
  for (uint32_t n : {0u, 1u}) table_->holder(n).begin(n == 0 ? kA : kB, 0);
  EXPECT_EQ(enter(kPage, kA, true, part(3)), Entered::kNow);
  HoldTable::Other other;
  EXPECT_EQ(table_->enter(kPage, table_->holder(1), kB, false, part(4), &other, [] {}), Entered::kNow);
  bool room = false;
  EXPECT_EQ(give(kPage, kA, &room), (std::vector<std::string>{"5X", "6S"}));
  EXPECT_TRUE(room);
  EXPECT_EQ(enter(kNew, kA, true, part(3)), Entered::kBefore);
  EXPECT_EQ(enter(kNew, kC, true, part(4)), Entered::kHeld);
  EXPECT_EQ(other_, kB);
  EXPECT_EQ(enter(kNew, kC, true, part(5)), Entered::kNow);
  EXPECT_FALSE(table_->holder(0).take_given_parts());
  EXPECT_TRUE(table_->holder(1).take_given_parts());
  EXPECT_FALSE(table_->holder(1).take_given_parts());
}

TEST_F(HoldTableTest, NothingIsGivenToAHolderThatHasGivenUp) {
  table_->holder(0).begin(kA, 0);
  EXPECT_EQ(enter(kPage, kA, false, part(3)), Entered::kNow);
  ASSERT_TRUE(table_->holder(0).take(kA, 0));
  bool room = false;
  EXPECT_TRUE(give(kPage, kB, &room).empty());
  EXPECT_TRUE(room);
  EXPECT_EQ(table_->used(), 1u);
}

TEST_F(HoldTableTest, AllIsGivenOrNothing) {
  enter(kPage, kA, false, part(1));
  enter(kPage, kB, false, part(2));
  for (uint32_t i = 0; i < kEntries - 3; ++i) enter(PageId{100 + i}, kC, false);
  bool room = true;
  EXPECT_TRUE(give(kPage, kA, &room).empty());
  EXPECT_FALSE(room);
  EXPECT_EQ(table_->used(), kEntries - 1);
  EXPECT_EQ(enter(kNew, kC, true), Entered::kNow);
}

// Pages are split while their holders end: a holder that has a part is told, or has not got it
// (serializable.given-parts-noted).
TEST_F(HoldTableTest, AHolderThatEndsLeavesWhatItWasGiven) {
  constexpr uint64_t kRounds = 2000;
  for (uint64_t round = 0; round < kRounds; ++round) {
    Holder& holder = table_->holder(0);
    holder.begin(kA, 0);
    ASSERT_EQ(enter(kPage, kA, true, part(3)), Entered::kNow);
    std::atomic<bool> go{false};
    std::thread splits([&] {
      while (!go.load()) {
      }
      bool room = false;
      (void)give(kPage, kB, &room);
    });
    go.store(true);
    table_->leave(kPage, kA, [](bool, bool, TxnId) {});
    if (round % 2 == 0) splits.join();  // else the note may come after the last look: then nothing was given
    while (holder.take_given_parts())
      table_->leave_all(
          kA, [](PageId, bool, bool, TxnId) {}, [](PageId) {});
    if (round % 2 != 0) splits.join();
    ASSERT_EQ(table_->used(), 0u) << round;
    holder.end();
  }
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
        HoldTable::Other other;
        if (table_->enter(page, table_->holder(uint32_t(n)), me, true, kWholePage, &other, [] {}) != Entered::kNow) {
          EXPECT_TRUE(other.by.valid() && other.by != me);
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

TEST_F(HoldTableTest, AllOfATransactionIsLetGo) {
  table_->holder(0).begin(kA, 0);
  EXPECT_EQ(enter(kPage, kA, false), Entered::kNow);
  EXPECT_EQ(enter(kPage, kB, false), Entered::kNow);
  EXPECT_EQ(enter(kOther, kA, true), Entered::kNow);
  ASSERT_TRUE(table_->holder(0).take(kA, 7));
  std::vector<std::string> left;
  int served = 0;
  table_->leave_all(
      kA,
      [&](PageId page, bool shared, bool exclusive, TxnId next) {
        left.push_back(std::to_string(page.raw) + (shared ? "S" : "") + (exclusive ? "X" : "") +
                       (next.valid() ? "+" : ""));
      },
      [&](PageId) { ++served; });
  std::sort(left.begin(), left.end());
  EXPECT_EQ(left, (std::vector<std::string>{"17S+", "18X"}));
  EXPECT_EQ(served, 2);
  EXPECT_EQ(table_->used(), 1u);
  EXPECT_EQ(enter(kOther, kA, false), Entered::kGivenUp);
  EXPECT_EQ(table_->holder(0).idle_ms(), 7u);
}

// The mark comes while the transaction waits for the bucket (serializable.mark-under-bucket).
TEST_F(HoldTableTest, NothingIsEnteredBehindTheMark) {
  Holder& holder = table_->holder(1);
  holder.begin(kA, 0);
  std::atomic<bool> locked{false}, go_on{false};
  std::atomic<int> enters_as{0};  // a thread's id
  std::thread has_the_bucket([&] {
    HoldTable::Other other;
    table_->enter(kPage, table_->holder(2), kB, false, kWholePage, &other, [&] {
      locked.store(true);
      while (!go_on.load()) std::this_thread::yield();
    });
  });
  while (!locked.load()) std::this_thread::yield();
  Entered entered{};
  std::thread enters([&] {
    HoldTable::Other other;
    enters_as.store(int(syscall(SYS_gettid)));
    entered = table_->enter(kPage, holder, kA, false, kWholePage, &other, [] {});
  });
  EXPECT_TRUE(gcl_test::eventually([&] { return gcl_test::thread_sleeps(enters_as); })) << "at the bucket";
  ASSERT_TRUE(holder.take(kA, 0));
  go_on.store(true);
  has_the_bucket.join();
  enters.join();
  EXPECT_EQ(entered, Entered::kGivenUp);
  EXPECT_EQ(table_->used(), 1u);
}

// Of many attempts at the same moment one side has come first (serializable.kept-or-taken).
TEST(Holder, IsKeptOrTaken) {
  constexpr uint64_t kRounds = 20000;
  Holder holder;
  std::atomic<uint64_t> begun{0}, tried{0};
  std::atomic<bool> taken{false};
  int kept = 0;
  std::thread taker([&] {
    for (uint64_t round = 1; round <= kRounds; ++round) {
      while (begun.load() != round) std::this_thread::yield();
      taken.store(holder.take(TxnId::make({1}, round), 1));
      tried.store(round);
    }
  });
  for (uint64_t round = 1; round <= kRounds; ++round) {
    const TxnId by = TxnId::make({1}, round);
    holder.begin(by, 0);
    begun.store(round);
    for (uint64_t pause = 0; pause < round % 64; ++pause) (void)holder.word();
    const bool keeps = holder.keep(by);
    kept += keeps;
    while (tried.load() != round) std::this_thread::yield();
    ASSERT_NE(keeps, taken.load());
    EXPECT_EQ(holder.keep(by), keeps);
    EXPECT_FALSE(holder.take(by, 1));
    holder.end();
  }
  taker.join();
  RecordProperty("kept", kept);
}

TEST(Holder, IsTakenOfTheTransactionThatWasMeant) {
  Holder holder;
  const TxnId first = TxnId::make({1}, 5), second = TxnId::make({1}, 6);
  EXPECT_FALSE(holder.take(first, 1));
  holder.begin(second, 30);
  EXPECT_FALSE(holder.take(first, 1));
  EXPECT_EQ(holder.patience_ms(), 30);
  EXPECT_TRUE(holder.take(second, 1));
  EXPECT_FALSE(holder.keep(second));
}

}  // namespace
}  // namespace engine
