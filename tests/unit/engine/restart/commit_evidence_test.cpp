// What a log's notes and the host's records tell of a transaction's end, in every order in which they may come.
#include "extension/engine/restart/commit_evidence.hpp"

#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "bufmgr/log/log_sink.hpp"
#include "extension/engine/txn/txn_notes.hpp"
#include "tests/support/longer.hpp"

namespace engine_test {
namespace {

using engine::CommitEvidence;
using Ids = std::vector<uint64_t>;

// Notes go to the evidence at once, as a reader of the log hands them over.
class Evidence : public ::testing::Test, public bufmgr::LogSink {
 protected:
  coherence::Lsn append(std::span<const std::byte>) override { return {}; }
  void note(std::span<const std::byte> bytes) override { ASSERT_TRUE(evidence_.note(bytes).ok()); }
  coherence::Lsn flushed() override { return {}; }
  void request_flush(coherence::Lsn) override {}

  void noted(uint64_t xid, const Ids& ids) { engine::note_commit(*this, xid, ids); }
  void committed(uint64_t xid, const Ids& ids) {
    noted(xid, ids);
    evidence_.host_committed(xid);
  }
  // Of the ids up to `last`.
  Ids all(uint64_t last = 100) {
    Ids found;
    for (uint64_t id = 0; id <= last; ++id)
      if (evidence_.committed(id)) found.push_back(id);
    return found;
  }

