// A row that transactions of one node hand to each other is had by those of others, too, in their order
// (heap.book-after-losses, heap.bookings-in-order).
#include "tests/unit/engine/heap/lock_fixture.hpp"

namespace engine_test {

namespace {

constexpr int kGivesUp = 30;  // rows lost, after which the rivals let it go

}  // namespace

// a and d are sessions of node 0, b and e of node 1, c of node 2.
class BookTest : public LockTest {
 protected:
  // What comes at once when `holder` has ended, while another session still sleeps.
  bool taken_by(Party& other, Want want) {
    Tid tid = newest_;
    if (other.attempt(want, tid) != RowResult::kOk) return false;
    newest_ = tid;
    return true;
  }
  // Whenever `party` begins to wait, the row's holder commits and its rival takes it, as long as it may; returns how
  // often it had to wait.  Leaves the row with `party`.
  int waits_of(Party& party, Want want, bool rolls_back = false) {
    Party* holder = &a();
    Party* rival = &d();
    int waits = 0;
    party.worker.waiter().on_wait = [&] {
      ++waits;
      const Tid before = newest_;
      rolls_back ? holder->abort() : holder->commit();
      if (rolls_back) newest_ = standing_;
      if (waits > kGivesUp || !taken_by(*rival, Want::kUpdate)) return;
      standing_ = rolls_back ? newest_ : before;
      std::swap(holder, rival);
    };
    take(party, want);
    party.worker.waiter().on_wait = {};
    return waits;
  }
  void take(Party& party, Want want) {
    RowBuffer buffer;
    auto done = party.heap.lock({.tid = first_, .command = ++party.command, .mode = RowLock(int(want)), .follow = true},
                                buffer.bytes);
    ASSERT_TRUE(done.ok());
    EXPECT_EQ(done->row.result, RowResult::kOk);
    newest_ = done->tid;
  }
  void start(const std::string& text = "v") {
    first_ = standing_ = newest_ = committed(text);
    (void)b().worker.snapshot();  // as a statement that waits has: what it is to follow stays
    ASSERT_TRUE(taken_by(a(), Want::kUpdate));
  }

