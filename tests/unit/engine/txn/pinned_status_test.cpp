// Transactions that run while a ring of 64 words goes round and round: they keep their places, and all others get ids
// (txn.running-id-pinned).
#include <random>

#include "tests/unit/engine/engine_fixture.hpp"

namespace engine_test {

using gcl_test::eventually;

class PinnedStatus : public ::testing::Test {
 protected:
  PinnedStatus() : engine_({.cluster = {.nodes = 2}, .slots_max = 64}), reader_(std::make_unique<Worker>(engine_, 1)) {}

  // Transactions of a session of node 0, every fourth of them rolled back; returns their ids, the good ones' first.
  void pass(int count, int node = 0) {
    Worker writer(engine_, node);
    for (int i = 0; i < count; ++i) {
      auto id = writer->id_for_write();
      ASSERT_TRUE(id.ok()) << i << ": " << coherence::errc_name(id.error());
      i % 4 != 0 ? void(writer.commit()) : writer.abort();
      ended_.push_back({*id, i % 4 != 0});
    }
  }
  void expect_ended() {
    Worker fresh(engine_, 1);
    for (auto& [id, good] : ended_) {
      auto status = fresh->status(id);
      ASSERT_TRUE(status.ok()) << id.sequence() << " " << coherence::errc_name(status.error());
      ASSERT_EQ(status->committed(), good) << id.sequence();
    }
  }
  // Asked by a session that has not asked before.
  TxnStatus status(TxnId id) {
    Worker fresh(engine_, 1);
    auto status = fresh->status(id);
    EXPECT_TRUE(status.ok()) << id.sequence();
    auto again = (*reader_)->status(id);  // and by one that asks all the time
    EXPECT_TRUE(again.ok());
    if (!status || !again) return {};
    EXPECT_EQ(status->state, again->state) << id.sequence();
    return *status;
  }
  uint64_t low() { return engine_.shared(0).low_water.load(); }
  int pinned_sequences() {
    int some = 0;
    for (auto& stay : engine_.shared(0).pinned) some += stay.load() != 0;
    return some;
  }

