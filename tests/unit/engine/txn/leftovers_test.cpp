// What a node that died left in the words of transactions: which node ends it, how, and what stays (rules.md).
#include "coherence/region/node_table.hpp"
#include "coherence/transport/shm/mapped_pool.hpp"
#include "tests/support/hooked_transport.hpp"
#include "tests/unit/engine/txn/leftovers_fixture.hpp"

namespace engine_test {

using gcl_test::eventually;

class LeftByDeadInSmallRing : public LeftByDead {
 protected:
  LeftByDeadInSmallRing() : LeftByDead(64) {}
  void pass(int count) {
    Worker other(engine_, 0);
    for (int i = 0; i < count; ++i) {
      ASSERT_TRUE(other->id_for_write().ok());
      other.commit();
    }
  }
};

TEST_F(LeftByDead, WhatRanIsRolledBackWithItsSavepoints) {
  const TxnId top = *(*victim_)->id_for_write();
  EXPECT_TRUE((*victim_)->sub_begin(2).ok());
  const TxnId released = *(*victim_)->id_for_write();
  (*victim_)->sub_commit(2);
  EXPECT_TRUE((*victim_)->sub_begin(2).ok());
  const TxnId open = *(*victim_)->id_for_write();
  die();
  const auto ended = end();
  EXPECT_EQ(ended.aborted, 1u);
  for (TxnId id : {top, released, open}) {
    EXPECT_EQ(state(id), TxnState::kAborted);
    EXPECT_TRUE((*survivor_)->status(id)->aborted());
  }
  EXPECT_EQ(end().aborted, 0u);
}

TEST_F(LeftByDead, WhatIsCommittingIsFinishedLaterThanAnySnapshotThereIs) {
  const TxnId id = *(*victim_)->id_for_write();
  EXPECT_TRUE((*victim_)->prepare(kXid).ok());
  let_commit_begin(*victim_);
  die();
  const Snapshot before = survivor_->snapshot();
  const auto ended = end();
  EXPECT_EQ(ended.committed, 1u);
  EXPECT_TRUE(ended.in_doubt.empty());
  EXPECT_EQ(state(id), TxnState::kCommitted);
  EXPECT_GT((*survivor_)->status(id)->cts, before.ts);
}

TEST_F(LeftByDead, WhatIsPreparedEndsOnlyIfItChangedGclTablesAlone) {
  Worker alone(engine_, 0);
  EXPECT_TRUE((*victim_)->id_for_write().ok());  // the slot's word of a former transaction says nothing
  EXPECT_TRUE((*victim_)->prepare().ok());
  EXPECT_TRUE((*victim_)->commit().ok());
  EXPECT_TRUE(alone->id_for_write().ok());
  EXPECT_TRUE(alone->prepare(kXid + 1).ok());
  EXPECT_TRUE(alone->commit().ok());
  const TxnId mixed = *(*victim_)->id_for_write();
  EXPECT_TRUE((*victim_)->prepare(kXid).ok());
  const TxnId id = *alone->id_for_write();
  EXPECT_TRUE(alone->prepare().ok());
  alone.vanish();
  die();
  for (int again = 0; again < 2; ++again) {
    const auto ended = end();
    EXPECT_EQ(ended.aborted, again == 0 ? 1u : 0u);
    ASSERT_EQ(ended.in_doubt.size(), 1u);
    EXPECT_EQ(ended.in_doubt[0].id, mixed);
    EXPECT_EQ(ended.in_doubt[0].host_xid, kXid);
    EXPECT_EQ(state(id), TxnState::kAborted);
    EXPECT_EQ(state(mixed), TxnState::kPrepared);
    EXPECT_TRUE(*(*survivor_)->watch(mixed));
  }
}

TEST_F(LeftByDead, ItsServerDecidesWhatIsInDoubtWhenItComesBack) {
  Worker reader(engine_, 1);
  for (bool commits : {true, false}) {
    const TxnId id = *(*victim_)->id_for_write();
    const auto watched = (*survivor_)->words().watch({0}, victim_->session().id());
    EXPECT_TRUE((*victim_)->prepare(kXid).ok());
    const Snapshot before = survivor_->snapshot();
    die();
    EXPECT_EQ(end().in_doubt.size(), 1u);
    std::thread waits([&] { EXPECT_TRUE(survivor_->waiter().wait_for(id, WaitFor::kUpdate).ok()); });
    survivor_->waiter().expect_waits(commits ? 1 : 2);
    EXPECT_TRUE(eventually([&] { return *reader.session().memory().load(watched) != 0; }));
    HostOfDead host(commits);
    engine_.crash_and_join(0, &host);
    waits.join();
    EXPECT_EQ(host.asked, std::vector<uint64_t>{kXid});
    EXPECT_EQ(state(id), commits ? TxnState::kCommitted : TxnState::kAborted);
    if (commits) {
      EXPECT_GT((*survivor_)->status(id)->cts, before.ts);
    }
    victim_ = std::make_unique<Worker>(engine_, 0);
  }
}

// As txn.committing-before-clock has it: a snapshot that is taken between the two steps finds COMMITTING.
TEST(LeftByDeadDecided, TheClockMovesWhileItIsCommitting) {
  gcl_test::HookedTransport transport;
  Engine engine({.cluster = {.nodes = 2, .transport = &transport}});
  Worker victim(engine, 0), reader(engine, 1);
  const TxnId id = *victim->id_for_write();
  EXPECT_TRUE(victim->prepare(kXid).ok());
  engine.pause_ticker(0);
  victim.vanish();
  HostOfDead host(true);
  std::vector<TxnState> states;
  transport.on_post = [&, clock = reader->words().clock()](const coherence::Batch& batch) {
    if (batch.op(0).verb == coherence::Verb::kFaa && batch.op(0).at.raw == clock.raw)
      states.push_back(state_of(reader, id));
  };
  {
    Worker first(engine, 0);
    EXPECT_TRUE(first->join(&host).ok());
  }
  transport.on_post = {};
  EXPECT_EQ(states, std::vector<TxnState>{TxnState::kCommitting});
  EXPECT_EQ(state_of(reader, id), TxnState::kCommitted);
}

TEST_F(LeftByDead, ANodeDoesNotJoinOverWhatItsServerCannotDecide) {
  const TxnId id = *(*victim_)->id_for_write();
  EXPECT_TRUE((*victim_)->prepare(kXid).ok());
  die();
  Worker first(engine_, 0);
  EXPECT_EQ(first->join().error(), Errc::kCorrupt);
  EXPECT_EQ(state(id), TxnState::kPrepared);
}

TEST_F(LeftByDead, ANodeThatComesBackEndsWhatNoSurvivorHasEnded) {
  Worker committing(engine_, 0), alone(engine_, 0);
  const TxnId ran = *(*victim_)->id_for_write(), half = *committing->id_for_write(), none = *alone->id_for_write();
  EXPECT_TRUE(committing->prepare(kXid).ok());
  let_commit_begin(committing);
  EXPECT_TRUE(alone->prepare().ok());
  for (Worker* worker : {&committing, &alone}) worker->vanish();
  die();
  HostOfDead host(true);
  engine_.crash_and_join(0, &host);
  EXPECT_TRUE(host.asked.empty());
  EXPECT_EQ(state(ran), TxnState::kAborted);
  EXPECT_EQ(state(half), TxnState::kCommitted);
  EXPECT_EQ(state(none), TxnState::kAborted);
}

TEST_F(LeftByDead, LocksSpeculationsAndTheBoundEnd) {
  engine_.pause_ticker(0);  // its bound stays
  const TxnId maker = *(*victim_)->id_for_write();
  const SessionLock lock = *(*victim_)->take_session_lock();
  EXPECT_TRUE((*victim_)->speculate(7, 0).ok());
  const auto speculation = *(*survivor_)->speculation(maker, 7);
  ASSERT_TRUE(speculation.has_value());
  victim_->snapshot();
  const Cts moment = *(*survivor_)->pass_moment();
  die();
  EXPECT_TRUE(*(*survivor_)->is_held(lock));
  EXPECT_TRUE(*(*survivor_)->watch(*speculation));
  EXPECT_LE((*survivor_)->refresh_horizon()->value, moment.value);
  const auto ended = end();
  EXPECT_TRUE(ended.watchers.has({1}));
  EXPECT_FALSE(*(*survivor_)->is_held(lock));
  EXPECT_FALSE(*(*survivor_)->open(*speculation));
  EXPECT_GT((*survivor_)->refresh_horizon()->value, moment.value);
}

// A survivor that has seen the death, and then slept until the node had joined again and its sessions were at work.
TEST_F(LeftByDead, ALateSurvivorTouchesNothingOfTheNextIncarnation) {
  const uint32_t slot = victim_->session().id().value;
  const TxnId former = *(*victim_)->id_for_write();
  EXPECT_TRUE((*victim_)->take_session_lock().ok());
  EXPECT_TRUE((*victim_)->speculate(7, 0).ok());
  EXPECT_TRUE((*victim_)->tick().ok());  // its bound is what the clock is
  die();
  for (bool asked_late : {true, false}) {
    std::unique_ptr<Worker> next;
    TxnId ran, ready;
    SessionLock lock;
    std::unique_ptr<Worker> other;
    std::optional<Speculation> speculation;
    const auto ended = end([&] {
      engine_.crash_and_join(0);
      engine_.pause_ticker(0);  // and the clock stands still: nothing but the join has moved it
      other = std::make_unique<Worker>(engine_, 0);
      next = std::make_unique<Worker>(engine_, 0);
      EXPECT_EQ(next->session().id().value, slot);
      ran = *(*next)->id_for_write();
      ready = *(*other)->id_for_write();
      EXPECT_TRUE((*other)->prepare().ok());
      lock = *(*next)->take_session_lock();
      EXPECT_TRUE((*next)->speculate(7, 0).ok());
      speculation = *(*survivor_)->speculation(ran, 7);
      return !asked_late;
    });
    EXPECT_EQ(ended.aborted, 0u);
    EXPECT_EQ(end([] { return false; }).aborted, 0u);  // and one that slept before it saw anything of the dead
    EXPECT_EQ(state(former), TxnState::kAborted);
    EXPECT_EQ(state(ran), TxnState::kActive);
    EXPECT_EQ(state(ready), TxnState::kActive);
    EXPECT_TRUE(*(*survivor_)->is_held(lock));
    ASSERT_TRUE(speculation.has_value());
    EXPECT_TRUE(*(*survivor_)->open(*speculation));
    EXPECT_NE(*survivor_->session().memory().load((*survivor_)->words().bound({0})), 0u);
    EXPECT_TRUE((*next)->tick().ok());
    other->vanish();
    next->vanish();
  }
}

TEST_F(LeftByDead, SeveralSurvivorsAtOnceEndEachThingOnce) {
  constexpr uint32_t kEach = 8;
  std::vector<std::unique_ptr<Worker>> dead;
  std::vector<TxnId> ids;
  for (uint32_t i = 0; i < 3 * kEach; ++i) {
    dead.push_back(std::make_unique<Worker>(engine_, 0));
    ids.push_back(*(*dead.back())->id_for_write());
    if (i % 3 == 0) continue;
    EXPECT_TRUE((*dead.back())->prepare(i % 3 == 1 ? 0 : kXid).ok());
    if (i % 3 == 2) let_commit_begin(*dead.back());
  }
  for (auto& worker : dead) worker->vanish();
  die();
  std::atomic<uint32_t> aborted{0}, committed{0};
  std::vector<std::thread> survivors;
  for (int i = 0; i < 3; ++i)
    survivors.emplace_back([&] {
      Worker worker(engine_, 1);
      auto ended = Leftovers(worker.session().memory(), worker->words(), {0}).end([] { return true; });
      ASSERT_TRUE(ended.ok());
      aborted += ended->aborted;
      committed += ended->committed;
    });
  for (auto& thread : survivors) thread.join();
  EXPECT_EQ(aborted, 2 * kEach);
  EXPECT_EQ(committed, kEach);
  for (uint32_t i = 0; i < ids.size(); ++i)
    EXPECT_EQ(state(ids[i]), i % 3 == 2 ? TxnState::kCommitted : TxnState::kAborted);
}

TEST_F(LeftByDeadInSmallRing, IdsThatWerePinnedEndWhereTheyLie) {
  Worker doubt(engine_, 0), inner(engine_, 0);
  const TxnId ran = *(*victim_)->id_for_write(), mixed = *doubt->id_for_write();
  EXPECT_TRUE(doubt->prepare(kXid).ok());
  ASSERT_TRUE(inner->id_for_write().ok());
  EXPECT_TRUE(inner->sub_begin(2).ok());
  const TxnId sub = *inner->id_for_write();
  pass(1000);
  EXPECT_GT(engine_.shared(0).low_water.load(), sub.sequence() + 800);
  for (Worker* worker : {&doubt, &inner}) worker->vanish();
  die();
  const auto ended = end();
  EXPECT_EQ(ended.aborted, 2u);
  ASSERT_EQ(ended.in_doubt.size(), 1u);
  EXPECT_EQ(ended.in_doubt[0].id, mixed);
  for (TxnId id : {ran, sub}) EXPECT_TRUE((*survivor_)->status(id)->aborted());
  EXPECT_EQ((*survivor_)->status(mixed)->state, TxnState::kPrepared);
  HostOfDead host(true);
  engine_.crash_and_join(0, &host);
  for (int round = 0; round < 2; ++round) {
    Worker fresh(engine_, 1);
    for (TxnId id : {ran, sub}) EXPECT_TRUE(fresh->status(id)->aborted());
    EXPECT_TRUE(fresh->status(mixed)->committed());
    pass(500);
  }
  EXPECT_TRUE(eventually([&] { return engine_.shared(0).frozen.load() > sub.sequence(); }));
}

// The count of listed ids and the mark are written in this order, and a node may die in between.
TEST(LeftByDeadList, WhatTheCountCoversAndTheMarkDoesNotIsFoundThoughItIsListedTwice) {
  constexpr int kIds = 1900;  // more than a page of the list
  Engine engine({.cluster = {.nodes = 2}, .tickers = false});
  std::vector<TxnId> ids;
  const auto run = [&](Worker& writer) {
    for (int i = 0; i < kIds; ++i) {
      ids.push_back(*writer->id_for_write());
      i % 16 == 0 ? void(writer.commit()) : writer.abort();
    }
    EXPECT_TRUE(writer->tick().ok());
  };
  const auto freeze = [&](Worker& writer) {
    for (int round = 0; round < 4; ++round) {
      EXPECT_TRUE(Worker(engine, 1)->tick().ok());  // the horizon passes
      EXPECT_TRUE(writer->tick().ok());
      EXPECT_TRUE(writer->truncate_log_now().ok());
    }
    EXPECT_EQ(engine.shared(0).frozen.load(), ids.back().sequence());
  };
  {
    Worker writer(engine, 0);
    run(writer);
    auto& memory = writer.session().memory();
    const auto& words = writer->words();
    const uint64_t low = *memory.load(words.low_water({0})), frozen = *memory.load(words.frozen({0}));
    freeze(writer);
    coherence::Batch back(words.clock().node());
    back.write(words.low_water({0}), &low, sizeof low);
    back.write(words.frozen({0}), &frozen, sizeof frozen);
    ASSERT_TRUE(memory.run(back).ok());
    writer.vanish();
  }
  engine.crash_and_join(0);
  Worker writer(engine, 0), fresh(engine, 1);
  run(writer);
  freeze(writer);
  for (size_t i = 0; i < ids.size(); ++i)
    ASSERT_EQ(fresh->status(ids[i])->aborted(), i % kIds % 16 != 0) << i << " of " << ids.size();
}

// A server that dies between the two words has told no survivor that gcl tables are all that it changed.
TEST(LeftByDeadKind, TheHostsNumberIsWrittenBeforeTheTransactionIsPrepared) {
  gcl_test::HookedTransport transport;
  Engine engine({.cluster = {.nodes = 1, .transport = &transport}, .tickers = false});
  Worker writer(engine, 0);
  const TxnId id = *writer->id_for_write();
  const auto words = writer->words();
  const auto xid_at = words.host_xid({0}, writer.session().id());
  int seen = 0;
  transport.on_post = [&](const coherence::Batch& batch) {
    bool written = false;
    for (int i = 0; i < batch.size(); ++i) {
      written |= batch.op(i).verb == coherence::Verb::kWrite && batch.op(i).at.raw == xid_at.raw;
      if (batch.op(i).verb != coherence::Verb::kCas || batch.op(i).at.raw != words.status(id).raw) continue;
      ++seen;
      EXPECT_TRUE(written);
    }
  };
  EXPECT_TRUE(writer->prepare(kXid).ok());
  transport.on_post = {};
  EXPECT_EQ(seen, 1);
  EXPECT_EQ(*writer.session().memory().load(xid_at), kXid);
}

TEST(LeftByDeadFenced, WhereADeathFencesThePoolNothingIsEnded) {
  Engine engine({.cluster = {.nodes = 2, .workers = false}, .tickers = false});
  Worker writer(engine, 0), reader(engine, 1);
  const TxnId id = *writer->id_for_write();
  auto& state = coherence::MappedPool::of(engine.cluster().pool(1).coherence_pool()).table().node[0].state;
  state.store(coherence::MemberState::kDead);  // a moment before the fence
  EXPECT_TRUE(reader->end_dead_nodes().ok());
  EXPECT_EQ(state_of(reader, id), TxnState::kActive);
  state.store(coherence::MemberState::kLive);
}

// --- a node that really dies -----------------------------------------------------------------------------------------

class DeadNode : public ::testing::Test {
 protected:
  DeadNode() : engine_({.cluster = {.nodes = 3, .repairs_deaths = true}}) {}
  Engine engine_;
};

TEST_F(DeadNode, SurvivorsEndWhatItLeftByThemselves) {
  TxnId ran, alone, mixed;
  SessionLock lock;
  {
    Worker a(engine_, 0), b(engine_, 0), c(engine_, 0);
    ran = *a->id_for_write();
    alone = *b->id_for_write();
    mixed = *c->id_for_write();
    EXPECT_TRUE(b->prepare().ok() && c->prepare(kXid).ok());
    lock = *a->take_session_lock();
    a.snapshot();
    for (Worker* worker : {&a, &b, &c}) worker->vanish();
  }
  engine_.kill(0);
  Worker reader(engine_, 1);
  EXPECT_TRUE(eventually([&] { return state_of(reader, ran) == TxnState::kAborted; }));
  EXPECT_TRUE(eventually([&] { return state_of(reader, alone) == TxnState::kAborted; }));
  EXPECT_TRUE(eventually([&] { return !*reader->is_held(lock); }));
  reader.pass_horizon();
  const auto doubt = reader->in_doubt();
  ASSERT_TRUE(doubt.ok());
  ASSERT_EQ(doubt->size(), 1u);
  EXPECT_EQ((*doubt)[0].id, mixed);
  EXPECT_EQ((*doubt)[0].host_xid, kXid);
  EXPECT_EQ(state_of(reader, mixed), TxnState::kPrepared);
}

TEST_F(DeadNode, ThoseThatWaitForItsTransactionsAndSpeculationsAreWoken) {
  Worker maker(engine_, 0), reader(engine_, 1);
  const TxnId id = *maker->id_for_write();
  EXPECT_TRUE(maker->speculate(7, 0).ok());
  const Speculation speculation = **reader->speculation(id, 7);
  std::vector<std::thread> waits;
  std::atomic<int> began{0};
  for (int n = 1; n <= 2; ++n) {
    waits.emplace_back([&, n] {
      Worker waiter(engine_, n);
      waiter.waiter().on_wait = [&] { ++began; };
      EXPECT_TRUE(waiter.waiter().wait_for(id, WaitFor::kUpdate).ok());
    });
    waits.emplace_back([&, n] {
      Worker waiter(engine_, n);
      waiter.waiter().on_wait = [&] { ++began; };
      EXPECT_TRUE(waiter.waiter().wait_for_speculation(speculation).ok());
    });
  }
  const auto watched = reader->words().watch({0}, maker.session().id());
  EXPECT_TRUE(eventually([&] { return began == 4 && *reader.session().memory().load(watched) == 0b110; }));
  maker.vanish();
  engine_.kill(0);
  for (auto& thread : waits) thread.join();
}

}  // namespace engine_test
