// The table of attachments: which process stops, which goes on, and how a stop ends by itself.
#include <thread>

#include "extension/engine/stop/stop_table.hpp"
#include "tests/support/cluster_fixture.hpp"
#include "tests/support/eventually.hpp"

namespace engine_test {

using namespace engine;  // NOLINT: a test's own namespace

constexpr StopPoint kHere = StopPoint::kTxnCommitting, kThere = StopPoint::kHeapPageCopied;
constexpr uint32_t kMe = 7, kOther = 8;

// A process that arrives in a thread of its own.
class Arrival final : public StopStand {
 public:
  Arrival(StopTable& table, uint32_t process, StopPoint point = kHere, uint32_t ms_max = kStopMsMax)
      : thread_([this, &table, process, point, ms_max] {
          table.arrive(point, process, *this, ms_max);
          done_.store(true);
        }) {}
  ~Arrival() override { thread_.join(); }
  bool ends() noexcept override { return interrupted.load(); }
  void begins(StopPoint) noexcept override { began.store(true); }
  void ended(StopPoint, bool woken) noexcept override { (woken ? was_woken : has_left).store(true); }
  bool is_done() {
    return gcl_test::eventually([&] { return done_.load(); });
  }
  bool stands() {
    return gcl_test::eventually([&] { return began.load(); }) && !done_.load();
  }
  std::atomic<bool> interrupted{false}, began{false}, was_woken{false}, has_left{false};