  Engine engine_;
  std::unique_ptr<Worker> reader_;
  std::vector<std::pair<TxnId, bool>> ended_;
};

TEST_F(PinnedStatus, ARunningTransactionDoesNotHoldTheRing) {
  for (bool good : {true, false}) {
    Worker old(engine_, 0);
    TxnId id = *old->id_for_write();
    pass(1000);
    EXPECT_GT(low(), id.sequence() + 800);
    EXPECT_EQ(status(id).state, TxnState::kActive);
    EXPECT_EQ(pinned_sequences(), 1);
    EXPECT_TRUE(*(*reader_)->watch(id));
    if (good) {
      ASSERT_TRUE(old->prepare(4711).ok());
      EXPECT_EQ(status(id).state, TxnState::kPrepared);
      pass(200);
      EXPECT_EQ(status(id).state, TxnState::kPrepared);
    }
    auto before = reader_->snapshot();
    Cts cts{};
    good ? void(cts = old.commit()) : old.abort();
    for (int round = 0; round < 3; ++round) {
      EXPECT_EQ(status(id).committed(), good);
      if (good) {
        EXPECT_EQ(status(id).cts, cts);
        EXPECT_GT(cts, before.ts);
      }
      EXPECT_FALSE(*(*reader_)->watch(id));
      pass(200);
    }
    EXPECT_EQ(pinned_sequences(), 0);
    (*reader_)->set_oldest(std::nullopt);
    EXPECT_TRUE(eventually([&] { return engine_.shared(0).frozen.load() > id.sequence(); }));
    EXPECT_EQ(status(id).committed(), good);
    expect_ended();
  }
}

TEST_F(PinnedStatus, SavepointsOfALongTransactionKeepTheirStatuses) {
  for (bool good : {true, false}) {
    Worker old(engine_, 0);
    std::vector<TxnId> released, undone;
    ASSERT_TRUE(old->id_for_write().ok());
    auto savepoint = [&](int level, bool keep) {
      EXPECT_TRUE(old->sub_begin(level).ok());
      auto id = old->id_for_write();
      ASSERT_TRUE(id.ok()) << coherence::errc_name(id.error());
      (keep ? released : undone).push_back(*id);
      keep ? old->sub_commit(level) : old->sub_abort(level);
    };
    for (int i = 0; i < 20; ++i) savepoint(2, i % 2);
    EXPECT_TRUE(old->sub_begin(2).ok());
    TxnId outer = *old->id_for_write();
    EXPECT_TRUE(old->sub_begin(3).ok());
    TxnId inner = *old->id_for_write();
    EXPECT_TRUE(old->sub_begin(4).ok());
    TxnId within = *old->id_for_write();
    old->sub_commit(4);  // `inner`'s now
    pass(500);
    EXPECT_EQ(pinned_sequences(), 3);  // what is open, and no more
    for (int i = 0; i < 300; ++i) {
      savepoint(4, i % 2);
      if (i % 10 == 0) pass(3);
    }
    for (TxnId id : released) EXPECT_TRUE(status(id).running());
    for (TxnId id : undone) EXPECT_TRUE(status(id).aborted());
    for (TxnId id : {outer, inner, within}) EXPECT_TRUE(status(id).running());
    old->sub_abort(3);  // and with it all that was released into it
    EXPECT_TRUE(status(inner).aborted() && status(within).aborted() && status(outer).running());
    EXPECT_EQ(status(inner).parent, outer);
    pass(500);
    EXPECT_TRUE(status(inner).aborted() && status(within).aborted() && status(outer).running());
    old->sub_commit(2);
    pass(500);
    EXPECT_TRUE(status(outer).running());
    Cts cts{};
    good ? void(cts = old.commit()) : old.abort();
    for (int round = 0; round < 2; ++round) {
      EXPECT_EQ(status(outer).committed(), good);
      for (size_t i = 0; i < released.size(); ++i) EXPECT_EQ(status(released[i]).committed(), good && i < 10) << i;
      for (TxnId id : undone) EXPECT_TRUE(status(id).aborted());
      EXPECT_TRUE(status(inner).aborted() && status(within).aborted());
      pass(500);
    }
    EXPECT_EQ(pinned_sequences(), 0);
    expect_ended();
  }
}

// The last id of a full ring falls on the place where the savepoint's own parent is pinned: it is skipped, and while
// the session waits for more ids, its released savepoints are final.
TEST_F(PinnedStatus, ASessionThatSkipsAPlaceAtTheRingsEndDoesNotHoldTheRing) {
  engine_.pause_ticker(0);  // ids are reserved by sixteens then, and the ring is full after three of them
  do {
    pass(1);
  } while ((engine_.shared(0).reserved.load() - ended_.back().first.sequence()) % 16 != 2);
  Worker old(engine_, 0);
  EXPECT_TRUE(old->sub_begin(2).ok());
  ASSERT_TRUE(old->id_for_write().ok());  // two ids: the last ones of the sixteen
  std::vector<TxnId> released;
  for (int i = 0; i < 300; ++i) {
    EXPECT_TRUE(old->sub_begin(3).ok());
    auto id = old->id_for_write();
    ASSERT_TRUE(id.ok()) << i << ": " << coherence::errc_name(id.error());
    released.push_back(*id);
    old->sub_commit(3);
  }
  for (TxnId id : released) EXPECT_TRUE(status(id).running());
  old.commit();
  for (TxnId id : released) EXPECT_TRUE(status(id).committed());
}

// More levels than a slot can list: the ring is held then, as long as they are open, and no status is wrong.
TEST_F(PinnedStatus, DeeperThanTheListStillRight) {
  Worker old(engine_, 0);
  constexpr int kDeep = int(TxnSessionSlot::kOpenMax) + 8;
  std::vector<TxnId> ids;
  for (int level = 2; level <= kDeep; ++level) {
    EXPECT_TRUE(old->sub_begin(level).ok());
    ids.push_back(*old->id_for_write());
  }
  Worker writer(engine_, 0);
  auto refused = writer->id_for_write();
  for (int i = 0; i < 64 && refused.ok(); ++i) writer.commit(), refused = writer->id_for_write();
  EXPECT_EQ(refused.ok() ? Errc::kOk : refused.error(), Errc::kNoIds);
  for (TxnId id : ids) EXPECT_TRUE(status(id).running());
  old->sub_abort(20);
  EXPECT_TRUE(eventually([&] { return low() > ids[1].sequence(); }));
  for (size_t i = 0; i < ids.size(); ++i) EXPECT_EQ(status(ids[i]).aborted(), i >= 18) << i;
  old.commit();
  pass(300);
  for (size_t i = 0; i < ids.size(); ++i) EXPECT_EQ(status(ids[i]).committed(), i < 18) << i;
}

// Passing a nest of savepoints costs its length, not its square: while it is passed others wait for ids.
TEST(PinnedStatusCost, ANestIsClimbedOnce) {
  constexpr int kNest = 1000;
  Engine engine({.cluster = {.nodes = 2}, .slots_max = 2048, .tickers = false});
  Worker reader(engine, 1), writer(engine, 0), unlisted(engine, 0), ticker(engine, 0);
  reader.snapshot();  // nothing is frozen
  for (int level = 2; level <= kNest; ++level) EXPECT_TRUE(writer->sub_begin(level).ok());
  ASSERT_TRUE(writer->id_for_write().ok());
  writer.commit();
  for (int level = 2; level <= int(TxnSessionSlot::kOpenMax) + 8; ++level) EXPECT_TRUE(unlisted->sub_begin(level).ok());
  ASSERT_TRUE(unlisted->id_for_write().ok());
  for (int i = 0; i < kNest; ++i) {
    ASSERT_TRUE(writer->id_for_write().ok());
    writer.commit();
  }
  auto& counters = ticker.session().coherence().counters();
  const uint64_t before = counters.get(coherence::Counter::kBatches);
  while (engine.shared(0).low_water.load() < kNest) ASSERT_TRUE(ticker->tick().ok());
  EXPECT_LT(counters.get(coherence::Counter::kBatches) - before, 4 * kNest);
  unlisted.abort();
}

TEST_F(PinnedStatus, AQuarterOfTheRingMayBePinnedThenIdsAreRefused) {
  std::vector<std::unique_ptr<Worker>> old;
  std::vector<TxnId> ids;
  for (int i = 0; i < 17; ++i) {
    old.push_back(std::make_unique<Worker>(engine_, 0));
    ids.push_back(*(*old.back())->id_for_write());
    if (i < 16) pass(100);
  }
  EXPECT_EQ(pinned_sequences(), 16);
  Worker writer(engine_, 0);
  auto id = writer->id_for_write();
  int given = 0;
  for (; id.ok() && given < 200; ++given) writer.commit(), id = writer->id_for_write();
  EXPECT_EQ(id.ok() ? Errc::kOk : id.error(), Errc::kNoIds);
  for (TxnId one : ids) EXPECT_TRUE(status(one).running());
  old.front()->commit();
  pass(500);
  for (TxnId one : ids) EXPECT_EQ(status(one).running(), one != ids.front());
  for (size_t i = 1; i < old.size(); ++i) i % 2 ? old[i]->abort() : void(old[i]->commit());
  pass(500);
  for (size_t i = 0; i < ids.size(); ++i) EXPECT_EQ(status(ids[i]).committed(), i % 2 == 0) << i;
  expect_ended();
}

// The node left with pinned words.
TEST_F(PinnedStatus, WhatIsPinnedIsResolvedWhenItsNodeComesBack) {
  for (int life = 0; life < 6; ++life) {
    TxnId id, sub, undone;
    {
      Worker old(engine_, 0);
      id = *old->id_for_write();
      EXPECT_TRUE(old->sub_begin(2).ok());
      sub = *old->id_for_write();
      EXPECT_TRUE(old->sub_begin(3).ok());
      undone = *old->id_for_write();
      pass(300);
      engine_.pause_ticker(0);
      EXPECT_EQ(pinned_sequences(), 3);
      old->sub_abort(3);
      old->sub_commit(2);
      life % 2 ? old.abort() : void(old.commit());
    }
    EXPECT_EQ(pinned_sequences(), 3);
    engine_.restart(0);
    EXPECT_EQ(pinned_sequences(), 0);
    for (int round = 0; round < 2; ++round) {
      EXPECT_EQ(status(id).committed(), life % 2 == 0);
      EXPECT_EQ(status(sub).committed(), life % 2 == 0);
      EXPECT_TRUE(status(undone).aborted());
      pass(200);
    }
    expect_ended();
  }
}

// Long ones end, roll back savepoints and begin anew while the ring goes round and readers ask for all of it.
TEST_F(PinnedStatus, UnderLoadEveryStatusIsWhatItsOwnerSaid) {
  constexpr int kLong = 5, kPlaces = 64;
  struct Place {
    std::atomic<uint64_t> id{0};
    std::atomic<int> said{0};  // 1: it will be rolled back, 2: it will commit; 3, 4: it was, it did
  };
  std::vector<Place> places(kLong * kPlaces);
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> asked{0}, long_ended{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kLong; ++t) {
    threads.emplace_back([&, t] {
      Worker old(engine_, 0);
      std::mt19937 random{unsigned(t)};
      while (!stop.load()) {
        int used = 0;
        auto announce = [&](TxnId id, bool good) {
          Place& place = places[size_t(t * kPlaces + used++)];
          place.id.store(0);
          place.said.store(good ? 2 : 1);
          place.id.store(id.raw);
        };
        const bool good = random() % 3 != 0;
        auto top = old->id_for_write();
        ASSERT_TRUE(top.ok());
        announce(*top, good);
        const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(5 + random() % 100);
        while (std::chrono::steady_clock::now() < until) {
          EXPECT_TRUE(old->sub_begin(2).ok());
          const bool kept = random() % 2;
          auto sub = old->id_for_write();
          ASSERT_TRUE(sub.ok()) << coherence::errc_name(sub.error());
          const int at = used;
          if (used < kPlaces) announce(*sub, good && kept);
          if (random() % 4 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(random() % 20));
          kept ? old->sub_commit(2) : old->sub_abort(2);
          if (at < kPlaces && !kept) places[size_t(t * kPlaces + at)].said.store(3);
        }
        good ? void(old.commit()) : old.abort();
        for (int i = 0; i < used; ++i) {
          auto& said = places[size_t(t * kPlaces + i)].said;
          said.store(said.load() == 2 ? 4 : 3);
        }
        long_ended.fetch_add(1);
      }
    });
  }
  threads.emplace_back([&] {
    while (!stop.load()) pass(50);
  });
  for (int node = 0; node < 2; ++node) {
    threads.emplace_back([&, node] {
      std::mt19937 random{unsigned(node)};
      while (!stop.load()) {
        Worker reader(engine_, node);
        for (int i = 0; i < 3000 && !stop.load(); ++i) {
          Place& place = places[random() % places.size()];
          const TxnId id{place.id.load()};
          const int before = place.said.load();
          if (!id.valid()) continue;
          auto status = reader->status(id);
          const int after = place.said.load();
          if (place.id.load() != id.raw) continue;
          ASSERT_TRUE(status.ok()) << id.sequence() << " " << coherence::errc_name(status.error());
          if (before == 3) {
            ASSERT_TRUE(status->aborted()) << id.sequence();
          }
          if (before == 4) {
            ASSERT_TRUE(status->committed()) << id.sequence();
          }
          if (after == 1) {
            ASSERT_FALSE(status->committed()) << id.sequence();
          }
          if (after == 2) {
            ASSERT_FALSE(status->aborted()) << id.sequence();
          }
          asked.fetch_add(1);
        }
      }
    });
  }
  std::this_thread::sleep_for(std::chrono::seconds(3));
  EXPECT_TRUE(eventually([&] { return asked.load() > 1000 && long_ended.load() > 20; })) << asked << " " << long_ended;
  stop.store(true);
  for (auto& thread : threads) thread.join();
  expect_ended();
}

}  // namespace engine_test
