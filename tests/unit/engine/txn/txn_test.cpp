// Transactions: statuses, snapshots, savepoints, waiting, truncation of the log, the horizon.
#include "tests/unit/engine/engine_fixture.hpp"
#include "tests/unit/engine/memory/no_memory.hpp"
#include "tests/unit/engine/stops.hpp"

namespace engine_test {

TEST(Txn, ACommitIsSeenByLaterSnapshotsOnlyEverywhere) {
  Engine engine({.cluster = {.nodes = 2}});
  Worker writer(engine, 0), reader(engine, 1);
  auto id = writer->id_for_write();
  ASSERT_TRUE(id.ok());
  auto before = reader.snapshot();
  EXPECT_EQ(reader->status(*id)->state, TxnState::kActive);
  ASSERT_TRUE(writer->prepare(4711).ok());
  EXPECT_EQ(reader->status(*id)->state, TxnState::kPrepared);
  Cts cts = *writer->commit();
  EXPECT_GT(cts, before.ts);
  EXPECT_GE(reader.snapshot().ts, cts);
  EXPECT_TRUE(reader->status(*id)->committed());
  EXPECT_EQ(reader->status(*id)->cts, cts);
}

TEST(Txn, ReadOnlyTransactionsWriteNothing) {
  Engine engine({.cluster = {.nodes = 1}});
  Worker worker(engine, 0);
  EXPECT_TRUE(worker->prepare().ok());
  EXPECT_EQ(*worker->commit(), Cts{});
  worker->abort();
}

TEST(Txn, WithoutMemoryNoSavepointBeginsAndNoIdIsTaken) {
  Engine engine({.cluster = {.nodes = 1}});
  Worker writer(engine, 0);
  const uint64_t next = engine.shared(0).next.load();
  {
    NoMemory none;
    EXPECT_EQ(writer->id_for_write().error(), Errc::kNoMemory);
    EXPECT_EQ(writer->sub_begin(2).error(), Errc::kNoMemory);
    writer->sub_abort(2);
    EXPECT_FALSE(writer->current().wrote());
  }
  EXPECT_EQ(engine.shared(0).next.load(), next);
  EXPECT_TRUE(writer->sub_begin(2).ok());
  {
    NoMemory none;
    EXPECT_EQ(writer->id_for_write().error(), Errc::kNoMemory);
  }
  EXPECT_EQ(engine.shared(0).next.load(), next);
  TxnId inner = *writer->id_for_write();
  writer->sub_commit(2);
  {
    NoMemory none;
    int level = 2;
    Status begun = writer->sub_begin(level);
    for (; begun && level < 1000; ++level) begun = writer->sub_begin(level);
    EXPECT_EQ(begun.error(), Errc::kNoMemory);
    writer->sub_abort(2);
  }
  EXPECT_TRUE(writer->current().is_mine(inner));
  writer.commit();
  EXPECT_TRUE(writer->status(inner)->committed());
}

TEST(Txn, ARolledBackSavepointIsAbortedWithAllBelowItAndTheRestCommits) {
  Engine engine({.cluster = {.nodes = 2}});
  Worker writer(engine, 0), reader(engine, 1);
  EXPECT_TRUE(writer->sub_begin(2).ok());
  EXPECT_TRUE(writer->sub_begin(3).ok());
  TxnId inner = *writer->id_for_write();  // assigns ids to all three levels
  writer->sub_commit(3);
  TxnId middle = *writer->id_for_write();
  EXPECT_TRUE(writer->current().is_mine(inner));
  EXPECT_LT(middle, inner);
  EXPECT_EQ(reader->status(inner)->top, writer->current().top());
  writer->sub_abort(2);
  EXPECT_FALSE(writer->current().is_mine(inner));
  EXPECT_FALSE(writer->current().is_mine(middle));
  EXPECT_TRUE(reader->status(inner)->aborted());
  EXPECT_TRUE(reader->status(middle)->aborted());
  EXPECT_TRUE(writer->sub_begin(2).ok());
  TxnId kept = *writer->id_for_write();
  writer->sub_commit(2);
  TxnId top = *writer->id_for_write();
  EXPECT_TRUE(reader->status(kept)->running());
  Cts cts = writer.commit();
  EXPECT_EQ(reader->status(kept)->cts, cts);
  EXPECT_EQ(reader->status(top)->cts, cts);
  EXPECT_TRUE(reader->status(inner)->aborted());
}

// Between any two of the words on the way from a savepoint to its top, the owner rolls it back and commits.
TEST(Txn, ASavepointRolledBackWhileItsStatusIsAskedForIsNotTakenForCommitted) {
  constexpr int kLevels = 5;
  Stops stops;
  Engine engine({.cluster = {.nodes = 2}});
  Worker writer(engine, 0), reader(engine, 1);
  for (uint32_t word = 1; word <= kLevels; ++word) {
    for (int level = 2; level <= kLevels; ++level) EXPECT_TRUE(writer->sub_begin(level).ok());
    auto made = writer->id_for_write();
    ASSERT_TRUE(made.ok());
    auto asks = stops.attach(StopPoint::kTxnStatusWanted, reader.session(), word);
    std::thread ask([&] {
      auto status = reader->status(*made);
      ASSERT_TRUE(status.ok());
      EXPECT_TRUE(status->aborted()) << "before word " << word;
    });
    asks.reached();
    writer->sub_abort(kLevels);
    writer.commit();
    asks.go_on();
    ask.join();
    ASSERT_TRUE(reader->status(*made)->aborted()) << "before word " << word;
  }
}

TEST(Txn, AReaderThatMeetsCommittingFinishesIt) {
  Engine engine({.cluster = {.nodes = 2}});
  Worker writer(engine, 0), reader(engine, 1);
  TxnId id = *writer->id_for_write();
  ASSERT_TRUE(writer->prepare(4711).ok());
  auto& pool = engine.cluster().pool(0);
  TxnWords words(pool.region(bufmgr::Region::kTxnWords), pool.region(bufmgr::Region::kStatusLog), pool.nodes_max(),
                 ~0u);
  auto prepared = StatusWord::prepared(writer.session().id(), id);
  auto committing = StatusWord::committing(writer.session().id(), id);
  EXPECT_EQ(*pool.memory(writer.session()).cas(words.status(id), prepared.raw, committing.raw), prepared.raw);
  auto snapshot = reader.snapshot();
  auto status = reader->status(id);
  ASSERT_TRUE(status.ok());
  EXPECT_TRUE(status->committed());
  EXPECT_GT(status->cts, snapshot.ts);  // later than every snapshot that asked
  // The owner's commit finds its word gone: another session has decided.
  EXPECT_EQ(writer->commit().error(), Errc::kFenced);
  writer->abort();
  EXPECT_TRUE(reader->status(id)->committed());
}

// A reader finishes it, its place goes to other ids meanwhile, and nothing in the place is the commit's own any more.
TEST(Txn, ACommitThatSleepsTakesNobodyElsesTimestamp) {
  for (bool kept : {false, true}) {  // an old snapshot keeps its timestamp
    Stops stops;
    Engine engine({.cluster = {.nodes = 2}, .slots_max = 64});
    Worker sleeper(engine, 0), other(engine, 0), reader(engine, 1), old(engine, 1);
    TxnId id = *sleeper->id_for_write();
    auto commit = stops.attach(StopPoint::kTxnCommitting, sleeper.session());
    Cts done{};
    std::thread commits([&] { done = sleeper.commit(); });
    commit.reached();
    const Cts moment = *reader->pass_moment();
    if (kept) old.snapshot();
    const Cts cts = reader->status(id)->cts;
    EXPECT_GT(cts, moment);
    const int more = 128 + int(64 + id.sequence() - 1 - engine.shared(0).next.load() % 64) % 64;
    for (int i = 0; i < more; ++i) {  // until an id runs in that very place
      ASSERT_TRUE(other->id_for_write().ok());
      if (i < more - 1) other.commit();
    }
    commit.go_on();
    commits.join();
    for (Cts told : {done, sleeper->status(id)->cts})
      EXPECT_TRUE(told == cts || (!kept && told == kFrozenCts)) << told.value;
    other.abort();
  }
}

TEST(Txn, AWaiterOnAnotherNodeIsRungAtTheEnd) {
  Engine engine({.cluster = {.nodes = 2}});
  Worker writer(engine, 0), waiter(engine, 1);
  for (bool commit : {true, false}) {
    const int before = engine.waker().rings;
    TxnId id = *writer->id_for_write();
    std::atomic<bool> ended{false};
    std::thread thread([&] {
      EXPECT_TRUE(waiter.waiter().wait_for(id, WaitFor::kUpdate).ok());
      EXPECT_TRUE(ended.load());
    });
    EXPECT_TRUE(gcl_test::eventually([&] { return *writer->watched(writer.session().id()); }));
    ended.store(true);
    commit ? void(writer.commit()) : writer.abort();
    thread.join();
    EXPECT_GT(engine.waker().rings, before);
  }
  EXPECT_FALSE(*waiter->watch(TxnId::make({0}, 1)));  // ended long ago
}

TEST(Txn, AWaiterForASavepointIsRungWhenItIsRolledBack) {
  Engine engine({.cluster = {.nodes = 2}});
  Worker writer(engine, 0), waiter(engine, 1);
  ASSERT_TRUE(writer->id_for_write().ok());
  EXPECT_TRUE(writer->sub_begin(2).ok());
  TxnId outer = *writer->id_for_write();
  EXPECT_TRUE(writer->sub_begin(3).ok());
  TxnId inner = *writer->id_for_write();
  writer->sub_commit(3);
  for (TxnId id : {outer, inner}) EXPECT_TRUE(*waiter->watch(id));
  std::atomic<bool> ended{false};
  std::thread thread([&] {
    EXPECT_TRUE(waiter.waiter().wait_for(inner, WaitFor::kUpdate).ok());
    EXPECT_TRUE(ended.load());
  });
  waiter.waiter().expect_waits(1);
  ended.store(true);
  writer->sub_abort(2);
  thread.join();
  for (TxnId id : {outer, inner}) EXPECT_FALSE(*waiter->watch(id));
  EXPECT_TRUE(*waiter->watch(writer->current().top()));
  writer.abort();
}

TEST(Txn, TheHostsNumberIsFoundWhileItRuns) {
  Engine engine({.cluster = {.nodes = 1}});
  Worker writer(engine, 0), other(engine, 0);
  writer->set_host_xid(4711);
  TxnId id = *writer->id_for_write();
  EXPECT_EQ(other->host_xid_of(id, id), 4711u);
  writer.commit();
  EXPECT_EQ(other->host_xid_of(id, id), 0u);
}

TEST(Txn, ASavepointHasANumberOfItsOwnWhileItMayBeRolledBackAlone) {
  Engine engine({.cluster = {.nodes = 1}});
  Worker writer(engine, 0), other(engine, 0);
  writer->set_host_xid(4711);
  const TxnId top = *writer->id_for_write();
  EXPECT_TRUE(writer->sub_begin(2).ok());
  writer->set_host_xid(4712, 2);
  const TxnId first = *writer->id_for_write();
  EXPECT_EQ(other->host_xid_of(first, top), 4712u);
  EXPECT_EQ(other->host_xid_of(top, top), 4711u);
  writer->sub_abort(2);
  EXPECT_TRUE(writer->sub_begin(2).ok());
  const TxnId unnamed = *writer->id_for_write();
  EXPECT_EQ(other->host_xid_of(first, top), 4711u);
  EXPECT_EQ(other->host_xid_of(unnamed, top), 4711u);  // not its predecessor's
  EXPECT_TRUE(writer->sub_begin(3).ok());
  writer->set_host_xid(4713, 3);
  const TxnId inner = *writer->id_for_write();
  EXPECT_EQ(other->host_xid_of(inner, top), 4713u);
  writer->sub_commit(3);
  EXPECT_EQ(other->host_xid_of(inner, top), 4711u);  // as PostgreSQL: a new waiter waits for the end
  writer->sub_commit(2);
  writer.commit();
  for (TxnId id : {first, unnamed, inner}) EXPECT_EQ(other->host_xid_of(id, top), 0u);
}

TEST(Txn, TheHorizonWaitsForTheOldestSnapshotAnywhere) {
  Engine engine({.cluster = {.nodes = 2}, .tickers = false});
  Worker writer(engine, 0), reader(engine, 1);
  auto old = reader.snapshot();
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(writer->id_for_write().ok());
    writer.commit();
    ASSERT_TRUE(reader->tick().ok());
    EXPECT_LE(writer->refresh_horizon()->value, old.ts.value);
  }
  reader->set_oldest(reader.snapshot().ts);  // the old one is dropped, a new one stays
  ASSERT_TRUE(reader->tick().ok());
  EXPECT_GT(writer->refresh_horizon()->value, old.ts.value);
  reader->set_oldest(std::nullopt);
  ASSERT_TRUE(reader->tick().ok());
  EXPECT_EQ(*writer->refresh_horizon(), writer.snapshot().ts);
}

