// What becomes of a dead node's transactions is told before it is done: verdicts and decisions (repair.recorded-first,
// journal.verdicts-beat-logs).
#include <algorithm>
#include <map>

#include "coherence/region/node_table.hpp"
#include "tests/unit/engine/txn/leftovers_fixture.hpp"

namespace engine_test {

using gcl_test::eventually;

class Verdicts : public LeftByDead {
 protected:
  using All = std::vector<std::pair<uint64_t, bool>>;  // by sequence
  All verdicts() {
    const auto found = left().verdicts();
    EXPECT_TRUE(found.ok());
    All all;
    if (found)
      for (const auto& one : *found)
        if (is_used(one.sequence)) all.emplace_back(one.sequence, one.committed);
    std::ranges::sort(all);
    return all;
  }
  bool is_used(uint64_t sequence) { return (*survivor_)->status_if_used(TxnId::make({0}, sequence))->has_value(); }
  Leftovers left() { return {survivor_->session().memory(), (*survivor_)->words(), {0}}; }
  // Of node 0, each of a session of its own.
  TxnId begun() {
    victims_.push_back(std::make_unique<Worker>(engine_, 0));
    return *(*victims_.back())->id_for_write();
  }
  TxnId prepared(uint64_t xid) {
    const TxnId id = begun();
    EXPECT_TRUE((*victims_.back())->prepare(xid).ok());
    host_xid_[id.raw] = (*survivor_)->words().host_xid({0}, victims_.back()->session().id());
    return id;
  }
  void die() {
    for (auto& victim : victims_) victim->vanish();
    LeftByDead::die();
  }
  HostXidWord host_xid(TxnId id) { return {*survivor_->session().memory().load(host_xid_.at(id.raw))}; }
  // As a process does that has decided it, and dies then.
  void set_decided(TxnId id, bool commits) {
    const HostXidWord word = host_xid(id);
    EXPECT_EQ(*survivor_->session().memory().cas(host_xid_.at(id.raw), word.raw, word.as_decided(commits).raw),
              word.raw);
  }
  void expect_undecided(TxnId id) {
    EXPECT_EQ(state(id), TxnState::kPrepared);
    EXPECT_EQ(host_xid(id), HostXidWord{kXid});
  }

