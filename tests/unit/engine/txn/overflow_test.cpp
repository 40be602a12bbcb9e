// Old snapshots and a ring of 64 words: every status stays exact as long as a snapshot may need it.
#include <malloc.h>

#include <random>

#include "tests/unit/engine/engine_fixture.hpp"

namespace engine_test {

using gcl_test::eventually;

class StatusOverflow : public ::testing::Test {
 protected:
  StatusOverflow() : engine_({.cluster = {.nodes = 2}, .slots_max = 64}) {}
  struct Ended {
    TxnId id;
    bool good;
    Cts cts;
  };
  // Transactions with savepoints, committed and rolled back, of a new session of node 0.
  void run(int count, bool exact = true) {
    Worker writer(engine_, 0), follower(engine_, 1);
    for (int i = 0; i < count; ++i) {
      auto id = writer->id_for_write();
      ASSERT_TRUE(id.ok()) << i;
      const bool good = i % 3 != 0, kept = i % 2 != 0;
      TxnId sub;
      if (i % 7 == 0) {
        EXPECT_TRUE(writer->sub_begin(2).ok());
        sub = *writer->id_for_write();
        kept ? writer->sub_commit(2) : writer->sub_abort(2);
      }
      Cts cts{};
      good ? void(cts = writer.commit()) : writer.abort();
      ended_.push_back({*id, good, cts});
      if (sub.valid()) ended_.push_back({sub, good && kept, cts});
      if (i % 5 == 0) expect(*follower.operator->(), ended_[ended_.size() - ended_.size() / 4 - 1], exact);
    }
  }
  static void expect(TxnSystem& txns, const Ended& what, bool exact) {
    auto status = txns.status(what.id);
    ASSERT_TRUE(status.ok()) << what.id.sequence() << " " << int(status.error());
    ASSERT_EQ(status->committed(), what.good) << what.id.sequence();
    if (exact && what.good) {
      ASSERT_EQ(status->cts, what.cts) << what.id.sequence();
    }
  }
  void expect_all(bool exact) {
    for (int node = 0; node < 2; ++node) {
      Worker fresh(engine_, node);
      for (const Ended& what : ended_) expect(fresh.txns(), what, exact);
    }
  }
  uint64_t frozen() { return engine_.shared(0).frozen.load(); }

  Engine engine_;
  std::vector<Ended> ended_;
};

// A process that asks for statuses does not copy the list (txn.aborted-list-in-place).
TEST_F(StatusOverflow, TheListOfAbortedIdsIsNotInEachProcess) {
  constexpr uint64_t kMany = 60000;
  std::vector<TxnId> undone;
  {
    Worker writer(engine_, 0);
    for (uint64_t i = 0; i < kMany; ++i) {
      auto id = writer->id_for_write();
      ASSERT_TRUE(id.ok());
      if (i % 1000 == 0) undone.push_back(*id);
      writer.abort();
    }
    ASSERT_TRUE(eventually([&] { return frozen() >= undone.back().sequence(); }));
  }
  Worker fresh(engine_, 1);
  const size_t before = mallinfo2().uordblks;
  for (TxnId id : undone) EXPECT_TRUE(fresh->status(id)->aborted()) << id.sequence();
  EXPECT_LT(mallinfo2().uordblks, before + kMany * 8 / 10) << "a tenth of the list";
}

TEST_F(StatusOverflow, AnOldSnapshotDoesNotHoldTheRing) {
  run(100, false);
  Worker old(engine_, 1);
  auto snapshot = old.snapshot();
  const uint64_t before = ended_.back().id.sequence();
  ended_.clear();  // they may be frozen: the snapshot sees them all
  run(5000);
  EXPECT_LE(frozen(), before + 2);  // up to the first commit that the snapshot does not see
  EXPECT_GT(engine_.shared(0).low_water.load(), before + 4000);
  for (const Ended& what : ended_) {
    if (what.good) {
      ASSERT_GT(what.cts, snapshot.ts);
    }
  }
  expect_all(true);
  old->set_oldest(std::nullopt);
  ASSERT_TRUE(eventually([&] { return frozen() >= before + 4000; }));
  run(2000, false);
  expect_all(false);
}

TEST_F(StatusOverflow, WhatOverflowedIsThereAfterARestart) {
  Worker old(engine_, 1);
  old.snapshot();
  for (int life = 0; life < 3; ++life) {
    run(1500);
    engine_.restart(0);
  }
  expect_all(true);
  old->set_oldest(std::nullopt);
  run(300, false);
  ASSERT_TRUE(eventually([&] { return frozen() >= ended_.back().id.sequence() - 64; }));
  expect_all(false);
}

// Snapshots of all ages, asking while words move from the ring to pages and pages go.
TEST_F(StatusOverflow, UnderLoadEverybodyIsToldTheSame) {
  constexpr int kRecent = 4096;
  std::vector<std::atomic<uint64_t>> ids(kRecent), timestamps(kRecent);
  std::atomic<uint64_t> next{0}, asked{0};
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&, t] {
      Worker writer(engine_, t);
      uint64_t own = 0;  // each writer has places of its own
      while (!stop.load()) {
        auto id = writer->id_for_write();
        ASSERT_TRUE(id.ok());
        const bool good = id->sequence() % 4 != 0;
        Cts cts{};
        good ? void(cts = writer.commit()) : writer.abort();
        const uint64_t at = own++ % (kRecent / 2) + uint64_t(t) * (kRecent / 2);
        ids[at].store(0);
        timestamps[at].store(cts.value);
        ids[at].store(id->raw);
        next.fetch_add(1);
      }
    });
    threads.emplace_back([&, t] {
      Worker reader(engine_, t);
      std::mt19937 random{unsigned(t)};
      while (!stop.load()) {
        auto snapshot = reader.snapshot();
        const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(random() % 400);
        while (std::chrono::steady_clock::now() < until && !stop.load()) {
          const uint64_t at = random() % kRecent;
          const TxnId id{ids[at].load()};
          const Cts cts{timestamps[at].load()};
          if (!id.valid() || ids[at].load() != id.raw) continue;
          auto status = reader->status(id);
          ASSERT_TRUE(status.ok()) << id.sequence();
          ASSERT_EQ(status->committed(), cts.value != 0) << id.sequence();
          // A frozen one is visible to all, hence to this snapshot.
          if (status->committed()) {
            ASSERT_TRUE(status->cts == cts || (status->cts == kFrozenCts && cts <= snapshot.ts))
                << id.sequence() << " node " << int(id.node().value) << " status " << status->cts.value << " cts "
                << cts.value << " snapshot " << snapshot.ts.value << " horizon " << reader->horizon().value
                << " frozen " << engine_.shared(id.node().value).frozen.load() << " low "
                << engine_.shared(id.node().value).low_water.load();
          }
          asked.fetch_add(1);
        }
        reader->set_oldest(std::nullopt);
      }
    });
  }
  std::this_thread::sleep_for(std::chrono::seconds(3));
  EXPECT_TRUE(eventually([&] { return asked.load() > 1000 && next.load() > 500; })) << asked << " " << next;
  stop.store(true);
  for (auto& thread : threads) thread.join();
  EXPECT_NE(*engine_.cluster()
                 .pool(0)
                 .memory(Worker(engine_, 0).session())
                 .load(TxnWords(engine_.cluster().pool(0).region(bufmgr::Region::kTxnWords),
                                engine_.cluster().pool(0).region(bufmgr::Region::kStatusLog),
                                engine_.cluster().pool(0).nodes_max(), 64)
                           .overflow_root({0})),
            0u);
}

}  // namespace engine_test
