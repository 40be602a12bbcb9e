// What a start that has lost the memory learns from the pool's journal: joins, deaths with their rings, decisions.
#include "recovery/restart_journal.hpp"

#include <algorithm>

#include "coherence/transport/shm/local_pool.hpp"
#include "recovery/page_sweep.hpp"
#include "recovery/ring_repair.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/pool_bytes.hpp"
#include "tests/support/random_change.hpp"
#include "tests/unit/recovery/replay.hpp"

namespace recovery {
namespace {

using coherence::Errc;
using coherence::LocalPool;
using coherence::NodeId;
using coherence::Pool;
using coherence::PoolJournal;
using coherence::Problem;
using coherence::Status;

constexpr NodeId kNode{1}, kOther{2};
constexpr auto kTry = PoolJournal::kTry;
constexpr uint64_t kAll = ~uint64_t{0};  // incarnations

// A pool with a durable copy, and no node in it.
class RestartJournal : public ::testing::Test {
 protected:
  RestartJournal() {
    directory_ = "/dev/shm/gcl-test-XXXXXX";
    EXPECT_NE(mkdtemp(directory_.data()), nullptr);
    path_ = directory_ + "/pool", durable_ = directory_ + "/durable";
    coherence::PoolSpec spec;
    spec.region_bytes[coherence::kRegionPages] = 8 * coherence::kPageSize;
    auto made = LocalPool::create({.path = path_.c_str(), .durable_path = durable_.c_str()}, spec, &problem_);
    EXPECT_TRUE(made.ok()) << problem_.text;
    pool_ = made.take();
  }
  ~RestartJournal() override {
    pool_.reset();
    EXPECT_EQ(system(("rm -rf '" + directory_ + "'").c_str()), 0);
  }
  void join(NodeId node, uint64_t incarnation, uint64_t first_sequence, uint64_t log_position = 1000) {
    const Join one{node, incarnation, first_sequence, log_position};
    EXPECT_TRUE(note_join(*pool_, one, kTry, &problem_).ok()) << problem_.text;
  }
  History history() {
    auto read = read_history(durable_.c_str(), pool_->pool_id(), pool_->saves(), &problem_);
    EXPECT_TRUE(read.ok()) << problem_.text;
    return read ? read.take() : History{};
  }
  // From one sequence to the next the answer is the same; at each of these it changes.
  void expect_counts(const NodeHistory& of, std::initializer_list<uint64_t> changes) {
    bool counts = false;
    uint64_t before = 0;
    for (const uint64_t at : changes) {
      EXPECT_EQ(of.counts(before), counts) << before;
      EXPECT_EQ(of.counts(at - 1), counts) << at - 1;
      counts = !counts;
      before = at;
    }
    EXPECT_EQ(of.counts(before), counts) << before;
    EXPECT_EQ(of.counts(before + (uint64_t{1} << 40)), counts) << "for good";
  }
  void expect_refused(uint32_t kind, std::vector<uint64_t> words, Errc error) {
    coherence::forget_since_save(durable_.c_str());
    auto journal = PoolJournal::open(*pool_, kTry, &problem_);
    ASSERT_TRUE(journal.ok() && (*journal)->append(kind, std::as_bytes(std::span(words)), &problem_).ok());
    const auto read = read_history(durable_.c_str(), pool_->pool_id(), pool_->saves(), &problem_);
    EXPECT_EQ(read.error(), error) << "kind " << kind << ", words " << words.size();
    EXPECT_NE(strstr(problem_.text, durable_.c_str()), nullptr) << problem_.text;
  }