  CommitEvidence evidence_;
};

TEST_F(Evidence, OnlyACommitRecordBehindTheNoteCounts) {
  evidence_.host_committed(7);
  noted(7, {3, 5});
  EXPECT_EQ(all(), Ids{});
  evidence_.host_committed(8);
  EXPECT_EQ(all(), Ids{});
  evidence_.host_committed(7);
  EXPECT_EQ(all(), (Ids{3, 5}));
  noted(7, {9});  // the number comes round
  EXPECT_EQ(all(), (Ids{3, 5}));
}

TEST_F(Evidence, SeveralNotesAreOneTransaction) {
  noted(7, {10});
  noted(8, {11, 12});
  noted(7, {14, 20});
  evidence_.host_committed(7);
  EXPECT_EQ(all(), (Ids{10, 14, 20}));
  evidence_.host_committed(8);
  EXPECT_EQ(all(), (Ids{10, 11, 12, 14, 20}));
}

TEST_F(Evidence, WhatTheHostAbortsOrLosesInACrashHasNotCommitted) {
  noted(7, {10, 11});
  evidence_.host_aborted(7);
  evidence_.host_committed(7);
  noted(8, {12});
  noted(9, {13});
  evidence_.host_restarted();
  evidence_.host_committed(8);
  committed(9, {14});
  EXPECT_EQ(all(), Ids{14});
}

TEST_F(Evidence, WithoutANumberOfTheHostsNothingProvesACommit) {
  committed(0, {10});
  EXPECT_EQ(all(), Ids{});
}

TEST_F(Evidence, TheGreatestNumberIsOfAllNotes) {
  EXPECT_EQ(evidence_.greatest(), 0u);
  engine::note_reserved(*this, 1024);
  noted(7, {10});
  engine::note_reserved(*this, 512);
  EXPECT_EQ(evidence_.greatest(), 1024u);
}

TEST_F(Evidence, OtherBytesAreRefused) {
  const std::byte cut_off[] = {std::byte{2}, std::byte{1}}, unknown[] = {std::byte{99}, std::byte{1}};
  EXPECT_EQ(evidence_.note(cut_off).error(), coherence::Errc::kCorrupt);
  EXPECT_EQ(evidence_.note(unknown).error(), coherence::Errc::kIncompatible);
}

// Of the whole transaction, whatever comes first (restart.verdict-beats-log).
// restart.deaths-tell-ids
TEST_F(Evidence, AVerdictIsAnIdThatWasNoted) {
  noted(7, {10, 11});
  EXPECT_EQ(evidence_.greatest(), 11u);
  evidence_.roll_back(40);
  EXPECT_EQ(evidence_.greatest(), 40u);
  evidence_.commit(50);
  EXPECT_EQ(evidence_.greatest(), 50u);
  evidence_.roll_back(20);
  EXPECT_EQ(evidence_.greatest(), 50u);
}

TEST_F(Evidence, AVerdictBeatsTheLogAndADecisionToCommitBeatsIt) {
  enum Said { kNote, kCommit, kVerdict, kDecision };
  for (const bool decided : {false, true}) {
    std::vector<Said> order{kNote, kCommit, kVerdict};
    if (decided) order.push_back(kDecision);
    do {
      if (std::find(order.begin(), order.end(), kNote) > std::find(order.begin(), order.end(), kCommit)) continue;
      evidence_ = {};
      committed(1, {1, 2});
      committed(2, {30, 33});
      for (const Said said : order) {
        if (said == kNote) noted(7, {10, 11, 15});
        if (said == kCommit) evidence_.host_committed(7);
        if (said == kVerdict) evidence_.roll_back(10);
        if (said == kDecision) evidence_.commit(10);
      }
      EXPECT_EQ(all(), decided ? (Ids{1, 2, 10, 11, 15, 30, 33}) : (Ids{1, 2, 30, 33}))
          << int(order[0]) << int(order[1]) << int(order[2]);
    } while (std::next_permutation(order.begin(), order.end()));
  }
}

// Its server never came back to write a record, or lost it in its crash.
TEST_F(Evidence, ADecisionToCommitNeedsNoRecordOfTheHosts) {
  for (const bool restarts : {false, true})
    for (int when = 0; when < 5; ++when) {
      evidence_ = {};
      if (when == 0) evidence_.commit(10);
      noted(7, {10, 11});
      if (when == 1) evidence_.commit(10);
      noted(7, {12});
      if (when == 2) evidence_.commit(10);
      if (restarts) evidence_.host_restarted();
      if (when == 3) evidence_.commit(10);
      EXPECT_EQ(all(), when < 4 ? (Ids{10, 11, 12}) : Ids{}) << restarts << when;
    }
}

// What was written down goes on as if nothing had been.
TEST_F(Evidence, WrittenDownItIsTheSame) {
  committed(1, {1, 2});
  committed(2, {30, 33, 35});
  noted(7, {40, 41});
  noted(7, {5});  // of a savepoint
  noted(8, {50});
  noted(9, {60, 61});
  evidence_.host_aborted(9);
  noted(10, {70, 71});
  evidence_.host_restarted();
  noted(7, {40, 41});
  for (uint64_t id = 100'000; id < 300'000; ++id)
    if (id % 1000 != 7) committed(11, {id});
  for (uint64_t id = 400'000; id < 500'000; id += 3) committed(11, {id});
  const auto bytes = evidence_.written_down();
  EXPECT_LT(bytes.size(), 40'000u) << "where nearly all have committed, the others are listed";
  auto again = CommitEvidence::read(bytes);
  ASSERT_TRUE(again.ok());
  const Ids before = all(510'000);
  evidence_ = again.take();
  EXPECT_EQ(all(510'000), before);
  EXPECT_EQ(evidence_.greatest(), 499'999u);
  evidence_.host_committed(7);
  evidence_.roll_back(30);
  evidence_.commit(70);
  const Ids now = all();
  EXPECT_EQ(now, (Ids{1, 2, 40, 41, 70, 71}));
  EXPECT_EQ(CommitEvidence::read(CommitEvidence().written_down())->greatest(), 0u);
}

TEST_F(Evidence, BytesThatWereCutOffAreRefused) {
  committed(1, {1, 2});
  noted(2, {30, 33});
  for (uint64_t id = 100; id < 200; ++id) committed(3, {id});
  for (uint64_t id = 70'000; id < 90'000; id += 3) committed(3, {id});
  const auto bytes = evidence_.written_down();
  for (size_t length = 0; length < bytes.size(); length += length < 100 ? 1 : 97)
    EXPECT_FALSE(CommitEvidence::read(std::span(bytes).first(length)).ok()) << length;
  auto longer = bytes;
  longer.push_back({});
  EXPECT_FALSE(CommitEvidence::read(longer).ok());
}

TEST_F(Evidence, AgreesWithAPlainModel) {
  std::mt19937_64 random(gcl_test::seed(5));
  std::map<uint64_t, Ids> open;
  std::set<uint64_t> model;
  std::vector<Ids> ended;
  uint64_t next = 40000;  // across blocks of the bitmap
  for (int i = 0; i < 20000; ++i) {
    const uint64_t xid = 1 + random() % 20;
    if (i % 500 == 0) {
      auto again = CommitEvidence::read(evidence_.written_down());
      ASSERT_TRUE(again.ok());
      evidence_ = again.take();
    }
    switch (random() % 8) {
      case 0:
      case 1:
      case 2: {
        Ids ids;
        for (uint64_t n = 1 + random() % 3; n > 0; --n) ids.push_back(next += 1 + random() % 40);
        noted(xid, ids);
        open[xid].insert(open[xid].end(), ids.begin(), ids.end());
        break;
      }
      case 3:
      case 4:
      case 5:
        evidence_.host_committed(xid);
        model.insert(open[xid].begin(), open[xid].end());
        if (!open[xid].empty()) ended.push_back(open[xid]);
        open[xid].clear();
        break;
      case 6:
        evidence_.host_aborted(xid);
        open[xid].clear();
        break;
      default:
        if (random() % 50 == 0) {
          evidence_.host_restarted();
          open.clear();
        } else if (random() % 20 == 0 && !ended.empty()) {
          const Ids& ids = ended[random() % ended.size()];
          evidence_.roll_back(ids.front());
          for (const uint64_t id : ids) model.erase(id);
        }
    }
  }
  for (uint64_t id = 0; id <= next; ++id) ASSERT_EQ(evidence_.committed(id), model.contains(id)) << id;
}

TEST_F(Evidence, OfMillionsOfIdsIsABitEach) {
  constexpr uint64_t kMany = 4'000'000;
  const size_t before = mallinfo2().uordblks;
  for (uint64_t id = 1; id <= kMany; ++id) committed(7, {id});
  EXPECT_LT(mallinfo2().uordblks, before + kMany / 8 * 2);
  EXPECT_TRUE(evidence_.committed(kMany));
  EXPECT_FALSE(evidence_.committed(kMany + 1));
}

}  // namespace
}  // namespace engine_test