  Tid first_;     // where the waiter has seen the row
  Tid standing_;  // the newest version that is committed
  Tid newest_;
};

TEST_F(BookTest, ARowThatOthersKeepTakingIsHadAtLast) {
  for (Want want : {Want::kShare, Want::kNoKeyExclusive, Want::kExclusive}) {
    SCOPED_TRACE(name(want));
    start();
    EXPECT_LE(waits_of(b(), want), RowQueuePosition::kLossesMax + 1);
    EXPECT_TRUE(refused(a().attempt(Want::kUpdate, newest_)));
    end_all();
  }
}

// An update, and a deletion, meet one version: of a row that is locked again and again, or whose updates fail.
TEST_F(BookTest, AnUpdateIsNotKeptOutByUpdatesThatFail) {
  start();
  standing_ = first_;
  int waits = 0;
  Party *holder = &a(), *rival = &d();
  b().worker.waiter().on_wait = [&] {
    ++waits;
    holder->abort();
    Tid tid = first_;
    if (waits <= kGivesUp && rival->attempt(Want::kUpdate, tid) == RowResult::kOk) std::swap(holder, rival);
  };
  TestRow row("mine");
  auto done = b().heap.update({.tid = first_, .row = row.image(), .command = 1});
  ASSERT_TRUE(done.ok());
  EXPECT_EQ(done->row.result, RowResult::kOk);
  EXPECT_LE(waits, RowQueuePosition::kLossesMax + 1);
}

// The one that holds the row when it is booked may go on with it as it likes.
TEST_F(BookTest, ABookingGoesAlongToNewVersionsOfItsHolder) {
  start();
  int waits = 0;
  b().worker.waiter().on_wait = [&] {
    if (++waits <= RowQueuePosition::kLossesMax) {
      (waits % 2 ? a() : d()).commit();
      ASSERT_TRUE(taken_by(waits % 2 ? d() : a(), Want::kUpdate));
      return;
    }
    Party& holder = waits % 2 ? a() : d();
    for (int i = 0; i < 20; ++i) ASSERT_TRUE(taken_by(holder, i % 2 ? Want::kUpdate : Want::kExclusive));
    holder.commit();
    EXPECT_FALSE(waits < kGivesUp && taken_by(waits % 2 ? d() : a(), Want::kUpdate));
  };
  take(b(), Want::kNoKeyExclusive);
  EXPECT_EQ(waits, RowQueuePosition::kLossesMax + 1);
}

TEST_F(BookTest, ABookingHoldsThoughTheUpdateIsRolledBack) {
  start();
  int waits = 0;
  b().worker.waiter().on_wait = [&] {
    Party &holder = waits % 2 ? d() : a(), &rival = waits % 2 ? a() : d();
    const bool booked = ++waits > RowQueuePosition::kLossesMax;
    booked ? holder.abort() : holder.commit();
    if (booked)
      newest_ = standing_;
    else
      standing_ = newest_;
    EXPECT_EQ(waits < kGivesUp && taken_by(rival, Want::kUpdate), !booked);
  };
  take(b(), Want::kExclusive);
  EXPECT_EQ(waits, RowQueuePosition::kLossesMax + 1);
}

// New versions that find no room beside the old one lie on other pages.
TEST_F(BookTest, ABookingGoesToOtherPages) {
  const std::string large(3000, 'x');
  start(large);
  int waits = 0;
  Party *holder = &a(), *rival = &d();
  b().worker.waiter().on_wait = [&] {
    ++waits;
    holder->commit();
    Tid tid = newest_;
    if (waits > kGivesUp || rival->attempt(Want::kUpdateKey, tid, large) != RowResult::kOk) return;
    newest_ = tid;
    std::swap(holder, rival);
  };
  take(b(), Want::kExclusive);
  EXPECT_LE(waits, RowQueuePosition::kLossesMax + 2);
  EXPECT_NE(newest_.block, first_.block);
}

// b begins to wait before c does, but c books first.
TEST_F(BookTest, TheFirstToBookComesFirst) {
  start();
  int waits_b = 0, waits_c = 0;
  Party *holder = &a(), *rival = &d();
  auto pass_on = [&] {
    holder->commit();
    ASSERT_TRUE(taken_by(*rival, Want::kUpdate));
    std::swap(holder, rival);
  };
  c().worker.waiter().on_wait = [&] {
    c().worker.waiter().timeout_ms = ++waits_c > RowQueuePosition::kLossesMax ? 0 : gcl_test::kPatienceMs;
    if (waits_c <= RowQueuePosition::kLossesMax) pass_on();
  };
  b().worker.waiter().on_wait = [&] {
    if (++waits_b < RowQueuePosition::kLossesMax) {
      pass_on();
    } else if (waits_b == RowQueuePosition::kLossesMax) {
      RowBuffer buffer;
      auto left =
          c().heap.lock({.tid = first_, .command = 1, .mode = RowLock::kNoKeyExclusive, .follow = true}, buffer.bytes);
      EXPECT_FALSE(left.ok()) << "it has booked, and its wait was interrupted";
      c().worker.waiter().on_wait = {};
      holder->commit();
      EXPECT_TRUE(refused(rival->attempt(Want::kUpdate, newest_)));
    } else {
      take(c(), Want::kNoKeyExclusive);
      c().commit();
      EXPECT_TRUE(refused(rival->attempt(Want::kUpdate, newest_))) << "b's turn";
    }
  };
  take(b(), Want::kNoKeyExclusive);
  EXPECT_EQ(waits_b, RowQueuePosition::kLossesMax + 1);
}

// A booking that could not become a lock now keeps no session out (heap.bookings-in-order).
TEST_F(BookTest, LocksThatGoWellWithItsHolderDoNotWaitForAWaiterThatHasBookedIt) {
  start();
  int waits = 0;
  b().worker.waiter().on_wait = [&] {
    Party &holder = waits % 2 ? d() : a(), &rival = waits % 2 ? a() : d();
    if (++waits <= RowQueuePosition::kLossesMax) {
      holder.commit();
      standing_ = newest_;
      ASSERT_TRUE(taken_by(rival, Want::kUpdate));
      return;
    }
    if (waits == RowQueuePosition::kLossesMax + 1) {
      EXPECT_TRUE(c().gets(Want::kKeyShare, standing_)) << "the holder changes no key";
      holder.commit();
      EXPECT_TRUE(e().gets(Want::kKeyShare, newest_)) << "c keeps b out";
      return;
    }
    c().commit();
    e().commit();
    EXPECT_TRUE(refused(rival.attempt(Want::kKeyShare, newest_))) << "now it is b's turn";
  };
  const int queued = b().worker.waiter().queued;
  take(b(), Want::kExclusive);
  EXPECT_EQ(waits, RowQueuePosition::kLossesMax + 2);
  EXPECT_GT(b().worker.waiter().queued, queued);
}

TEST_F(BookTest, AWaiterThatGivesUpKeepsNobodyOut) {
  start();
  int waits = 0;
  b().worker.waiter().timeout_ms = 0;
  b().worker.waiter().on_wait = [&] {
    b().worker.waiter().timeout_ms = ++waits > RowQueuePosition::kLossesMax ? 0 : gcl_test::kPatienceMs;
    if (waits > RowQueuePosition::kLossesMax) return;
    (waits % 2 ? a() : d()).commit();
    ASSERT_TRUE(taken_by(waits % 2 ? d() : a(), Want::kUpdate));
  };
  RowBuffer buffer;
  auto done = b().heap.lock({.tid = first_, .command = 1, .mode = RowLock::kExclusive, .follow = true}, buffer.bytes);
  EXPECT_EQ(done.ok() ? Errc::kOk : done.error(), Errc::kInterrupted);
  Party& holder = RowQueuePosition::kLossesMax % 2 ? d() : a();
  holder.commit();
  EXPECT_FALSE(taken_by(c(), Want::kUpdate));
  b().abort();
  EXPECT_TRUE(taken_by(c(), Want::kUpdate));
}

}  // namespace engine_test
