// What transactions wait for the pool, counted in round trips (transport.waits-counted): over a network each of them
// takes its time, however near the pool is here.
#include "tests/unit/engine/tpcb_like.hpp"

namespace engine_test {

using coherence::Counter;

class RoundTrips : public ::testing::Test {
 protected:
  static uint64_t of(Worker& worker) { return worker.session().coherence().counters().get(Counter::kAwaited); }
  template <class Step>
  uint64_t trips(const Step& step) {
    const uint64_t before = of(*worker_);
    step();
    return of(*worker_) - before;
  }
  void start() {
    engine_ = std::make_unique<Engine>(
        EngineOptions{.cluster = {.nodes = 1, .frames = 8192, .pool_bytes = 128 << 20}, .tickers = false});
    worker_ = std::make_unique<Worker>(*engine_, 0);
  }
  // An id is reserved with 1023 others.
  void reserve_ids() {
    ASSERT_TRUE((*worker_)->id_for_write().ok());
    worker_->commit();
  }

  std::unique_ptr<Engine> engine_;
  std::unique_ptr<Worker> worker_;
};

// Nobody else wants its pages: four snapshots, and two for the commit.
TEST_F(RoundTrips, OfATransactionOfPgbench) {
  constexpr uint64_t kTransactions = 3000;
  start();
  Worker member(*engine_, 0);
  TpcbLike bank(*worker_, engine_->cluster().pool(0), 10, 4000);
  // What the pages of hot rows cost depends on how far the horizon follows, so transactions set its pace, no clock:
  // at 10,000 a second, a member worker ticks every 50 of them.
  const auto tick_every_50 = [&](uint64_t done) { EXPECT_TRUE(done % 50 != 0 || member->tick().ok()); };
  for (uint64_t i = 0; i < 500; ++i) {
    bank.transaction();
    tick_every_50(i);
  }
  uint64_t of_step[int(TpcbLike::Step::kCount)] = {};
  const uint64_t all = trips([&] {
    uint64_t seen = of(*worker_);
    for (uint64_t i = 0; i < kTransactions; ++i) {
      bank.transaction([&](TpcbLike::Step step) {
        of_step[int(step)] += of(*worker_) - seen;
        seen = of(*worker_);
      });
      tick_every_50(i);
    }
  });
  for (int i = 0; i < int(TpcbLike::Step::kCount); ++i)
    printf("%-15s %.3f\n", TpcbLike::kSteps[i], double(of_step[i]) / double(kTransactions));
  printf("a transaction   %.3f round trips\n", double(all) / double(kTransactions));
  // Every some dozen transactions a page is pruned, a new one is taken, or ids are reserved.
  EXPECT_LE(double(all) / double(kTransactions), 6.2);
  for (const auto step : {TpcbLike::Step::kAccount, TpcbLike::Step::kTeller, TpcbLike::Step::kBranch})
    EXPECT_LE(double(of_step[int(step)]) / double(kTransactions), 1.1) << TpcbLike::kSteps[int(step)];
  EXPECT_EQ(of_step[int(TpcbLike::Step::kSelect)], kTransactions);
  EXPECT_EQ(of_step[int(TpcbLike::Step::kCommit)], 2 * kTransactions);
}

// txn.id-comes-along
TEST_F(RoundTrips, AnIdComesWithTheSnapshotOfAStatementThatWrites) {
  start();
  reserve_ids();
  EXPECT_EQ(trips([&] {
              worker_->snapshot(0, coherence::Intent::kWrite);
              ASSERT_TRUE((*worker_)->id_for_write().ok());
            }),
            1u);
  EXPECT_EQ(trips([&] { worker_->commit(); }), 2u);
}

TEST_F(RoundTrips, AStatementThatWroteNothingCostsNoMoreThanItsSnapshot) {
  start();
  reserve_ids();
  EXPECT_EQ(trips([&] {
              worker_->snapshot(0, coherence::Intent::kWrite);
              worker_->commit();
            }),
            1u);
}

// txn.counts-from-bound
TEST_F(RoundTrips, ASessionCountsForNone) {
  start();
  EXPECT_EQ(trips([&] { (*worker_)->count_in(); }), 0u);
}

// txn.prepared-if-mixed
TEST_F(RoundTrips, PreparedIsOneForThoseWhoseServerDecides) {
  start();
  reserve_ids();
  ASSERT_TRUE((*worker_)->id_for_write().ok());
  EXPECT_EQ(trips([&] { ASSERT_TRUE((*worker_)->prepare(4711).ok()); }), 1u);
  EXPECT_EQ(trips([&] { ASSERT_TRUE((*worker_)->commit().ok()); }), 2u);
  ASSERT_TRUE((*worker_)->id_for_write().ok());
  EXPECT_EQ(trips([&] { ASSERT_TRUE((*worker_)->prepare().ok()); }), 0u);
  EXPECT_EQ(trips([&] { ASSERT_TRUE((*worker_)->commit().ok()); }), 2u);
}

}  // namespace engine_test