  std::string directory_, path_, durable_;
  Problem problem_;
  std::unique_ptr<Pool> pool_;
};

TEST_F(RestartJournal, WithoutEntriesNobodyHasJoined) {
  const History nothing = history();
  EXPECT_TRUE(nothing.empty());
  EXPECT_FALSE(nothing.node[kNode.value].joined());
  EXPECT_EQ(nothing.node[kNode.value].newest_incarnation(), 0u);
  expect_counts(nothing.node[kNode.value], {});
  EXPECT_FALSE(*has_joined(*pool_, kNode, &problem_));
}

TEST_F(RestartJournal, WhatCountsIsFromTheFirstJoinOn) {
  join(kOther, 7, 100);
  join(kNode, 8, 5000, 70);
  join(kNode, 9, 9000, 80);  // it had left in order
  const History read = history();
  const NodeHistory& node = read.node[kNode.value];
  EXPECT_FALSE(read.empty());
  expect_counts(node, {5000});
  EXPECT_EQ(node.log_position(0, kAll), 70u);
  EXPECT_EQ(node.newest_incarnation(), 9u);
  EXPECT_TRUE(*has_joined(*pool_, kNode, &problem_) && *has_joined(*pool_, kOther, &problem_));
  EXPECT_FALSE(*has_joined(*pool_, {3}, &problem_));
}

// After an error that came late.
TEST_F(RestartJournal, AJoinThatIsNotedTwiceIsOne) {
  join(kNode, 8, 5000, 80);
  join(kNode, 8, 5000, 70);
  join(kNode, 8, 5000, 90);
  const History read = history();
  expect_counts(read.node[kNode.value], {5000});
  EXPECT_EQ(read.node[kNode.value].log_position(0, kAll), 70u) << "nothing of it is skipped";
}

// Its death is noted, and it had changed nothing.
TEST_F(RestartJournal, ANodeThatDiedBeforeItOpenedItsRingHasNoRecords) {
  join(kNode, 8, 5000);
  EXPECT_TRUE(note_death(*pool_, kNode, 9, RingIndex(), {}, kTry, &problem_).ok()) << problem_.text;
  const History read = history();
  expect_counts(read.node[kNode.value], {5000});
  ASSERT_EQ(read.node[kNode.value].deaths().size(), 1u);
  EXPECT_TRUE(read.node[kNode.value].deaths()[0].framed.empty());
  EXPECT_EQ(read.node[kNode.value].newest_incarnation(), 9u);
}

TEST_F(RestartJournal, VerdictsAndDecisionsComeBackInOrder) {
  constexpr uint64_t kLargest = (uint64_t{1} << 48) - 1;
  const std::vector<Verdict> verdicts{{1, true}, {2, false}, {kLargest, true}, {kLargest - 1, false}};
  EXPECT_TRUE(note_death(*pool_, kNode, 8, RingIndex(), verdicts, kTry, &problem_).ok()) << problem_.text;
  const std::vector<Decision> decisions{{~uint64_t{0}, true}, {77, false}, {78, true}};
  for (const Decision& one : decisions) EXPECT_TRUE(note_decision(*pool_, one, kTry, &problem_).ok());
  const History read = history();
  EXPECT_TRUE(read.empty()) << "nobody has joined";
  ASSERT_EQ(read.node[kNode.value].deaths().size(), 1u);
  const auto same = [](const Verdict& a, const Verdict& b) {
    return a.sequence == b.sequence && a.committed == b.committed;
  };
  EXPECT_TRUE(std::ranges::equal(read.node[kNode.value].deaths()[0].verdicts, verdicts, same));
  EXPECT_TRUE(std::ranges::equal(read.decisions, decisions, [](const Decision& a, const Decision& b) {
    return a.txn == b.txn && a.committed == b.committed;
  }));
}

// The others were noted by processes that died before they carried them out: nobody has seen them.
TEST_F(RestartJournal, OfATransactionTheLastDecisionCounts) {
  for (const Decision& one : {Decision{77, true}, {78, false}, {77, false}, {78, true}, {78, true}})
    EXPECT_TRUE(note_decision(*pool_, one, kTry, &problem_).ok());
  const History read = history();
  ASSERT_EQ(read.decisions.size(), 2u);
  EXPECT_EQ(read.decisions[0].txn, 77u);
  EXPECT_FALSE(read.decisions[0].committed);
  EXPECT_EQ(read.decisions[1].txn, 78u);
  EXPECT_TRUE(read.decisions[1].committed);
}

TEST_F(RestartJournal, WhatIsNoEntryIsRefused) {
  constexpr uint64_t kBad = coherence::kNodesMax;
  expect_refused(16, {1, 2, 3}, Errc::kCorrupt);
  expect_refused(16, {kBad, 2, 3, 4}, Errc::kCorrupt);
  expect_refused(17, {1, 2, 3, 3}, Errc::kCorrupt);
  expect_refused(17, {kBad, 2, 3, 3, 0}, Errc::kCorrupt);
  expect_refused(17, {1, 2, 3, 3, 1}, Errc::kCorrupt);             // a verdict is missing
  expect_refused(17, {1, 2, 3, 3, ~uint64_t{0}}, Errc::kCorrupt);  // and very many
  expect_refused(17, {1, 2, 8, 24, 0, 5}, Errc::kCorrupt);         // 8 bytes of 16
  expect_refused(17, {1, 2, 24, 8, 0}, Errc::kCorrupt);            // a hole before the first
  expect_refused(18, {1}, Errc::kCorrupt);
  expect_refused(19, {1}, Errc::kCorrupt);
  expect_refused(20, {1, 2, 8, 16, 0, 5}, Errc::kCorrupt);  // a ring, where a checkpoint has it
}

TEST_F(RestartJournal, AnEntryOfALaterVersionIsRefused) {
  for (const uint32_t kind : {2u, 15u, 21u}) {
    expect_refused(kind, {1, 2, 3, 4, 5}, Errc::kIncompatible);
    const std::string why = "has an entry of kind " + std::to_string(kind) +
                            ", which is not read here; a later version of gcl wrote it: use that one";
    EXPECT_NE(strstr(problem_.text, why.c_str()), nullptr) << problem_.text;
  }
}

TEST_F(RestartJournal, AnotherThatWritesIsToldOf) {
  auto held = PoolJournal::open(*pool_, kTry, &problem_);
  ASSERT_TRUE(held.ok()) << problem_.text;
  EXPECT_EQ(note_join(*pool_, {kNode, 8, 5000, 70}, kTry, &problem_).error(), Errc::kBusy);
  EXPECT_EQ(note_death(*pool_, kNode, 8, RingIndex(), {}, kTry, &problem_).error(), Errc::kBusy);
  EXPECT_EQ(note_decision(*pool_, {1, true}, kTry, &problem_).error(), Errc::kBusy);
  EXPECT_TRUE(history().empty());
}

// Nodes that work, and die.  Their pool is opened once more, for the journal.
class RestartJournalOfDead : public ::testing::Test {
 protected:
  static constexpr int kDead = kNode.value;
  RestartJournalOfDead()
      : cluster_({.nodes = 2,
                  .frames = 128,
                  .ring_bytes = 4 * bufmgr::kRingBytesLeast,
                  .repairs_deaths = true,
                  .keep_records = true}),
        durable_(cluster_.path() + ".durable") {
    auto opened = LocalPool::open(
        {.path = cluster_.path().c_str(), .durable_path = durable_.c_str(), .compatibility = "test=1\n"}, &problem_);
    EXPECT_TRUE(opened.ok()) << problem_.text;
    pool_ = opened.take();
    cluster_.pool(0).coherence_node().set_repair(&redo_);
    auto session = cluster_.session(0);
    pages_ = gcl_test::pages_of_two_memory_nodes(cluster_.pool(0), *session, 24);
    cluster_.end(0, std::move(session));
  }
  struct Logged {
    uint64_t sequence;
    recovery_test::Record record;
  };
  // Of the dead one, in the order of its log.
  std::vector<Logged> work() {
    auto session = cluster_.session(kDead);
    for (int i = 0; i < 20; ++i) gcl_test::random_change(cluster_.pool(kDead), *session, pages_, random_);
    EXPECT_TRUE(session->push_redo().ok());
    cluster_.end(kDead, std::move(session));
    std::vector<Logged> all;
    for (auto& record : cluster_.log(kDead).records()) {
      const uint64_t sequence = bufmgr::RecordReader(record).header().sequence;
      all.push_back({sequence, std::move(record)});
    }
    return all;
  }
  bufmgr::RegionSpan ring() { return bufmgr::BufferPool::ring_of(*pool_, kNode); }
  // As if the record had never come there.  REQUIRES: the node is dead; a living one may bring it there once more.
  void make_hole(uint64_t sequence, uint64_t data) {
    *gcl_test::pool_bytes(*pool_, ring().at + bufmgr::kRingHeaderBytes + sequence % data) ^= std::byte{0xff};
  }
  std::unique_ptr<RingIndex> read_ring(uint64_t incarnation) {
    auto session = cluster_.session(0);
    auto index = RingIndex::read(session->memory(), ring().at, ring().bytes, incarnation, &problem_);
    EXPECT_TRUE(index.ok()) << problem_.text;
    cluster_.end(0, std::move(session));
    return index.take();
  }
  History history() {
    auto read = read_history(durable_.c_str(), pool_->pool_id(), pool_->saves(), &problem_);
    EXPECT_TRUE(read.ok()) << problem_.text;
    return read ? read.take() : History{};
  }
  // Until the dead one may join again.
  bool repair() {
    return gcl_test::eventually([&] {
      auto session = cluster_.session(0);
      EXPECT_TRUE(sweep_.step(*session, &problem_).ok()) << problem_.text;
      cluster_.end(0, std::move(session));
      return cluster_.pool(0).coherence_node().info(kNode).state == coherence::MemberState::kAbsent;
    });
  }