 private:
  std::atomic<bool> done_{false};
  std::thread thread_;  // the last: the others are there when it begins
};

int count(StopTable& table) {
  StopSight sights[StopTable::kEntries];
  return table.list(sights);
}

StopSight only(StopTable& table) {
  StopSight sights[StopTable::kEntries];
  EXPECT_EQ(table.list(sights), 1);
  return sights[0];
}

void pass(StopTable& table, uint32_t process, StopPoint point = kHere) {
  StopStand stand;
  table.arrive(point, process, stand);  // comes back at once, or the test hangs
}

TEST(StopTable, WhereNothingIsAttachedNobodyStopsAndNothingIsCounted) {
  StopTable table;
  EXPECT_FALSE(table.awaited(kHere));
  pass(table, kMe);
  EXPECT_TRUE(table.attach({kHere, kMe, 1}));
  EXPECT_TRUE(table.awaited(kHere));
  EXPECT_FALSE(table.awaited(kThere));
  pass(table, kOther);
  pass(table, kMe, kThere);
  EXPECT_EQ(only(table).arrivals, 0u);
  EXPECT_EQ(only(table).state, StopState::kAttached);
  EXPECT_EQ(table.detach(kThere, 0), 0);
  EXPECT_EQ(table.detach(kHere, kOther), 0);
  EXPECT_EQ(table.detach(kHere, kMe), 1);
  EXPECT_FALSE(table.awaited(kHere));
  EXPECT_EQ(count(table), 0);
  pass(table, kMe);
}

TEST(StopTable, TheNthArrivalStopsUntilItIsWokenAndLaterOnesPass) {
  StopTable table;
  EXPECT_TRUE(table.attach({kHere, kMe, 3}));
  pass(table, kMe);
  pass(table, kOther);
  pass(table, kMe);
  EXPECT_FALSE(table.wakeup(kHere, kMe)) << "nobody stands there";
  {
    Arrival third(table, kMe);
    EXPECT_TRUE(third.stands());
    EXPECT_TRUE(table.stands(kHere, kMe));
    EXPECT_TRUE(table.stands(kHere, 0));
    EXPECT_FALSE(table.stands(kHere, kOther));
    EXPECT_FALSE(table.awaited(kHere));
    pass(table, kMe);
    const StopSight sight = only(table);
    EXPECT_EQ(sight.arrivals, 3u);
    EXPECT_EQ(sight.stopped, kMe);
    EXPECT_EQ(sight.state, StopState::kStands);
    EXPECT_FALSE(table.wakeup(kHere, kOther));
    EXPECT_FALSE(table.wakeup(kThere, 0));
    EXPECT_TRUE(third.stands());
    EXPECT_TRUE(table.wakeup(kHere, 0));
    EXPECT_FALSE(table.wakeup(kHere, 0)) << "once";
    EXPECT_TRUE(third.is_done());
    EXPECT_TRUE(third.was_woken);
  }
  EXPECT_EQ(count(table), 0);
}

TEST(StopTable, AnyProcessMayBeWantedAndOneArrivalStopsOnce) {
  StopTable table;
  EXPECT_TRUE(table.attach({kHere, 0, 1}));
  EXPECT_TRUE(table.attach({kHere, kOther, 1}));
  Arrival first(table, kOther);  // due for both: the older one has it
  EXPECT_TRUE(first.stands());
  EXPECT_TRUE(table.awaited(kHere));
  pass(table, kMe);
  Arrival second(table, kOther);
  EXPECT_TRUE(second.stands());
  EXPECT_EQ(table.detach(kHere, 0), 2);
  EXPECT_TRUE(first.is_done() && second.is_done());
  EXPECT_TRUE(first.was_woken && second.was_woken);
  EXPECT_EQ(count(table), 0);
}

TEST(StopTable, AnInterruptEndsAStopAndItsTestIsTold) {
  StopTable table;
  EXPECT_TRUE(table.attach({kHere, kMe, 1}));
  Arrival arrival(table, kMe);
  EXPECT_TRUE(arrival.stands());
  arrival.interrupted.store(true);
  EXPECT_TRUE(arrival.is_done());
  EXPECT_TRUE(arrival.has_left);
  EXPECT_EQ(only(table).state, StopState::kLeft);
  EXPECT_FALSE(table.wakeup(kHere, kMe));
  EXPECT_FALSE(table.stands(kHere, 0));
  EXPECT_EQ(table.detach(kHere, kMe), 1);
  EXPECT_EQ(count(table), 0);
}

TEST(StopTable, NobodyStandsForEver) {
  StopTable table;
  EXPECT_TRUE(table.attach({kHere, 0, 1}));
  Arrival arrival(table, kMe, kHere, 20);
  EXPECT_TRUE(arrival.is_done());
  EXPECT_TRUE(arrival.has_left);
  EXPECT_EQ(only(table).state, StopState::kLeft);
}

TEST(StopTable, HasAnEnd) {
  StopTable table;
  for (int i = 0; i < StopTable::kEntries; ++i) EXPECT_TRUE(table.attach({kHere, kMe, 1}));
  EXPECT_FALSE(table.attach({kHere, kMe, 1}));
  EXPECT_EQ(table.detach(kHere, 0), StopTable::kEntries);
  EXPECT_TRUE(table.attach({kHere, kMe, 1}));
}

TEST(StopPoints, HaveNamesOfTheirOwn) {
  for (int i = 0; i < kStopPoints; ++i) {
    EXPECT_EQ(stop_point_named(stop_point_name(StopPoint(i))), StopPoint(i));
    EXPECT_LT(std::string_view(stop_point_name(StopPoint(i))).size(), 40u);  // shown as GclStop_..., of 63 characters
  }
  EXPECT_EQ(stop_point_named(""), StopPoint::kCount);
  EXPECT_EQ(stop_point_named("txn_commit"), StopPoint::kCount);
}

#ifndef NDEBUG
// stop.nothing-latched, where nobody has attached anything.
TEST(StopPoints, AreNotUnderAPageLatch) {
  gcl_test::Cluster cluster({.nodes = 1});
  auto session = cluster.session(0);
  auto page = cluster.pool(0).allocate(*session, 1);
  ASSERT_TRUE(page.ok());
  stop_at(*session, kHere);
  auto guard = cluster.pool(0).fix_exclusive(*session, *page);
  ASSERT_TRUE(guard.ok());
  EXPECT_DEATH(stop_at(*session, kHere), "VERIFY|guards_held");
}
#endif

}  // namespace engine_test
