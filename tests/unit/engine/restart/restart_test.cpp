// After a loss of all memory, words say of every transaction what the logs say.
#include "bufmgr/mini_transaction.hpp"
#include "extension/engine/ddl/ddl_log_root.hpp"
#include "extension/engine/reclaim/reclaim_list.hpp"
#include "extension/engine/restart/restored_members.hpp"
#include "extension/engine/restart/restored_statuses.hpp"
#include "extension/engine/txn/aborted_list_page.hpp"
#include "extension/engine/txn/txn_notes.hpp"
#include "tests/unit/engine/ddl/ddl_node.hpp"
#include "tests/unit/engine/restart/restart_fixture.hpp"

namespace engine_test {
namespace {

using bufmgr::PageType;

// One pool through several losses; what each leaves is what the next one's copy is made of.
TEST_F(LostPool, EveryIdIsWhatTheLogsSay) {
  constexpr int kLives = 4;
  for (int life = 0; life < kLives; ++life) {
    SCOPED_TRACE(life);
    std::optional<Worker> old;
    if (life != 2) {  // pages of words, and what they say, are in the copy
      old.emplace(engine_, 1);
      old->snapshot();
    }
    work(2500);
    end_all();
    if (life == 1) forget(2);
    old.reset();
    stop_all();
    take_copy();
    ASSERT_FALSE(HasFatalFailure());

    start_primaries();
    if (life % 2 != 0) {
      old.emplace(engine_, 2);
      old->snapshot();
    }
    work(2500);
    freeze_all();
    if (life == 2) forget(1);
    work(300);
    old.reset();
    lose_all();
    stop_all(false);
    const auto restored = restart();
    ASSERT_FALSE(HasFatalFailure());

    start_primaries();
    for (const int node : kPrimary) {
      EXPECT_GE(restored[size_t(node)].reserved, highest_[node]);
      expect_truth(node);
    }
    ASSERT_FALSE(HasFatalFailure());
  }
  work(1000);  // and rings go round
  end_all();
  freeze_all();
  for (const int node : kPrimary) {
    EXPECT_GT(engine_.shared(node).frozen.load(), engine_.shared(node).join_base + 2 * kSlots);
    expect_truth(node);
  }
}

// The copy has pages of words, of ids that ended but are not frozen; the lists are longer than a page.
TEST_F(LostPool, PagesAreThoseOfTheNewListsAlone) {
  std::optional<Worker> old(std::in_place, engine_, 1);
  old->snapshot();
  work(20000);
  end_all();
  EXPECT_GT(count_pages(*old)[PageType::kStatus], 2u) << "else nothing is shown";
  old.reset();
  stop_all();
  take_copy();
  for (const int node : kPrimary) EXPECT_GT(copy_.nodes[size_t(node)].aborted.size(), kSlots);
  start_primaries();
  work(8000);
  freeze_all();
  work(1000);
  lose_all();
  Pages before;
  {
    Worker looks(engine_, 1);
    before = count_pages(looks);
  }
  stop_all(false);
  const auto restored = restart();
  start_primaries();
  Worker looks(engine_, 1);
  Pages now = count_pages(looks), expected = before;
  expected[PageType::kStatus] = expected[PageType::kList] = 0;
  for (const RestoredNode& node : restored)
    expected[PageType::kList] += (node.aborted + AbortedListPage::kEntries - 1) / AbortedListPage::kEntries;
  EXPECT_GT(expected[PageType::kList], 2u) << "one is longer than a page";
  now.try_emplace(PageType::kStatus);
  EXPECT_EQ(now, expected);
  EXPECT_EQ(now[PageType::kUnused], 0u);
  for (const int node : kPrimary) {
    const TxnWords& words = looks->words();
    const NodeId n{uint8_t(node)};
    EXPECT_EQ(load(looks, words.aborted_count(n)), restored[size_t(node)].aborted);
    EXPECT_EQ(load(looks, words.overflow_root(n)), 0u);
    EXPECT_EQ(load(looks, words.reserved(n)), restored[size_t(node)].reserved);
    EXPECT_EQ(load(looks, words.frozen(n)), restored[size_t(node)].reserved);  // restart.all-ids-frozen
  }
  expect_truth(1);
}

// restart.begun-anew
TEST_F(LostPool, InAFullPoolTheNewListsLieWhereTheFormerDid) {
  std::optional<Worker> old(std::in_place, engine_, 1);
  old->snapshot();
  work(8000);
  end_all();
  old.reset();
  stop_all();
  take_copy();
  start_primaries();
  work(1000);
  freeze_all();
  lose_all();
  {
    Worker fills(engine_, 1);
    for (const uint32_t pages : {64, 1})
      while (fills->pool().allocate(fills.session(), pages, bufmgr::PageUse::kHousekeeping).ok()) continue;
    EXPECT_GT(count_pages(fills)[PageType::kList], 1u) << "else nothing is shown";
  }
  stop_all(false);
  restart();
  ASSERT_FALSE(HasFatalFailure());
  start_primaries();
  expect_truth(2);
}

TEST_F(LostPool, OfTheCopyOnlyWhatWasRolledBackIsListed) {
  std::vector<uint64_t> rolled_back;
  for (int i = 0; i < 12; ++i) {
    auto txn = begin(1);
    open_level(*txn);
    if (i % 3 == 0) {
      rolled_back.push_back(txn->ids[0][0].sequence());
      rolled_back.push_back(txn->ids[1][0].sequence());
      roll_back(std::move(txn), false);
      continue;
    }
    if (i % 3 == 1) rolled_back.push_back(txn->ids[1][0].sequence());
    close_level(*txn, i % 3 != 1);
    commit(std::move(txn));
  }
  stop_all();
  take_copy();
  EXPECT_EQ(copy_.nodes[1].frozen, 0u) << "else nothing is shown";
  EXPECT_GT(copy_.nodes[1].reserved, highest_[1]);
  EXPECT_EQ(copy_.nodes[1].aborted, rolled_back) << "none of those that were never used";
  EXPECT_TRUE(copy_.nodes[1].in_doubt.empty());
  const auto restored = restart();  // no page lists them: the node has not worked since
  EXPECT_EQ(restored[1].aborted, rolled_back.size());
  start_primaries();
  expect_truth(2);
}

// A log that ends before ids that its own pages name is not this pool's.
TEST_F(LostPool, ALogThatLacksIdsThatPagesNameIsRefused) {
  stop_all();
  take_copy();
  start_primaries();
  for (int i = 0; i < 100; ++i) {
    auto txn = begin(1);
    write(*txn);
    roll_back(std::move(txn), false);
  }
  freeze_all();
  stop_all(false);
  words_->put_back();
  as_driver([&](Worker& driver) {
    const CommitEvidence nothing;
    std::vector<const CommitEvidence*> evidence(driver->words().nodes());
    evidence[1] = &nothing;
    EXPECT_EQ(restore(driver->pool(), driver.session(), driver->words(), copy_, evidence).error(),
              coherence::Errc::kCorrupt);
  });
}

TEST_F(LostPool, TheClockIsBeyondAllThatItWas) {
  work(200);
  end_all();
  stop_all();
  take_copy();
  start_primaries();
  work(200);
  lose_all();
  uint64_t before;
  {
    Worker looks(engine_, 1);
    before = looks.snapshot().ts.value;
    looks->set_oldest(std::nullopt);
  }
  stop_all(false);
  restart();
  start_primaries();
  Worker looks(engine_, 1);
  EXPECT_GT(looks.snapshot().ts.value, before + (uint64_t{1} << 39));
}

// A node that has no log keeps its words, its list and its pages of words.
TEST_F(LostPool, ANodeWithoutALogIsAsTheCopyHasIt) {
  std::optional<Worker> old(std::in_place, engine_, 1);
  old->snapshot();
  work(3000);
  end_all();
  old.reset();
  stop_all();
  take_copy();
  start(1);
  for (int i = 0; i < 300; ++i) {
    auto txn = begin(1);
    write(*txn);
    i % 3 == 0 ? roll_back(std::move(txn), false) : commit(std::move(txn));
  }
  stop_all(false);
  std::map<int, CommitEvidence> known;
  known.emplace(1, evidence_of(1));
  restart(known);
  start(1);
  {
    Worker looks(engine_, 1);
    EXPECT_NE(load(looks, looks->words().overflow_root({2})), 0u) << "else nothing is shown";
  }
  expect_truth(1);
  start(2);
  expect_truth(2);
  work(500);
  end_all();
  freeze_all();
  expect_truth(1);
}

// What was in doubt when the copy was made is decided by the log of the node's own server, and by verdicts.
TEST_F(LostPool, WhatTheCopyHasPreparedIsDecidedByEvidence) {
  std::vector<std::vector<TxnId>> doubt;
  std::vector<uint32_t> xids;
  for (int i = 0; i < 3; ++i) {
    auto txn = begin(1);
    open_level(*txn);
    close_level(*txn, true);
    ASSERT_TRUE(txn->worker->prepare(txn->xid).ok());
    doubt.push_back(txn->ids[0]);
    xids.push_back(txn->xid);
    lose(std::move(txn));
  }
  const auto notes = engine_.cluster().log(1).notes();
  stop_all(false);
  take_copy();
  EXPECT_EQ(copy_.nodes[1].in_doubt.size(), 6u);
  CommitEvidence evidence;
  for (const auto& bytes : notes) ASSERT_TRUE(evidence.note(bytes).ok());
  evidence.host_committed(xids[0]);
  evidence.host_committed(xids[1]);
  evidence.roll_back(doubt[1][0].sequence());
  note_end(doubt[0], true);
  std::map<int, CommitEvidence> known;
  known.emplace(1, std::move(evidence));
  restart(known);
  start_primaries();
  expect_truth(1);
  expect_truth(2);
}

TEST_F(LostPool, AVerdictBeatsTheCommitRecordOfADeadNode) {
  stop_all();
  take_copy();
  start_primaries();
  auto txn = begin(1);
  open_level(*txn);
  close_level(*txn, true);
  ASSERT_TRUE(txn->worker->prepare().ok());
  host_says(*txn, true);
  const uint64_t first = txn->ids[0][0].sequence();
  lose(std::move(txn));
  stop_all(false);
  std::map<int, CommitEvidence> known;
  for (const int node : kPrimary) known.emplace(node, evidence_of(node));
  EXPECT_TRUE(known.at(1).committed(first));
  known.at(1).roll_back(first);
  restart(known);
  start_primaries();
  expect_truth(2);
}

TEST_F(LostPool, RowsAreWhatCommittedTransactionsMade) {
  RelationId table;
  std::vector<std::string> kept;
  const auto insert = [&](int node, const std::string& text, bool commits) {
    auto txn = begin(node);
    write(*txn);
    Heap heap(txn->worker.txns(), table);
    ASSERT_EQ(heap.insert(TestRow(text).image(), 0).error(), coherence::Errc::kOk);
    if (commits) kept.push_back(text);
    commits ? commit(std::move(txn)) : roll_back(std::move(txn), false);
  };
  {
    auto txn = begin(1);
    write(*txn);
    table = *Heap::create(txn->worker.txns());
    commit(std::move(txn));
  }
  for (int i = 0; i < 50; ++i) insert(kPrimary[i % 2], "before " + std::to_string(i), i % 3 != 0);
  stop_all();
  take_copy();
  start_primaries();
  for (int i = 0; i < 200; ++i) insert(kPrimary[i % 2], "behind " + std::to_string(i), i % 3 != 0);
  stop_all(false);
  restart();
  start_primaries();
  Worker reads(engine_, 2);
  Heap heap(reads.txns(), table);
  auto found = scan_all(heap, reads.snapshot());
  std::ranges::sort(found);
  std::ranges::sort(kept);
  EXPECT_EQ(found, kept);
}

// restart.unproven-means-aborted
TEST(RestoredStatuses, WhatIsListedIsNotProvenAndNotForgotten) {
  const StatusesOfCopy::Node copy{.reserved = 10, .frozen = 4, .aborted = {3, 6}, .in_doubt = {{8, 7}, {7, 7}}};
  CommitEvidence evidence;
  struct Notes final : bufmgr::LogSink {
    explicit Notes(CommitEvidence& to) : to_(to) {}
    coherence::Lsn append(std::span<const std::byte>) override { return {}; }
    void note(std::span<const std::byte> bytes) override { EXPECT_TRUE(to_.note(bytes).ok()); }
    coherence::Lsn flushed() override { return {}; }
    void request_flush(coherence::Lsn) override {}
    CommitEvidence& to_;
  } notes(evidence);
  note_commit(notes, 700, std::vector<uint64_t>{12});
  evidence.host_committed(700);
  note_commit(notes, 701, std::vector<uint64_t>{14});
  EXPECT_EQ(ids_to_list(copy, evidence, 0, {6, 2, 13}), (std::vector<uint64_t>{2, 3, 6, 7, 8, 11, 13, 14}));
  EXPECT_EQ(ids_to_list(copy, evidence, 3, {6, 2, 13}), (std::vector<uint64_t>{6, 7, 8, 11, 13, 14}));
  evidence.commit(7);
  EXPECT_EQ(ids_to_list(copy, evidence, 6, {6, 2, 13}), (std::vector<uint64_t>{11, 13, 14}));
}

class LostRoots : public LostPool {
 protected:
  PageId make(Worker& worker, PageType type, uint32_t offset, const void* bytes, uint32_t count) {
    const auto page = worker->pool().allocate(worker.session(), 1, bufmgr::PageUse::kHousekeeping);
    EXPECT_TRUE(page.ok());
    bufmgr::MiniTransaction change(worker->pool(), worker.session());
    EXPECT_TRUE(change.reserve(1024).ok());
    auto guard = worker->pool().fix_exclusive(worker.session(), *page);
    change.join(*guard);
    change.format(*guard, type, 0);
    change.write(*guard, offset, bytes, count);
    change.commit();
    return *page;
  }
};

// Two sessions make a root at once, and the node dies before the loser's page is given back.
TEST_F(LostRoots, AReclaimListIsFoundWithWhatItNames) {
  stop_all();
  take_copy();
  start_primaries();
  std::map<int, uint64_t> roots;
  uint64_t list_pages = 0;
  for (const int node : kPrimary) {
    const uint32_t owner = uint32_t(node);
    Worker loser(engine_, node);
    make(loser, PageType::kReclaim, offsetof(ReclaimPage, node), &owner, sizeof owner);
    auto txn = begin(node);
    for (int i = 0; i < (node == 1 ? 3 : 700); ++i) {
      const auto page = ReclaimList(txn->worker.txns())
                            .allocate(*txn->worker->id_for_write(), ReclaimKind::kTable, bufmgr::PageUse::kData);
      ASSERT_TRUE(page.ok());
    }
    make(loser, PageType::kReclaim, offsetof(ReclaimPage, node), &owner, sizeof owner);
    roots[node] = load(loser, loser->words().reclaim_root(loser->node()));
    list_pages = count_pages(loser)[PageType::kReclaim];
    write(*txn);
    lose(std::move(txn));
  }
  EXPECT_EQ(list_pages, 7u) << "a chain of two pages or more, and four that lead nowhere";
  stop_all(false);
  restart();
  start_primaries();
  Worker looks(engine_, 1);
  for (const int node : kPrimary) EXPECT_EQ(load(looks, looks->words().reclaim_root({uint8_t(node)})), roots[node]);
  EXPECT_EQ(count_pages(looks)[PageType::kReclaim], list_pages - 4);
}

TEST_F(LostRoots, TheDdlLogIsFoundWithItsEntries) {
  const std::vector<std::byte> record(20000, std::byte{7});
  for (const bool copy_has_it : {false, true}) {
    PageId root;
    stop_all();
    take_copy();
    start_primaries();
    {
      gcl_test::Node node(engine_.cluster(), 1);
      ASSERT_TRUE(node.log.append(record, 1).ok());
      ASSERT_TRUE(node.log.append(record, 2).ok());
      root = *node.channel.log_root();
      engine_.cluster().end(1, std::move(node.session));
    }
    {
      Worker loser(engine_, 2);
      const DdlLogRoot empty{0, ~uint64_t{0}, ~uint64_t{0}, 0, 0};
      make(loser, PageType::kLogRoot, bufmgr::kPageBody, &empty, sizeof empty);
      EXPECT_EQ(count_pages(loser)[PageType::kLogRoot], 2u);
    }
    stop_all(false);
    restart();
    start_primaries();
    gcl_test::Node node(engine_.cluster(), 2);
    const uint64_t entries = copy_has_it ? 4 : 2;
    EXPECT_EQ(*node.channel.log_root(), root);
    EXPECT_EQ(node.channel.log_entries(), entries);
    DdlLogEntry entry;
    uint64_t count = 0;
    for (bool ok = node.log.first(&entry).ok(); ok && entry.valid(); ok = node.log.next(&entry).ok()) {
      std::vector<std::byte> copy(entry.bytes);
      EXPECT_TRUE(node.log.read(entry, copy.data()).ok());
      EXPECT_EQ(copy, record);
      ++count;
    }
    EXPECT_EQ(count, entries);
    engine_.cluster().end(2, std::move(node.session));
    Worker looks(engine_, 1);
    EXPECT_EQ(count_pages(looks)[PageType::kLogRoot], 1u);
  }
}

// restart.members-are-the-living
TEST_F(LostRoots, TheDdlLogWaitsForThoseWhoseLivesWereNoted) {
  constexpr NodeId kAhead{1}, kBehind{2}, kForgotten{3}, kNew{4};
  const std::vector<std::byte> record(100, std::byte{7});
  const auto at_log = [&](const auto& what) {
    gcl_test::Node node(engine_.cluster(), 1);
    what(node.channel, node.log);
    engine_.cluster().end(1, std::move(node.session));
  };
  at_log([&](DdlChannel& channel, DdlLog& log) {
    for (uint64_t txn = 1; txn <= 5; ++txn) ASSERT_TRUE(log.append(record, txn).ok());
    for (const NodeId id : {kAhead, kBehind, kForgotten}) {
      channel.set_life(id, 10);
      channel.set_applied(id, DdlApplied::upto(id == kAhead ? 5 : 1));
    }
  });
  stop_all();
  take_copy();
  start_primaries();
  at_log([&](DdlChannel& channel, DdlLog& log) {
    for (const NodeId id : {kBehind, kForgotten}) channel.set_applied(id, DdlApplied::upto(3));
    ASSERT_TRUE(log.remove_applied().ok());
    DdlLogExtent extent;
    ASSERT_TRUE(log.extent(&extent).ok());
    EXPECT_EQ(extent.removed, 3u);
  });
  stop_all(false);
  restart();
  as_driver([&](Worker& driver) {
    const DdlMember noted[] = {{kAhead, 20}, {kBehind, 22}, {kForgotten, DdlLife::kForgotten}, {kNew, 24}};
    EXPECT_TRUE(restore_members(driver->pool(), driver.session(), noted).ok());
  });
  start_primaries();
  at_log([&](DdlChannel& channel, DdlLog&) {
    EXPECT_EQ(channel.life(kAhead), 20u);
    EXPECT_EQ(channel.life(kBehind), 22u);
    EXPECT_EQ(channel.life(kForgotten), DdlLife::kForgotten);
    EXPECT_EQ(channel.life(kNew), 24u);
    EXPECT_EQ(channel.applied(kAhead).raw, DdlApplied::upto(5).raw) << "as the copy has it";
    EXPECT_EQ(channel.applied(kBehind).raw, DdlApplied::upto(3).raw);
    EXPECT_EQ(channel.applied(kNew).raw, DdlApplied::upto(3).raw);
    EXPECT_FALSE(channel.applied(kForgotten).known()) << "it is waited for no longer";
  });
}

}  // namespace
}  // namespace engine_test
