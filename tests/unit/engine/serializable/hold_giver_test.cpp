// Holds of sessions that are idle while others wait: when they are given up, and what becomes of their transaction.
#include "extension/engine/serializable/hold_giver.hpp"

#include <thread>

#include "extension/engine/serializable/given_up.hpp"
#include "tests/unit/engine/serializable/holds_fixture.hpp"

namespace engine_test {

using coherence::Errc;

struct IdleFor final : Idleness {
  std::optional<uint32_t> idle_ms(coherence::SessionId, const Holder&) override { return ms; }
  std::optional<uint32_t> ms;
};

class HoldGiverTest : public HoldsTest {
 protected:
  // A patient reader of the row on node 0.
  HoldGiverTest() : giver_(worker_.txns(), *tables_[0], idle_), reader_(*this, 0) {
    reader_.patience_ms = 100;
    seen_ = reader_.begin();
    EXPECT_TRUE(reader_.read(row_, seen_)->found);
  }
  std::optional<uint32_t> round() {
    auto due = giver_.round();
    EXPECT_TRUE(due.ok());
    return due ? *due : std::nullopt;
  }
  // Has `writer` wait for the reader, until `meanwhile` is over.
  template <class Meanwhile>
  void while_waits(Actor& writer, Meanwhile meanwhile) {
    const int before = writer.worker.waiter().waits;
    EXPECT_EQ(writer.update(row_), Errc::kHeld);
    std::thread waits([&] { EXPECT_TRUE(writer.holds.wait().ok()); });
    writer.worker.waiter().expect_waits(before + 1);
    EXPECT_TRUE(gcl_test::eventually([&] { return round().has_value() || reader_.holds.given_up(); }));
    meanwhile();
    waits.join();
  }
  Worker worker_{engine_, 0};
  IdleFor idle_;
  HoldGiver giver_;
  Actor reader_;
  Snapshot seen_;
};

TEST_F(HoldGiverTest, AHolderThatIsIdleForLongGivesUpToAWaiter) {
  for (const int node : {0, 1}) {
    SCOPED_TRACE(node);
    if (node == 1) {
      reader_.worker.abort();
      reader_.holds.end();
      seen_ = reader_.begin();
      ASSERT_TRUE(reader_.read(row_, seen_).ok());
    }
    Actor writer(*this, node);
    while_waits(writer, [&] {
      idle_.ms = 99;
      EXPECT_EQ(round(), 1u);
      EXPECT_FALSE(reader_.holds.given_up());
      idle_.ms = 100;
      EXPECT_EQ(round(), std::nullopt);
    });
    EXPECT_TRUE(reader_.holds.given_up());
    EXPECT_EQ(reader_.holds.idle_ms(), 100u);
    EXPECT_FALSE(reader_.holds.keep());
    EXPECT_EQ(writer.update(row_), Errc::kOk);
    writer.worker.abort();
    idle_.ms.reset();
  }
}

TEST_F(HoldGiverTest, AHolderThatWorksOrIsNotWaitedForKeepsThem) {
  idle_.ms = 1000000;
  EXPECT_EQ(round(), std::nullopt);  // nobody waits
  idle_.ms.reset();
  Actor writer(*this, 1);
  while_waits(writer, [&] {
    EXPECT_EQ(round(), 25u);  // it is at work
    idle_.ms = 1000000;
    EXPECT_TRUE(reader_.holds.keep());  // and commits
    EXPECT_EQ(round(), std::nullopt);
    EXPECT_FALSE(reader_.holds.given_up());
    EXPECT_EQ(tables_[0]->used(), 1u);
    reader_.commit();
  });
  EXPECT_TRUE(gcl_test::eventually([&] { return writer.update(row_) == Errc::kOk; }));
}

TEST_F(HoldGiverTest, PatienceMayHaveNoEnd) {
  reader_.worker.abort();
  reader_.holds.end();
  reader_.patience_ms = kPatienceForever;
  ASSERT_TRUE(reader_.read(row_, reader_.begin()).ok());
  Actor writer(*this, 0);
  idle_.ms = 1000000;
  EXPECT_EQ(writer.update(row_), Errc::kHeld);
  auto wanted = writer.worker->want_holds(reader_.worker->current().top());
  EXPECT_TRUE(wanted.ok() && *wanted);
  EXPECT_EQ(round(), std::nullopt);
  EXPECT_FALSE(reader_.holds.given_up());
}

// serializable.given-up-reader
TEST_F(HoldGiverTest, AReaderReadsOnByItsSnapshot) {
  Actor writer(*this, 1);
  while_waits(writer, [&] {
    idle_.ms = 100;
    (void)round();
  });
  ASSERT_EQ(writer.update(row_, "new"), Errc::kOk);
  writer.commit();
  EXPECT_EQ(reader_.read(row_, seen_).error(), Errc::kGivenUp);
  reader_.holds.read_on();
  auto read = reader_.read(row_, seen_);
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(reader_.buffer.text(read->bytes), "old");
  reader_.commit();
  EXPECT_FALSE(reader_.holds.given_up());
  ASSERT_TRUE(reader_.read(row_, reader_.begin()).ok());  // the next one holds again
  EXPECT_EQ(writer.update(row_), Errc::kHeld);
}

// The process that takes them away has marked that, and stands (serializable.mark-stays).
TEST_F(HoldGiverTest, AHolderThatEndsLeavesNothingToOneThatStillTakes) {
  const TxnId by = reader_.worker->current().top();
  ASSERT_TRUE(tables_[0]->holder(reader_.worker->session().id().value).take(by, 100));
  EXPECT_FALSE(reader_.holds.keep());
  EXPECT_EQ(tables_[0]->used(), 1u);
  reader_.worker.abort();
  reader_.holds.end();
  EXPECT_EQ(tables_[0]->used(), 0u);
  leave_all_entered(worker_.txns(), *tables_[0], by);  // it goes on, and finds nothing
  Actor writer(*this, 1);
  EXPECT_EQ(writer.update(row_), Errc::kOk);
}

TEST_F(HoldGiverTest, WhatWasWrittenStaysItsOwn) {
  ASSERT_EQ(reader_.insert("mine"), Errc::kOk);
  const Tid mine = reader_.inserted;
  ASSERT_EQ(mine.block, row_.block);
  Actor writer(*this, 1);
  while_waits(writer, [&] {
    idle_.ms = 100;
    (void)round();
  });
  EXPECT_EQ(writer.update(row_), Errc::kOk);
  writer.commit();
  Actor other(*this, 0);
  EXPECT_FALSE(other.read(mine, other.worker.snapshot())->found);
  EXPECT_FALSE(reader_.holds.keep());  // so it must not be committed
  reader_.worker.abort();
  reader_.holds.end();
  EXPECT_FALSE(other.read(mine, other.worker.snapshot())->found);
}

TEST_F(HoldGiverTest, AReaderThatGivesUpByItselfReadsOn) {
  Actor writer(*this, 1);
  while_waits(writer, [&] { EXPECT_TRUE(reader_.holds.give_up(Errc::kNoHolds)); });
  EXPECT_EQ(reader_.holds.gave_up(), Errc::kNoHolds);
  EXPECT_FALSE(reader_.holds.give_up(Errc::kNoHolds));
  EXPECT_FALSE(reader_.holds.keep());
  EXPECT_EQ(tables_[0]->used(), 0u);
  EXPECT_EQ(writer.update(row_), Errc::kOk);
  reader_.commit();
  EXPECT_EQ(reader_.holds.gave_up(), Errc::kOk);
  EXPECT_FALSE(reader_.holds.give_up(Errc::kNoHolds));  // of nothing
}

// A hold that was asked for before the mark, and comes behind it.
TEST_F(HoldGiverTest, NothingIsHeldBehindTheMark) {
  Actor writer(*this, 0);
  while_waits(writer, [&] {
    idle_.ms = 100;
    (void)round();
  });
  EXPECT_EQ(reader_.insert("late"), Errc::kGivenUp);
  EXPECT_EQ(reader_.heap.hold_map().error(), Errc::kGivenUp);
  EXPECT_EQ(tables_[0]->used(), 0u);
}

}  // namespace engine_test
