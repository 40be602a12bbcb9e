// What a node that died left in doubt is decided without it (txn.doubt-decided-once).
#include "tests/unit/engine/txn/leftovers_fixture.hpp"

namespace engine_test {

TEST_F(LeftByDead, AnotherDecidesWhatIsInDoubtAndItsServerHearsOfIt) {
  for (bool commits : {true, false}) {
    const TxnId id = *(*victim_)->id_for_write();
    EXPECT_TRUE((*victim_)->prepare(kXid).ok());
    const Snapshot before = survivor_->snapshot();
    die();
    EXPECT_EQ(end().in_doubt.size(), 1u);
    EXPECT_TRUE(*(*survivor_)->watch(id));
    EXPECT_EQ(*decide(id, commits), commits);
    EXPECT_TRUE(watchers_.has({1}));
    EXPECT_EQ(state(id), commits ? TxnState::kCommitted : TxnState::kAborted);
    if (commits) {
      EXPECT_GT((*survivor_)->status(id)->cts, before.ts);
    }
    EXPECT_EQ(decide(id, commits).error(), Errc::kNotFound) << "it is not in doubt any more";
    EXPECT_TRUE(end().in_doubt.empty());
    HostOfDead foreign(false), host(!commits);
    foreign.hears = false;  // the pool keeps it for the server that is to hear of it
    engine_.crash_and_join(0, &foreign);
    engine_.crash_and_join(0, &host);
    EXPECT_TRUE(host.asked.empty());
    EXPECT_EQ(host.told, (HostOfDead::Told{{kXid, commits}}));
    EXPECT_EQ(state(id), commits ? TxnState::kCommitted : TxnState::kAborted);
    HostOfDead again(!commits);
    engine_.crash_and_join(0, &again);
    EXPECT_TRUE(again.told.empty()) << "once is enough";
    victim_ = std::make_unique<Worker>(engine_, 0);
  }
}

TEST_F(LeftByDead, AnyProcessThatMeetsADecisionCarriesItOut) {
  for (bool commits : {true, false}) {
    for (bool asks : {true, false}) {
      const TxnId id = *(*victim_)->id_for_write();
      EXPECT_TRUE((*victim_)->prepare(kXid).ok());
      const auto at = (*survivor_)->words().host_xid({0}, victim_->session().id());
      die();
      // The process that decided it has died right then.
      const HostXidWord word{kXid};
      EXPECT_EQ(*survivor_->session().memory().cas(at, word.raw, word.as_decided(commits).raw), kXid);
      EXPECT_EQ(state(id), TxnState::kPrepared);
      if (asks) {
        EXPECT_EQ(*decide(id, !commits), commits);
      } else {
        const auto ended = end();
        EXPECT_EQ(ended.committed, commits ? 1u : 0u);
        EXPECT_EQ(ended.aborted, commits ? 0u : 1u);
        EXPECT_TRUE(ended.in_doubt.empty());
      }
      EXPECT_EQ(state(id), commits ? TxnState::kCommitted : TxnState::kAborted);
      HostOfDead host(commits);
      engine_.crash_and_join(0, &host);
      victim_ = std::make_unique<Worker>(engine_, 0);
    }
  }
}

TEST_F(LeftByDead, OfTwoThatDecideAtOnceTheFirstDoesAndTheOtherHearsOfIt) {
  const TxnId id = *(*victim_)->id_for_write();
  EXPECT_TRUE((*victim_)->prepare(kXid).ok());
  die();
  HostOfDead host(true);
  host.when_asked = [&] { EXPECT_FALSE(*decide(id, false)); };
  engine_.crash_and_join(0, &host);
  EXPECT_EQ(host.asked, std::vector<uint64_t>{kXid});
  EXPECT_EQ(state(id), TxnState::kAborted);
  EXPECT_EQ(host.told, (HostOfDead::Told{{kXid, false}}));
}

TEST_F(LeftByDead, WhatIsNotInDoubtIsNotDecided) {
  Worker alone(engine_, 0), done(engine_, 0);
  const TxnId ran = *(*victim_)->id_for_write(), ready = *alone->id_for_write(), committed = *done->id_for_write();
  EXPECT_TRUE(alone->prepare().ok());
  EXPECT_TRUE(done->prepare(kXid).ok());
  EXPECT_TRUE(done->commit().ok());
  const TxnId of_another = *(*survivor_)->id_for_write();
  for (Worker* worker : {&alone, &done}) worker->vanish();
  die();
  for (TxnId id : {ran, ready, committed, of_another, TxnId::make({0}, 0), TxnId::make({0}, 1'000'000'000)})
    for (bool commits : {true, false}) EXPECT_EQ(decide(id, commits).error(), Errc::kNotFound);
  EXPECT_EQ(state(ran), TxnState::kActive);
  EXPECT_EQ(state(ready), TxnState::kActive);
  EXPECT_EQ(state(committed), TxnState::kCommitted);
  EXPECT_EQ(state(of_another), TxnState::kActive);
  survivor_->abort();
}

}  // namespace engine_test
