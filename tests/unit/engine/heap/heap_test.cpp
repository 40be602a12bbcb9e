// Heap semantics, one step at a time: what PostgreSQL's executor relies on.
#include "extension/engine/heap/relation_map.hpp"
#include "tests/unit/engine/heap/heap_fixture.hpp"

namespace engine_test {

TEST_F(HeapTest, AnInsertIsSeenByItsOwnLaterCommandsAndByOthersAfterCommit) {
  auto early = b_.snapshot();
  Tid tid = insert("one", 3);
  EXPECT_EQ(at(*heap_a_, tid, a_.snapshot(3)), "-");
  EXPECT_EQ(at(*heap_a_, tid, a_.snapshot(4)), "one");
  EXPECT_EQ(at(*heap_b_, tid, b_.snapshot()), "-");
  a_.commit();
  EXPECT_EQ(at(*heap_b_, tid, b_.snapshot()), "one");
  EXPECT_EQ(at(*heap_b_, tid, early), "-");
  EXPECT_EQ(scan_all(*heap_b_, b_.snapshot()), std::vector<std::string>{"one"});
}

TEST_F(HeapTest, AnAbortedInsertIsSeenByNobody) {
  Tid tid = insert("one");
  a_.abort();
  EXPECT_EQ(at(*heap_a_, tid, a_.snapshot(9)), "-");
  EXPECT_EQ(at(*heap_b_, tid, b_.snapshot()), "-");
  EXPECT_EQ(at(*heap_b_, tid, {.kind = SnapshotKind::kAny}), "one");
  EXPECT_EQ(heap_b_->probe(tid)->kind, RowProbe::kDead);
}

TEST_F(HeapTest, AnUpdateOfUnindexedColumnsIsChainedAndOldSnapshotsSeeTheOldVersion) {
  Tid root = committed("v1");
  auto old = b_.snapshot();
  auto done = update(*heap_a_, root, "v2", 0);
  EXPECT_EQ(done.row.result, RowResult::kOk);
  EXPECT_TRUE(done.chained);
  EXPECT_EQ(done.tid.block, root.block);
  EXPECT_EQ(chain(*heap_a_, root, a_.snapshot(1)), "v2");
  EXPECT_EQ(chain(*heap_b_, root, b_.snapshot()), "v1");
  a_.commit();
  EXPECT_EQ(chain(*heap_b_, root, b_.snapshot()), "v2");
  EXPECT_EQ(chain(*heap_b_, root, old), "v1");
  EXPECT_EQ(at(*heap_b_, root, b_.snapshot()), "-");
  EXPECT_EQ(*heap_b_->latest(root, b_.snapshot()), done.tid);
}

TEST_F(HeapTest, AnUpdateOfAnIndexedColumnIsNotChained) {
  Tid root = committed("v1");
  auto done = update(*heap_a_, root, "v2", 0, /*indexed=*/true);
  a_.commit();
  EXPECT_FALSE(done.chained);
  EXPECT_EQ(chain(*heap_b_, root, b_.snapshot()), "-");
  EXPECT_EQ(chain(*heap_b_, done.tid, b_.snapshot()), "v2");
}

TEST_F(HeapTest, AnUpdateThatDoesNotFitItsPageMoves) {
  std::string big(3000, 'x');
  Tid first = committed(big);
  Tid second = committed(big);
  ASSERT_EQ(first.block, second.block);
  auto done = update(*heap_a_, first, big + "y", 0);
  EXPECT_EQ(done.row.result, RowResult::kOk);
  EXPECT_FALSE(done.chained);
  EXPECT_NE(done.tid.block, first.block);
  a_.commit();
  EXPECT_EQ(chain(*heap_b_, done.tid, b_.snapshot()), big + "y");
  EXPECT_EQ(*heap_b_->latest(first, b_.snapshot()), done.tid);
  EXPECT_EQ(scan_all(*heap_b_, b_.snapshot()).size(), 2u);
}

TEST_F(HeapTest, OwnCommandsSeeTheirOwnDeletesAndHalloweenIsKept) {
  Tid tid = committed("v1");
  auto gone = heap_a_->remove(tid, 5);
  ASSERT_TRUE(gone.ok());
  EXPECT_EQ(gone->result, RowResult::kOk);
  EXPECT_EQ(at(*heap_a_, tid, a_.snapshot(5)), "v1");
  EXPECT_EQ(at(*heap_a_, tid, a_.snapshot(6)), "-");
  EXPECT_EQ(at(*heap_a_, tid, {.kind = SnapshotKind::kAny}), "v1");
  auto again = heap_a_->remove(tid, 5);
  EXPECT_EQ(again->result, RowResult::kSelfModified);
  EXPECT_EQ(again->conflict.cmax, 5u);
  EXPECT_EQ(heap_a_->remove(tid, 6)->result, RowResult::kInvisible);
  EXPECT_EQ(at(*heap_b_, tid, b_.snapshot()), "v1");
  a_.commit();
  EXPECT_EQ(at(*heap_b_, tid, b_.snapshot()), "-");
}

TEST_F(HeapTest, ARowMadeByTheSameCommandIsInvisibleToIt) {
  Tid tid = insert("mine", 7);
  EXPECT_EQ(heap_a_->remove(tid, 7)->result, RowResult::kInvisible);
  EXPECT_EQ(heap_a_->lock({.tid = tid, .command = 7}, buffer_.bytes)->row.result, RowResult::kInvisible);
  EXPECT_EQ(heap_a_->lock({.tid = tid, .command = 8}, buffer_.bytes)->row.result, RowResult::kOk);
  EXPECT_EQ(heap_a_->remove(tid, 8)->result, RowResult::kOk);
}

TEST_F(HeapTest, ASecondUpdaterWaitsAndThenLearnsOfTheNewVersion) {
  Tid tid = committed("v1");
  auto done = update(*heap_a_, tid, "v2", 0);
  EXPECT_EQ(update(*heap_b_, tid, "other", 0, false, /*wait=*/false).row.result, RowResult::kBeingModified);
  std::thread second([&] {
    auto late = update(*heap_b_, tid, "v3", 0);
    EXPECT_EQ(late.row.result, RowResult::kUpdated);
    EXPECT_EQ(late.row.conflict.next, done.tid);
    RowBuffer buffer;
    auto locked = heap_b_->lock({.tid = tid, .command = 0, .follow = true}, buffer.bytes);
    ASSERT_TRUE(locked.ok());
    EXPECT_EQ(locked->row.result, RowResult::kOk);
    EXPECT_TRUE(locked->traversed);
    EXPECT_EQ(locked->tid, done.tid);
    EXPECT_EQ(buffer.text(locked->bytes), "v2");
    EXPECT_EQ(update(*heap_b_, locked->tid, "v3", 0).row.result, RowResult::kOk);
    b_.commit();
  });
  b_.waiter().expect_waits(1);
  a_.commit();
  second.join();
  EXPECT_EQ(chain(*heap_a_, tid, a_.snapshot()), "v3");
}

TEST_F(HeapTest, AWaiterGoesOnWhenTheHolderRollsBack) {
  Tid tid = committed("v1");
  update(*heap_a_, tid, "v2", 0);
  std::thread second([&] {
    EXPECT_EQ(update(*heap_b_, tid, "v3", 0).row.result, RowResult::kOk);
    b_.commit();
  });
  b_.waiter().expect_waits(1);
  a_.abort();
  second.join();
  EXPECT_EQ(chain(*heap_a_, tid, a_.snapshot()), "v3");
  EXPECT_EQ(scan_all(*heap_a_, a_.snapshot()), std::vector<std::string>{"v3"});
}

TEST_F(HeapTest, ADeletedRowIsDeletedForTheNextWriter) {
  Tid tid = committed("v1");
  EXPECT_EQ(heap_a_->remove(tid, 0)->result, RowResult::kOk);
  a_.commit();
  EXPECT_EQ(heap_b_->remove(tid, 0)->result, RowResult::kDeleted);
  EXPECT_EQ(update(*heap_b_, tid, "v2", 0).row.result, RowResult::kDeleted);
}

TEST_F(HeapTest, RowLocksExcludeEachOtherAndEndWithTheTransaction) {
  Tid tid = committed("v1");
  EXPECT_EQ(heap_a_->lock({.tid = tid, .command = 0}, buffer_.bytes)->row.result, RowResult::kOk);
  EXPECT_EQ(heap_b_->lock({.tid = tid, .command = 0, .policy = WaitPolicy::kSkip}, buffer_.bytes)->row.result,
            RowResult::kWouldBlock);
  EXPECT_EQ(update(*heap_b_, tid, "v2", 0, false, false).row.result, RowResult::kBeingModified);
  EXPECT_EQ(at(*heap_b_, tid, b_.snapshot()), "v1");                     // readers do not care
  EXPECT_EQ(update(*heap_a_, tid, "v2", 0).row.result, RowResult::kOk);  // the holder may
  a_.abort();
  EXPECT_EQ(heap_b_->lock({.tid = tid, .command = 0, .policy = WaitPolicy::kSkip}, buffer_.bytes)->row.result,
            RowResult::kOk);
}

TEST_F(HeapTest, ARolledBackSavepointLeavesTheOuterLock) {
  Tid tid = committed("v1");
  EXPECT_EQ(heap_a_->lock({.tid = tid, .command = 0}, buffer_.bytes)->row.result, RowResult::kOk);
  EXPECT_TRUE(a_->sub_begin(2).ok());
  EXPECT_EQ(update(*heap_a_, tid, "v2", 1).row.result, RowResult::kOk);
  a_->sub_abort(2);
  LockRequest try_lock{.tid = tid, .command = 0, .policy = WaitPolicy::kError};
  EXPECT_EQ(heap_b_->lock(try_lock, buffer_.bytes)->row.result, RowResult::kWouldBlock);
  // Once more through another savepoint, over the remains of the first.
  EXPECT_TRUE(a_->sub_begin(2).ok());
  EXPECT_EQ(heap_a_->remove(tid, 2)->result, RowResult::kOk);
  a_->sub_abort(2);
  EXPECT_EQ(heap_b_->lock(try_lock, buffer_.bytes)->row.result, RowResult::kWouldBlock);
  EXPECT_EQ(update(*heap_a_, tid, "v3", 3).row.result, RowResult::kOk);
  a_.commit();
  EXPECT_EQ(chain(*heap_b_, tid, b_.snapshot()), "v3");
}

TEST_F(HeapTest, ASavepointsLockGoesWithIt) {
  Tid tid = committed("v1");
  EXPECT_TRUE(a_->sub_begin(2).ok());
  EXPECT_EQ(heap_a_->lock({.tid = tid, .command = 0}, buffer_.bytes)->row.result, RowResult::kOk);
  a_->sub_abort(2);
  EXPECT_EQ(heap_b_->lock({.tid = tid, .command = 0, .policy = WaitPolicy::kError}, buffer_.bytes)->row.result,
            RowResult::kOk);
}

TEST_F(HeapTest, ASavepointRestoresVersions) {
  Tid root = committed("v1");
  EXPECT_TRUE(a_->sub_begin(2).ok());
  update(*heap_a_, root, "v2", 0);
  insert("new", 1);
  a_->sub_abort(2);
  EXPECT_EQ(chain(*heap_a_, root, a_.snapshot(9)), "v1");
  EXPECT_EQ(scan_all(*heap_a_, a_.snapshot(9)).size(), 1u);
  EXPECT_EQ(update(*heap_a_, root, "v3", 9).row.result, RowResult::kOk);
  EXPECT_EQ(chain(*heap_a_, root, a_.snapshot(10)), "v3");
  a_.commit();
  EXPECT_EQ(chain(*heap_b_, root, b_.snapshot()), "v3");
}

TEST_F(HeapTest, ProbesTellUniqueChecksWhatAnEntryLeadsTo) {
  Tid root = committed("v1");
  EXPECT_EQ(heap_b_->probe(root)->kind, RowProbe::kLive);
  auto done = update(*heap_a_, root, "v2", 0);
  auto probe = heap_b_->probe(root);
  EXPECT_EQ(probe->kind, RowProbe::kRunning);
  EXPECT_EQ(probe->by.node().value, 0);
  EXPECT_EQ(heap_a_->probe(root)->kind, RowProbe::kLive);
  EXPECT_EQ(heap_a_->probe(root)->tid, done.tid);
  a_.commit();
  EXPECT_EQ(heap_b_->probe(root)->kind, RowProbe::kLive);
  EXPECT_EQ(heap_b_->probe(root)->tid, done.tid);
  EXPECT_EQ(heap_a_->remove(done.tid, 0)->result, RowResult::kOk);
  EXPECT_EQ(heap_a_->probe(root)->kind, RowProbe::kDead);
  EXPECT_EQ(heap_b_->probe(root)->kind, RowProbe::kRunning);
  a_.commit();
  probe = heap_b_->probe(root);
  EXPECT_EQ(probe->kind, RowProbe::kDead);
  Tid running = insert("w1");
  EXPECT_EQ(heap_b_->probe(running)->kind, RowProbe::kRunning);
  EXPECT_TRUE(heap_a_->abandon(running).ok());
  EXPECT_EQ(heap_b_->probe(running)->kind, RowProbe::kDead);
}

TEST_F(HeapTest, ACrosscheckSnapshotTurnsARowAway) {
  auto early = a_.snapshot();
  {
    auto tid = heap_b_->insert(TestRow("later").image(), 0);
    b_.commit();
    EXPECT_EQ(heap_a_->remove(*tid, 0, true, &early)->result, RowResult::kUpdated);
    auto late = a_.snapshot();
    EXPECT_EQ(heap_a_->remove(*tid, 0, true, &late)->result, RowResult::kOk);
  }
}

TEST_F(HeapTest, LargeRowsFitAndLargerOnesAreRefused) {
  std::string body(kRowBytesMax - kRowHeaderBytes - 1, 'z');
  Tid tid = committed(body);
  EXPECT_EQ(at(*heap_b_, tid, b_.snapshot()), body);
  EXPECT_EQ(heap_a_->insert(TestRow(body + "z").image(), 0).error(), Errc::kTooLarge);
}

TEST_F(HeapTest, ManyRowsSpreadOverManyPagesAndScansFindThemAll) {
  constexpr int kRows = 5000;
  std::vector<TestRow> rows;
  for (int i = 0; i < kRows; ++i) rows.emplace_back(std::to_string(i) + std::string(size_t(i % 100), '.'));
  std::vector<RowImage> images;
  for (auto& row : rows) images.push_back(row.image());
  std::vector<Tid> tids(kRows);
  for (size_t done = 0; done < images.size();) {
    auto count = heap_a_->multi_insert({&images[done], images.size() - done}, 0, &tids[done]);
    ASSERT_TRUE(count.ok());
    ASSERT_GT(*count, 0u);
    done += *count;
  }
  a_.commit();
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(heap_b_->insert(TestRow("b").image(), 0).ok());  // from the other node
  b_.commit();
  auto found = scan_all(*heap_b_, b_.snapshot());
  EXPECT_EQ(found.size(), kRows + 100u);
  for (int i = 0; i < kRows; i += 97) EXPECT_EQ(at(*heap_b_, tids[i], b_.snapshot()), rows[i].body.substr(1));
  EXPECT_GT(*heap_b_->used_blocks(), 20u);
  EXPECT_TRUE(*heap_b_->tid_valid(tids[0]));
  EXPECT_FALSE(*heap_b_->tid_valid({4000000, 1}));
}

TEST(HeapMap, PagesWithRoomAreCountedAsTheyAreNoted) {
  MapExtent extent{};
  for (uint32_t turn = 0; turn < 200; ++turn) {
    for (uint32_t n = 0; n < kExtentPages; ++n) extent.set_room(n, (turn * 7 + n * n * 31 + n / 3) % 16);
    for (uint32_t wanted = 1; wanted <= 15; ++wanted) {
      uint32_t expected = 0;
      for (uint32_t n = 0; n < kExtentPages; ++n) expected += extent.room_of(n) >= wanted;
      ASSERT_EQ(extent.pages_with(wanted), expected) << turn << " " << wanted;
    }
  }
}

TEST_F(HeapTest, AHotRowIsPrunedInItsPageAndItsRootStays) {
  Tid root = committed("v0");
  Tid now = root;
  for (int i = 1; i <= 2000; ++i) {
    auto done = update(*heap_a_, now, "v" + std::to_string(i), 0);
    ASSERT_EQ(done.row.result, RowResult::kOk);
    ASSERT_TRUE(done.chained) << i;
    now = done.tid;
    a_.commit();
    // A page holds what comes between two ticks of the slowest node.
    if (i % 50 == 0) {
      ASSERT_TRUE(b_->tick().ok());
    }
  }
  EXPECT_EQ(chain(*heap_b_, root, b_.snapshot()), "v2000");
  EXPECT_EQ(*heap_a_->used_blocks(), 1u);
  uint16_t roots[kLinesMax + 1];
  auto rows = std::make_unique<PageRows>();
  ASSERT_TRUE(heap_a_->read_block(root.block, a_.snapshot(), *rows).ok());
  ASSERT_TRUE(heap_a_->roots_of(*rows, roots).ok());
  EXPECT_EQ(roots[now.offset], root.offset);
}

// The line pointer of an aborted version is taken by another chain, to which the old link still points.
TEST_F(HeapTest, RootsDoNotFollowTheLinkOfAnAbortedUpdateToAStranger) {
  Tid first = committed("first");
  Tid second = committed("second");
  auto never = update(*heap_a_, first, "never", 0);
  ASSERT_TRUE(never.chained);
  a_.abort();
  ASSERT_TRUE(heap_a_->prune(first.block).ok());
  auto done = update(*heap_a_, second, "newer", 0);
  ASSERT_TRUE(done.chained);
  ASSERT_EQ(done.tid, never.tid);
  a_.commit();
  a_.pass_horizon();  // hints are final
  auto rows = std::make_unique<PageRows>();
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(heap_a_->read_block(first.block, a_.snapshot(), *rows).ok());
  RowHeader header;
  std::memcpy(&header, rows->row(done.tid.offset), sizeof header);
  ASSERT_NE(header.creator.kind(), RowTxnKind::kInserted);
  uint16_t roots[kLinesMax + 1];
  ASSERT_TRUE(heap_a_->roots_of(*rows, roots).ok());
  EXPECT_EQ(roots[first.offset], first.offset);
  EXPECT_EQ(roots[second.offset], second.offset);
  EXPECT_EQ(roots[done.tid.offset], second.offset);
}

TEST_F(HeapTest, AnOldSnapshotKeepsItsVersionsFromPrune) {
  Tid root = committed("v0");
  auto old = b_.snapshot();
  Tid now = root;
  for (int i = 1; i <= 300; ++i) {
    auto done = update(*heap_a_, now, "v" + std::to_string(i), 0);
    ASSERT_EQ(done.row.result, RowResult::kOk);
    now = done.tid;
    a_.commit();
    if (i % 50 == 0) {
      ASSERT_TRUE(heap_a_->prune(root.block).ok());
      ASSERT_EQ(chain(*heap_b_, root, old), "v0");
    }
  }
  EXPECT_EQ(scan_all(*heap_b_, old), std::vector<std::string>{"v0"});
}

TEST_F(HeapTest, GarbageOfAbortedTransactionsIsPruned) {
  Tid root = committed("v1");
  for (int i = 0; i < 500; ++i) {
    update(*heap_a_, root, "never", 0);
    a_.abort();
  }
  EXPECT_EQ(*heap_a_->used_blocks(), 1u);
  EXPECT_EQ(chain(*heap_b_, root, b_.snapshot()), "v1");
  EXPECT_EQ(scan_all(*heap_b_, b_.snapshot()), std::vector<std::string>{"v1"});
}

class Recorder final : public IndexCleaner {
 public:
  coherence::Status remove(std::span<const Tid> tids) override {
    EXPECT_TRUE(std::is_sorted(tids.begin(), tids.end()));
    dead.insert(dead.end(), tids.begin(), tids.end());
    return {};
  }
  std::vector<Tid> dead;
};

TEST_F(HeapTest, VacuumFreesWhatNobodySeesAndWaitsForSnapshotsThatMight) {
  std::vector<Tid> tids;
  for (int i = 0; i < 200; ++i) tids.push_back(insert("row " + std::to_string(i)));
  a_.commit();
  auto old = b_.snapshot();
  for (int i = 0; i < 200; i += 2) EXPECT_EQ(heap_a_->remove(tids[i], 0)->result, RowResult::kOk);
  a_.commit();
  Recorder cleaner;
  auto stats = heap_a_->vacuum(cleaner, 20);
  ASSERT_TRUE(stats.ok());
  EXPECT_EQ(stats->removed, 0u);
  EXPECT_EQ(stats->recently_dead, 100u);
  EXPECT_EQ(scan_all(*heap_b_, old).size(), 200u);
  b_->set_oldest(std::nullopt);
  a_.pass_horizon();
  stats = heap_a_->vacuum(cleaner, kPatienceMs);
  ASSERT_TRUE(stats.ok());
  EXPECT_EQ(stats->removed, 100u);
  EXPECT_EQ(stats->freed, 100u);
  EXPECT_EQ(stats->live, 100u);
  EXPECT_EQ(cleaner.dead.size(), 100u);
  EXPECT_EQ(scan_all(*heap_b_, b_.snapshot()).size(), 100u);
  b_->set_oldest(std::nullopt);
  // The places are used again.
  uint32_t blocks = *heap_a_->used_blocks();
  for (int i = 0; i < 100; ++i) insert("again");
  a_.commit();
  EXPECT_EQ(*heap_a_->used_blocks(), blocks);
  EXPECT_EQ(scan_all(*heap_b_, b_.snapshot()).size(), 200u);
}

TEST_F(HeapTest, VacuumLeavesLinePointersWhileAScanMayBeOnItsWay) {
  Tid tid = committed("gone");
  EXPECT_EQ(heap_a_->remove(tid, 0)->result, RowResult::kOk);
  a_.commit();
  a_.pass_horizon();
  auto scan = b_.snapshot();  // sees the row gone, but may hold its Tid
  Recorder cleaner;
  auto stats = heap_a_->vacuum(cleaner, 20);
  EXPECT_EQ(stats->removed, 1u);
  EXPECT_EQ(stats->freed, 0u);
  EXPECT_EQ(stats->left, 1u);
  b_->set_oldest(std::nullopt);
  EXPECT_EQ(heap_a_->vacuum(cleaner, kPatienceMs)->freed, 1u);
  (void)scan;
}

TEST_F(HeapTest, ADroppedRelationGivesItsPagesBack) {
  for (int round = 0; round < 100; ++round) {  // far more than the pool holds at once
    auto made = Heap::create(a_.txns());
    ASSERT_TRUE(made.ok()) << round;
    {
      Heap heap(a_.txns(), *made);
      for (int i = 0; i < 100; ++i) ASSERT_TRUE(heap.insert(TestRow(std::string(4000, 'x')).image(), 0).ok()) << round;
    }
    a_.commit();
    ASSERT_TRUE(Heap::drop(a_.txns(), *made).ok()) << round;
  }
}

}  // namespace engine_test