  std::vector<std::unique_ptr<Worker>> victims_;
  std::map<uint64_t, coherence::PoolAddress> host_xid_;
};

// Its server may have committed what runs (txn.prepared-if-mixed).
TEST_F(Verdicts, TheyAreWhatTheEndMakesOfWhatRunsOrIsPrepared) {
  EXPECT_EQ(verdicts(), All{});
  const TxnId alone = prepared(0), in_doubt = prepared(kXid), commits = prepared(kXid + 1), aborts = prepared(kXid + 2);
  const TxnId ran = begun(), committing = prepared(kXid + 3);
  let_commit_begin(*victims_.back());
  const TxnId committed = prepared(kXid + 4);
  EXPECT_TRUE((*victims_.back())->commit().ok());
  (void)prepared(0);
  (*victims_.back())->abort();
  die();
  set_decided(commits, true);
  set_decided(aborts, false);
  All expected{
      {alone.sequence(), false}, {commits.sequence(), true}, {aborts.sequence(), false}, {ran.sequence(), false}};
  std::ranges::sort(expected);
  for (int again = 0; again < 2; ++again) {
    EXPECT_EQ(verdicts(), expected) << "they stay the same";
    for (TxnId id : {in_doubt, commits, aborts}) EXPECT_EQ(state(id), TxnState::kPrepared);
    for (TxnId id : {alone, ran}) EXPECT_EQ(state(id), TxnState::kActive);
  }
  const auto ended = end();
  ASSERT_EQ(ended.in_doubt.size(), 1u);
  EXPECT_EQ(ended.in_doubt[0].id, in_doubt);
  for (const auto& [sequence, commit] : expected)
    EXPECT_EQ(state(TxnId::make({0}, sequence)), commit ? TxnState::kCommitted : TxnState::kAborted) << sequence;
  EXPECT_EQ(state(in_doubt), TxnState::kPrepared);
  EXPECT_EQ(state(ran), TxnState::kAborted);
  for (TxnId id : {committing, committed}) EXPECT_EQ(state(id), TxnState::kCommitted);
  EXPECT_EQ(verdicts(), All{}) << "and then nothing is left to say";
}

// restart.deaths-tell-ids
TEST_F(Verdicts, TheLastIdThatDidNotCommitIsAmongThem) {
  const TxnId ran = begun();
  die();
  const auto reserved = survivor_->session().memory().load((*survivor_)->words().reserved({0}));
  ASSERT_GT(*reserved, ran.sequence());
  for (int again = 0; again < 2; ++again) {
    const auto found = left().verdicts();
    ASSERT_TRUE(found.ok());
    EXPECT_TRUE(std::ranges::any_of(*found, [&](const auto& v) { return v.sequence == *reserved && !v.committed; }));
    end();
  }
}

TEST_F(Verdicts, OfASavepointsTransactionThereIsOne) {
  const TxnId top = begun();
  Worker& victim = *victims_.back();
  EXPECT_TRUE(victim->sub_begin(2).ok());
  const TxnId inner = *victim->id_for_write();
  victim->sub_commit(2);
  EXPECT_TRUE(victim->prepare().ok());
  die();
  EXPECT_EQ(verdicts(), (All{{top.sequence(), false}}));
  end();
  for (TxnId id : {top, inner}) EXPECT_TRUE((*survivor_)->status(id)->aborted());
}

TEST_F(Verdicts, ADecisionIsRecordedBeforeItIsTaken) {
  for (const bool commits : {true, false}) {
    const TxnId id = prepared(kXid);
    die();
    end();
    std::vector<bool> recorded;
    const auto fails = [&](bool committed) {
      recorded.push_back(committed);
      expect_undecided(id);
      return coherence::Status(Errc::kNoSpace);
    };
    for (const bool commit : {commits, !commits}) EXPECT_EQ(left().decide(id, commit, fails).error(), Errc::kNoSpace);
    EXPECT_EQ(recorded, (std::vector<bool>{commits, !commits}));
    expect_undecided(id);
    const auto works = [&](bool committed) {
      recorded.push_back(committed);
      expect_undecided(id);
      return coherence::Status();
    };
    const auto decided = left().decide(id, commits, works);
    ASSERT_TRUE(decided.ok());
    EXPECT_EQ(decided->committed, commits);
    EXPECT_EQ(recorded, (std::vector<bool>{commits, !commits, commits}));
    EXPECT_EQ(state(id), commits ? TxnState::kCommitted : TxnState::kAborted);
    EXPECT_EQ(left().decide(id, commits, fails).error(), Errc::kNotFound) << "it is not in doubt any more";
    HostOfDead host(commits);
    engine_.crash_and_join(0, &host);
    victim_ = std::make_unique<Worker>(engine_, 0);
    victims_.clear();
  }
}

TEST_F(Verdicts, WhatIsDecidedIsNotRecordedByASurvivorThatMeetsIt) {
  const TxnId id = prepared(kXid);
  die();
  set_decided(id, true);
  const auto never = [](bool) -> coherence::Status {
    ADD_FAILURE();
    return Errc::kNoSpace;
  };
  const auto decided = left().decide(id, false, never);
  ASSERT_TRUE(decided.ok());
  EXPECT_TRUE(decided->committed);
  EXPECT_EQ(state(id), TxnState::kCommitted);
}

// A server that records what it decides.
struct RecordingHost final : HostCommits {
  coherence::Result<bool> committed(uint64_t) override { return commits; }
  coherence::Status about_to_decide(TxnId id, bool committed) override {
    told.emplace_back(id, committed);
    if (when_told) when_told(id);
    return outcome;
  }
  bool was_decided(uint64_t, bool) override { return true; }
  bool commits = true;
  Errc outcome = Errc::kOk;
  std::function<void(TxnId)> when_told;
  std::vector<std::pair<TxnId, bool>> told;
};

TEST_F(Verdicts, AServerRecordsWhatItDecidesBeforeAnybodySeesIt) {
  for (const bool commits : {true, false}) {
    const TxnId id = prepared(kXid);
    (void)prepared(0);  // which it need not decide
    die();
    RecordingHost host;
    host.commits = commits;
    host.when_told = [&](TxnId) { expect_undecided(id); };
    host.outcome = Errc::kNoSpace;
    {
      Worker first(engine_, 0);
      EXPECT_EQ(first->join(&host).error(), Errc::kNoSpace);
    }
    expect_undecided(id);
    host.outcome = Errc::kOk;
    engine_.crash_and_join(0, &host);
    EXPECT_EQ(host.told, (std::vector<std::pair<TxnId, bool>>{{id, commits}, {id, commits}}));
    EXPECT_EQ(state(id), commits ? TxnState::kCommitted : TxnState::kAborted);
    victim_ = std::make_unique<Worker>(engine_, 0);
    victims_.clear();
  }
}

// The process that decided it may have died before it said so.
TEST_F(Verdicts, AServerRecordsWhatOthersHaveDecided) {
  for (const bool commits : {true, false}) {
    const TxnId id = prepared(kXid);
    die();
    set_decided(id, commits);
    RecordingHost host;
    host.commits = !commits;
    host.when_told = [&](TxnId which) { EXPECT_EQ(state(which), TxnState::kPrepared); };
    host.outcome = Errc::kNoSpace;
    {
      Worker first(engine_, 0);
      EXPECT_EQ(first->join(&host).error(), Errc::kNoSpace);
    }
    EXPECT_EQ(state(id), TxnState::kPrepared);
    host.outcome = Errc::kOk;
    engine_.crash_and_join(0, &host);
    EXPECT_EQ(host.told, (std::vector<std::pair<TxnId, bool>>{{id, commits}, {id, commits}}));
    EXPECT_EQ(state(id), commits ? TxnState::kCommitted : TxnState::kAborted);
    victim_ = std::make_unique<Worker>(engine_, 0);
    victims_.clear();
  }
}

// A pool whose deaths are recorded.
TEST(RecordedDeaths, SurvivorsEndNothingBeforeTheDeathIsRecorded) {
  constexpr coherence::NodeId kDead{0};
  Engine engine({.cluster = {.nodes = 2, .repairs_deaths = true, .records_deaths = true}});
  Worker reader(engine, 1);
  coherence::Node& node = engine.cluster().pool(1).coherence_node();
  TxnId ran, ready;
  {
    Worker one(engine, 0), two(engine, 0);
    ran = *one->id_for_write();
    ready = *two->id_for_write();
    EXPECT_TRUE(two->prepare().ok());
    one.vanish(), two.vanish();
  }
  const uint64_t incarnation = node.info(kDead).incarnation;
  engine.kill(0);
  ASSERT_TRUE(eventually([&] { return node.unrecorded().has(kDead); }));
  const auto ended = reader->end_dead_node(kDead);
  ASSERT_TRUE(ended.ok());
  EXPECT_EQ(ended->aborted, 0u);
  EXPECT_TRUE(reader->end_dead_nodes().ok());
  EXPECT_FALSE(eventually([&] { return state_of(reader, ran) != TxnState::kActive; }, std::chrono::milliseconds(100)))
      << "by the member worker";
  EXPECT_EQ(state_of(reader, ready), TxnState::kActive);
  const auto verdicts = reader->verdicts_on(kDead);
  ASSERT_TRUE(verdicts.ok());
  ASSERT_EQ(verdicts->size(), 3u) << "and one of an id that was never used";
  for (const TxnId id : {ran, ready})
    EXPECT_EQ(std::ranges::count(*verdicts, id.sequence(), &Leftovers::Verdict::sequence), 1) << id.sequence();
  ASSERT_TRUE(eventually([&] { return node.recorded(kDead, incarnation); }));
  EXPECT_TRUE(eventually([&] { return state_of(reader, ran) == TxnState::kAborted; })) << "it looks again";
  EXPECT_TRUE(eventually([&] { return state_of(reader, ready) == TxnState::kAborted; }));
}

}  // namespace engine_test