// No horizon ever passes a snapshot that lives.
TEST(Txn, HorizonNeverPassesALiveSnapshotUnderLoad) {
  Engine engine({.cluster = {.nodes = 2}});
  std::atomic<bool> stop{false};
  std::atomic<int> snapshots[2] = {}, horizons[2] = {};  // of each node: taken, and others than the last one
  std::vector<std::thread> threads;
  for (int n = 0; n < 2; ++n) {
    threads.emplace_back([&, n] {
      Worker worker(engine, n);
      while (!stop.load()) {
        ASSERT_TRUE(worker->id_for_write().ok());
        worker.commit();
      }
    });
    threads.emplace_back([&, n] {
      Worker worker(engine, n);
      uint64_t last = 0;
      while (!stop.load()) {
        auto snapshot = worker.snapshot();
        for (int i = 0; i < 20; ++i) ASSERT_LE(worker->horizon().value, snapshot.ts.value);
        const uint64_t horizon = worker->refresh_horizon()->value;
        ASSERT_LE(horizon, snapshot.ts.value);
        worker->set_oldest(std::nullopt);
        ++snapshots[n];
        horizons[n] += std::exchange(last, horizon) != horizon;
      }
    });
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  for (int n = 0; n < 2; ++n) {
    EXPECT_TRUE(gcl_test::eventually([&] { return snapshots[n] > 20 && horizons[n] > 20; }));
  }
  stop.store(true);
  for (auto& thread : threads) thread.join();
}

// A ring of 64 words serves thousands of ids; every status stays right, on every node, with and without a cache.
TEST(Txn, ASnapshotThatIsHandedOnWhileSlotsAreLookedAtIsNotMissed) {
  Engine engine({.cluster = {.nodes = 1}, .tickers = false});
  Worker to(engine, 0), from(engine, 0);
  const uint32_t early = to.session().id().value, late = from.session().id().value;
  const Cts ts = from.snapshot().ts;
  const uint64_t now = to->pass_moment()->value + 1;
  OldestNeeded meanwhile(engine.shared(0), now), afterwards(engine.shared(0), now);
  meanwhile.add(early);
  to->adopt_snapshot(ts);
  from->set_oldest(std::nullopt);
  meanwhile.add(late);
  EXPECT_EQ(meanwhile.bound(), 0u);
  EXPECT_EQ(afterwards.bound(), 0u);  // it began before
  OldestNeeded again(engine.shared(0), now);
  again.add(early);
  again.add(late);
  EXPECT_EQ(again.bound(), ts.value);
}

TEST(Txn, SlotsThatNeverHadASessionAreNotLookedAt) {
  constexpr uint32_t kSessions = 200;
  std::vector<std::byte> memory(TxnShared::bytes_for(kSessions) + 64);
  auto* const at = reinterpret_cast<void*>((reinterpret_cast<uintptr_t>(memory.data()) + 63) / 64 * 64);
  TxnShared* const shared = TxnShared::create(at, kSessions);
  const auto taken = [&] {
    std::vector<uint32_t> all;
    shared->for_each_taken([&](uint32_t session) { all.push_back(session); });
    return all;
  };
  EXPECT_EQ(taken(), std::vector<uint32_t>());
  for (const uint32_t session : {199u, 0u, 63u, 64u, 63u}) shared->take(session);
  EXPECT_EQ(taken(), (std::vector<uint32_t>{0, 63, 64, 199}));
}

// No horizon passes one that goes from session to session, each of which drops it as soon as the next one has it.
TEST(Txn, HorizonNeverPassesASnapshotThatIsHandedOn) {
  Engine engine({.cluster = {.nodes = 1, .sessions_max = 64}});
  Worker first(engine, 0);
  std::vector<std::unique_ptr<Worker>> between;
  for (int i = 0; i < 40; ++i) between.push_back(std::make_unique<Worker>(engine, 0));
  Worker last(engine, 0);
  std::atomic<bool> stop{false};
  std::thread others([&] {
    Worker worker(engine, 0);
    while (!stop.load()) {
      ASSERT_TRUE(worker->id_for_write().ok());
      worker.commit();
      ASSERT_TRUE(worker->tick().ok());
    }
  });
  const Cts ts = last.snapshot().ts;
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(500);
  while (std::chrono::steady_clock::now() < until && first->horizon() <= ts) {
    first->adopt_snapshot(ts);
    last->set_oldest(std::nullopt);
    last->adopt_snapshot(ts);
    first->set_oldest(std::nullopt);
  }
  EXPECT_LE(first->horizon(), ts);
  last->set_oldest(std::nullopt);
  EXPECT_TRUE(gcl_test::eventually([&] { return first->horizon() > ts; }));
  stop.store(true);
  others.join();
}

TEST(Txn, TheStatusLogIsRecycledForEver) {
  Engine engine({.cluster = {.nodes = 2}, .slots_max = 64});
  Worker writer(engine, 0), follower(engine, 1);
  std::vector<std::pair<TxnId, bool>> ended;
  for (int i = 0; i < 3000; ++i) {
    auto id = writer->id_for_write();
    ASSERT_TRUE(id.ok());
    ASSERT_EQ(id->sequence(), ended.size() + 1);
    const bool good = i % 3 != 0;
    ended.push_back({*id, good});
    if (i % 7 == 0) {
      EXPECT_TRUE(writer->sub_begin(2).ok());
      TxnId sub = *writer->id_for_write();
      ended.push_back({sub, good && i % 2});
      i % 2 ? writer->sub_commit(2) : writer->sub_abort(2);
    }
    good ? void(writer.commit()) : writer.abort();
    if (i % 5 == 0) {
      auto seen = follower->status(*id);
      ASSERT_TRUE(seen.ok());
      EXPECT_EQ(seen->committed(), good);
    }
  }
  Worker fresh(engine, 1);
  for (auto& [id, good] : ended) {
    auto status = fresh->status(id);
    ASSERT_TRUE(status.ok());
    ASSERT_EQ(status->committed(), good) << id.sequence();
    ASSERT_EQ(follower->status(id)->committed(), good);
  }
}

TEST(Txn, ANodeThatComesBackContinuesItsIds) {
  Engine engine({.cluster = {.nodes = 2}, .slots_max = 128});
  uint64_t highest = 0;
  for (int life = 0; life < 10; ++life) {
    {
      Worker writer(engine, 0), reader(engine, 1);
      for (int i = 0; i < 20; ++i) {
        auto id = writer->id_for_write();
        ASSERT_TRUE(id.ok());
        ASSERT_GT(id->sequence(), highest);
        highest = id->sequence();
        i % 2 ? void(writer.commit()) : writer.abort();
        ASSERT_EQ(reader->status(*id)->committed(), i % 2 == 1);
      }
    }
    engine.restart(0);
  }
}

TEST(TxnBudget, SnapshotIsOneBatchAndCommitTwoBesidesPrepare) {
  Engine engine({.cluster = {.nodes = 1, .workers = false}, .tickers = false});
  Worker worker(engine, 0);
  auto batches = [&](auto&& step) {
    uint64_t before = worker.session().coherence().counters().get(coherence::Counter::kBatches);
    step();
    return worker.session().coherence().counters().get(coherence::Counter::kBatches) - before;
  };
  ASSERT_TRUE(worker->id_for_write().ok());  // reserves a range of ids
  worker.commit();
  EXPECT_EQ(batches([&] { worker.snapshot(); }), 1u);
  EXPECT_EQ(batches([&] { EXPECT_TRUE(worker->id_for_write().ok()); }), 1u);
  EXPECT_EQ(batches([&] { EXPECT_TRUE(worker->prepare(4711).ok()); }), 1u);
  EXPECT_EQ(batches([&] { EXPECT_TRUE(worker->commit().ok()); }), 2u);
  ASSERT_TRUE(worker->id_for_write().ok());
  EXPECT_EQ(batches([&] { worker->abort(); }), 1u);
  EXPECT_EQ(batches([&] { EXPECT_TRUE(worker->prepare().ok() && worker->commit().ok()); }), 0u);  // wrote nothing
}

}  // namespace engine_test