  gcl_test::Cluster cluster_;
  RingRepair redo_{cluster_.pool(0)};
  PageSweep sweep_{cluster_.pool(0), redo_};
  const std::string durable_;
  Problem problem_;
  std::unique_ptr<Pool> pool_;
  std::vector<bufmgr::PageId> pages_;
  std::mt19937_64 random_{gcl_test::seed(53)};
};

TEST_F(RestartJournalOfDead, TheRingsRecordsComeBackAndNothingBehindTheHoleCounts) {
  for (const bool with_hole : {false, true}) {
    SCOPED_TRACE(with_hole);
    auto& node = cluster_.pool(kDead);
    const uint64_t incarnation = node.coherence_node().incarnation(), first = node.first_sequence();
    const size_t before = cluster_.log(kDead).records().size();
    ASSERT_TRUE(note_join(*pool_, {kNode, incarnation, first, 70}, kTry, &problem_).ok()) << problem_.text;
    std::vector<Logged> logged = work();
    logged.erase(logged.begin(), logged.begin() + long(before));  // of former incarnations
    EXPECT_EQ(logged.front().sequence, first);
    const uint64_t tail = node.ring().tail(), head = node.ring().head(), data = node.ring().data_bytes();
    const Logged& lost = logged[logged.size() - 5];
    ASSERT_GT(lost.sequence, tail);
    cluster_.kill(kDead);
    if (with_hole) make_hole(lost.sequence, data);
    const auto index = read_ring(incarnation);
    const uint64_t hole = with_hole ? lost.sequence : head;
    EXPECT_EQ(index->first_sequence(), tail);
    EXPECT_EQ(index->hole(), hole);
    ASSERT_TRUE(note_death(*pool_, kNode, incarnation, *index, {}, kTry, &problem_).ok()) << problem_.text;

    const History read = history();
    const NodeHistory& of = read.node[kDead];
    ASSERT_FALSE(of.deaths().empty());
    const Death& death = of.deaths().back();
    EXPECT_EQ(death.incarnation, incarnation);
    EXPECT_EQ(death.first_sequence, tail);
    EXPECT_EQ(death.hole, hole);
    auto left = std::span(death.framed);
    uint64_t at = death.first_sequence;
    for (const Logged& one : logged) {
      EXPECT_EQ(of.counts(one.sequence), one.sequence < hole) << one.sequence;
      if (one.sequence < tail || one.sequence >= hole) continue;
      EXPECT_EQ(one.sequence, at);
      const auto record = bufmgr::framed_record(left, at);
      ASSERT_TRUE(record.ok()) << at;
      EXPECT_EQ(bufmgr::RecordReader(*record).header().sequence, one.sequence);
      const size_t framed = sizeof(bufmgr::RecordFrame) + record->size();  // it has bytes where the log has copies
      left = left.subspan(framed);
      at += framed;
    }
    EXPECT_EQ(at, hole);
    EXPECT_TRUE(left.empty());
    EXPECT_EQ(read_ring(incarnation + 1)->hole(), 0u) << "another's ring is none";

    // A checkpoint has its ring: all but that stays.
    const auto is_last = [&](const Death& one) { return one.incarnation == incarnation; };
    ASSERT_TRUE(drop_rings(durable_.c_str(), pool_->pool_id(), pool_->saves(), is_last, &problem_).ok())
        << problem_.text;
    const History without = history();
    const Death& again = without.node[kDead].deaths().back();
    EXPECT_TRUE(again.framed.empty());
    EXPECT_EQ(again.ring_bytes(), hole - tail);
    for (const Logged& one : logged)
      EXPECT_EQ(without.node[kDead].counts(one.sequence), one.sequence < hole) << one.sequence;
    EXPECT_EQ(without.node[kDead].deaths().size(), of.deaths().size());
    // Another journal has it still.
    const auto put_back = [&](auto with_ring) {
      const Status put = put_back_rings(durable_.c_str(), pool_->pool_id(), pool_->saves(), with_ring, &problem_);
      ASSERT_TRUE(put.ok()) << problem_.text;
    };
    put_back([](const Death&) { return nullptr; });
    EXPECT_TRUE(history().node[kDead].deaths().back().framed.empty());
    put_back([&](const Death& one) { return is_last(one) ? &death : nullptr; });
    const History whole = history();
    EXPECT_EQ(whole.node[kDead].deaths().back().framed, death.framed);
    EXPECT_EQ(whole.node[kDead].deaths().size(), of.deaths().size());
    for (const Logged& one : logged)
      EXPECT_EQ(whole.node[kDead].counts(one.sequence), one.sequence < hole) << one.sequence;

    // The next incarnation's records are behind all that this one may have logged.
    ASSERT_TRUE(repair());
    cluster_.start(kDead);
    const uint64_t next = cluster_.pool(kDead).first_sequence();
    EXPECT_GE(next, tail + data);
    EXPECT_GE(next, head);
    ASSERT_TRUE(note_join(*pool_, {kNode, incarnation + 1, next, 70}, kTry, &problem_).ok()) << problem_.text;
    ASSERT_TRUE(note_death(*pool_, kNode, incarnation, *index, {}, kTry, &problem_).ok()) << "again";
    const History later = history();
    const NodeHistory& both = later.node[kDead];
    for (const auto& [sequence, counts] :
         {std::pair(first, true), {first - 1, false}, {hole - 1, true}, {hole, false}, {next - 1, false}, {next, true}})
      EXPECT_EQ(both.counts(sequence), counts) << sequence;
    EXPECT_EQ(both.deaths().size(), with_hole ? 4u : 2u);
  }
}

}  // namespace
}  // namespace recovery
