// What a serializable transaction holds, which sessions that stops, and until when.
#include <thread>

#include "extension/engine/reclaim/reclaimer.hpp"
#include "tests/unit/engine/serializable/holds_fixture.hpp"

namespace engine_test {

using coherence::Errc;

TEST_F(HoldsTest, WhatIsReadIsWrittenByNobodyUntilTheEnd) {
  Actor reader(*this, 0), here(*this, 0), there(*this, 1);
  ASSERT_TRUE(reader.read(row_, reader.begin())->found);
  EXPECT_EQ(here.update(row_), Errc::kHeld);
  EXPECT_EQ(there.update(row_), Errc::kHeld);
  for (Actor* writer : {&here, &there}) EXPECT_EQ(writer->worker.session().held_by().node, NodeId{0});
  reader.commit();
  EXPECT_EQ(there.update(row_), Errc::kOk);
  there.commit();
}

TEST_F(HoldsTest, AWaiterGoesOnWhenTheHolderHasEnded) {
  Actor reader(*this, 0), here(*this, 0), there(*this, 1);
  for (Actor* writer : {&here, &there}) {
    ASSERT_TRUE(reader.read(row_, reader.begin()).ok());
    const int before = writer->worker.waiter().waits;
    EXPECT_EQ(writer->update(row_), Errc::kHeld);
    std::thread waits([&] { EXPECT_TRUE(writer->holds.wait().ok()); });
    writer->worker.waiter().expect_waits(before + 1);
    reader.commit();
    waits.join();
    EXPECT_TRUE(gcl_test::eventually([&] { return writer->update(row_) != Errc::kHeld; }));
    writer->worker.abort();
  }
}

// A writer of node 0 was refused by a hold of node 1, and then by one of its own node.
class BehindTest : public HoldsTest {
 protected:
  static constexpr int kWhileItComes = 20;  // pauses
  void refuse_twice() {
    ASSERT_TRUE(first_.read(row_, first_.begin())->found);
    EXPECT_EQ(writer_.update(row_), Errc::kHeld);
    ASSERT_TRUE(second_.read(row_, second_.begin())->found);
    first_.commit();
    EXPECT_EQ(writer_.update(row_), Errc::kHeld);
    EXPECT_EQ(writer_.worker.session().held_by().node, NodeId{0});
    EXPECT_TRUE(gcl_test::eventually([&] { return is_given_up(); }));  // a claim is answered before the latch ends
  }
  // Whether node 1 has no share any more of the page whose writer it has refused.
  bool is_given_up() {
    auto& node = engine_.cluster().pool(1).coherence_node();
    for (uint32_t i = 0; i < node.frames(); ++i)
      if (node.line(i).refused_writer()) return node.line(i).msi() == coherence::MsiState::kInvalid;
    return false;
  }
  std::atomic<int>& pauses() { return late_.worker.waiter().pauses; }
  Actor first_{*this, 1}, second_{*this, 0}, late_{*this, 1}, writer_{*this, 0};
};

TEST_F(BehindTest, AReaderStandsBehindAWriterThatAnotherNodeRefuses) {
  refuse_twice();
  std::thread waits([&] { EXPECT_TRUE(writer_.holds.wait().ok()); });
  EXPECT_TRUE(gcl_test::eventually([&] { return *late_.worker->holds_are_wanted(NodeSet::of(NodeId{0})); }));
  std::thread reads([&] { EXPECT_TRUE(late_.read(row_, late_.begin())->found); });
  EXPECT_TRUE(gcl_test::eventually([&] { return pauses() > 3 * kWhileItComes; }));
  second_.commit();
  waits.join();
  reads.join();
}

TEST_F(BehindTest, AReaderGoesOnIfNobodyWaits) {
  refuse_twice();
  ASSERT_TRUE(late_.read(row_, late_.begin())->found);
  EXPECT_LE(pauses(), 2 * kWhileItComes);
  EXPECT_GT(pauses(), 0);
}

TEST_F(BehindTest, AReaderGoesOnWhenTheWriterHasComeAndGone) {
  refuse_twice();
  second_.commit();
  EXPECT_EQ(writer_.update(row_), Errc::kOk);
  writer_.commit();
  ASSERT_TRUE(second_.read(row_, second_.begin()).ok());
  ASSERT_TRUE(late_.read(row_, late_.begin()).ok());
  EXPECT_EQ(pauses(), 0);
}

// Its reader holds pages of it still, and no lock of the host's (a savepoint's went with it).
TEST_F(HoldsTest, APageOfADroppedRelationIsFreedWhenItsHolderHasEnded) {
  Actor reader(*this, 0), drops(*this, 0), frees(*this, 0);
  ASSERT_TRUE(reader.read(row_, reader.begin())->found);
  const Dropped dropped[] = {{ReclaimKind::kTable, relation_.header}};
  std::span<const Dropped> rest = dropped;
  ASSERT_TRUE(ReclaimList(drops.worker.txns()).add(*drops.worker->id_for_write(), rest).ok());
  drops.commit();
  Reclaimer reclaimer(frees.worker.txns());
  const auto steps = [&] {
    coherence::Result<bool> more = true;
    for (int i = 0; i < 1000 && more && *more; ++i) more = reclaimer.step();
    EXPECT_FALSE(reclaimer.take_failure());
    return more.error();
  };
  EXPECT_EQ(steps(), Errc::kHeld);
  EXPECT_TRUE(*Reclaimer::due_anywhere(frees.worker.txns()));
  reader.commit();
  EXPECT_EQ(steps(), Errc::kOk);
  frees.worker->release_session_lock();
  EXPECT_FALSE(*Reclaimer::due_anywhere(frees.worker.txns()));
}

TEST_F(HoldsTest, ReadersHoldTogetherAndNeitherWrites) {
  Actor one(*this, 0), two(*this, 0), three(*this, 1);
  for (Actor* reader : {&one, &two, &three}) ASSERT_TRUE(reader->read(row_, reader->begin())->found);
  for (Actor* writer : {&one, &two, &three}) EXPECT_EQ(writer->update(row_), Errc::kHeld);
  one.commit();
  three.commit();
  EXPECT_EQ(two.update(row_), Errc::kOk);
  two.commit();
}

// serializable.one-upgrader
TEST_F(HoldsTest, OfReadersOfOneNodeThatWriteTheFirstWaits) {
  Actor one(*this, 0), two(*this, 0);
  for (Actor* reader : {&one, &two}) ASSERT_TRUE(reader->read(row_, reader->begin())->found);
  EXPECT_EQ(one.update(row_), Errc::kHeld);
  EXPECT_EQ(two.update(row_), Errc::kUpgrade);
  two.worker.abort();
  two.holds.end();
  EXPECT_EQ(one.update(row_), Errc::kOk);
  one.commit();
}

// serializable.upgraders-of-nodes
TEST_F(HoldsTest, OfReadersOfTwoNodesThatWriteTheFirstWaits) {
  Actor one(*this, 0), two(*this, 1);
  Holder& second = tables_[1]->holder(two.worker.session().id().value);
  for (Actor* reader : {&one, &two}) ASSERT_TRUE(reader->read(row_, reader->begin())->found);
  EXPECT_EQ(one.update(row_), Errc::kHeld);
  EXPECT_EQ(two.update(row_), Errc::kHeld) << "nobody is known to wait for it yet";
  second.note_wanted();
  EXPECT_EQ(two.update(row_), Errc::kUpgrade);
  two.worker.abort();
  two.holds.end();
  EXPECT_EQ(one.update(row_), Errc::kOk);
  one.commit();
}

TEST_F(HoldsTest, AReaderThatIsWantedForAnotherPageWaits) {
  Actor one(*this, 0), two(*this, 1);
  for (Actor* reader : {&one, &two}) ASSERT_TRUE(reader->read(row_, reader->begin())->found);
  tables_[1]->holder(two.worker.session().id().value).note_wanted();
  EXPECT_EQ(two.update(row_), Errc::kHeld) << "no writer of this page was refused here";
  one.commit();
  EXPECT_TRUE(gcl_test::eventually([&] { return two.update(row_) != Errc::kHeld; }));
  two.commit();
}

TEST_F(HoldsTest, WhatIsWrittenIsReadBySnapshotsOnly) {
  Actor writer(*this, 0), reader(*this, 1), serial(*this, 1), here(*this, 0);
  const Snapshot seen = writer.begin();
  ASSERT_TRUE(writer.read(row_, seen)->found);
  ASSERT_EQ(writer.update(row_), Errc::kOk);
  for (Actor* other : {&reader, &here}) {
    auto read = other->read(row_, other->worker.snapshot());
    ASSERT_TRUE(read.ok());
    EXPECT_EQ(other->buffer.text(read->bytes), "old");
  }
  const Snapshot before = serial.begin();
  EXPECT_EQ(serial.read(row_, before).error(), Errc::kHeld);
  PageRows rows;
  EXPECT_TRUE(reader.heap.read_block(row_.block, reader.worker.snapshot(), rows).ok());
  EXPECT_EQ(rows.count, 1);
  writer.commit();
  EXPECT_EQ(serial.read(row_, before).error(), Errc::kConflict);
  EXPECT_EQ(serial.heap.read_block(row_.block, before, rows).error(), Errc::kConflict);
}

TEST_F(HoldsTest, ARowThatIsNewerThanTheSnapshotIsAConflict) {
  Actor serial(*this, 0), other(*this, 0);
  const Snapshot before = serial.begin();
  ASSERT_EQ(other.insert("newer"), Errc::kOk);
  PageRows rows;
  if (other.inserted.block == row_.block) {
    EXPECT_TRUE(serial.heap.read_block(row_.block, before, rows).ok());  // its maker runs, and is not serializable
    EXPECT_EQ(rows.count, 1);
  }
  other.commit();
  ASSERT_EQ(other.inserted.block, row_.block);
  EXPECT_EQ(serial.heap.read_block(row_.block, before, rows).error(), Errc::kConflict);
  EXPECT_EQ(serial.read(other.inserted, before).error(), Errc::kConflict);
  EXPECT_TRUE(serial.read(row_, before)->found);  // of an older row nothing has changed
}

TEST_F(HoldsTest, ARowThatWasRolledBackIsNone) {
  Actor serial(*this, 0), other(*this, 1);
  const Snapshot before = serial.begin();
  ASSERT_EQ(other.update(row_), Errc::kOk);
  other.worker.abort();
  EXPECT_TRUE(serial.read(row_, before)->found);
}

// It may be one whose holds went with its node (serializable.doubt-is-waited-for).
TEST_F(HoldsTest, APreparedWriterIsWaitedFor) {
  for (const bool scans : {false, true}) {
    SCOPED_TRACE(scans);
    Actor serial(*this, 0), other(*this, 1);
    const Snapshot before = serial.begin();
    ASSERT_EQ(other.insert("doubtful"), Errc::kOk);
    ASSERT_TRUE(other.worker->prepare(7).ok());
    const int waits = serial.worker.waiter().waits;
    serial.worker.waiter().on_wait = [&] { other.commit(); };
    PageRows rows;
    const Errc error = scans ? serial.heap.read_block(other.inserted.block, before, rows).error()
                             : serial.read(other.inserted, before).error();
    EXPECT_EQ(error, Errc::kConflict);
    EXPECT_EQ(serial.worker.waiter().waits, waits + 1);
  }
}

TEST_F(HoldsTest, WhileAllRowsAreReadNoPageComes) {
  Actor reader(*this, 0), there(*this, 1), here(*this, 0);
  const Snapshot seen = reader.begin();
  ASSERT_TRUE(reader.heap.hold_map().ok());
  ASSERT_EQ(*reader.heap.used_blocks(), 1u);
  PageRows rows;
  ASSERT_TRUE(reader.heap.read_block(reader.heap.block_at(0), seen, rows).ok());
  EXPECT_EQ(there.insert(), Errc::kHeld);  // its node has no map yet
  EXPECT_EQ(here.insert(), Errc::kHeld);   // the page
  EXPECT_EQ(here.insert(std::string(4000, 'x')), Errc::kHeld);
  EXPECT_EQ(*here.heap.used_blocks(), 1u);
  reader.commit();
  EXPECT_EQ(there.insert(), Errc::kOk);
  EXPECT_EQ(here.insert(), Errc::kOk);
  there.commit();
  here.commit();
}

TEST_F(HoldsTest, ATransactionThatOnlyReadsLeavesNoTrace) {
  Actor reader(*this, 0);
  const uint64_t aborted = *reader.worker->aborted_pages();
  for (const bool commits : {true, false}) {
    ASSERT_TRUE(reader.read(row_, reader.begin()).ok());
    const TxnId id = reader.worker->current().top();
    ASSERT_TRUE(id.valid());
    EXPECT_TRUE(reader.worker->current().only_holds());
    if (commits) reader.worker.commit();
    if (!commits) reader.worker.abort();
    reader.holds.end();
    Worker asks(engine_, 1);
    auto status = asks->status(id);
    ASSERT_TRUE(status.ok());
    EXPECT_TRUE(status->committed());
    EXPECT_EQ(status->cts, kFrozenCts);
  }
  EXPECT_EQ(*reader.worker->aborted_pages(), aborted);
}

TEST_F(HoldsTest, AReaderThatThenWritesIsAnOrdinaryWriter) {
  Actor serial(*this, 0), other(*this, 1);
  ASSERT_TRUE(serial.read(row_, serial.begin()).ok());
  const TxnId id = serial.worker->current().top();
  ASSERT_EQ(serial.update(row_, "mine"), Errc::kOk);
  EXPECT_EQ(serial.worker->current().top(), id);
  EXPECT_FALSE(serial.worker->current().only_holds());
  const Cts cts = serial.commit();
  EXPECT_GT(cts, kFrozenCts);
  auto status = other.worker->status(id);
  EXPECT_EQ(status->cts, cts);
}

TEST_F(HoldsTest, HousekeepingSkipsWhatIsHeld) {
  Actor garbage(*this, 0), reader(*this, 0), there(*this, 1);
  ASSERT_EQ(garbage.insert("gone"), Errc::kOk);
  garbage.commit();
  ASSERT_EQ(garbage.heap.remove(garbage.inserted, 1)->result, RowResult::kOk);
  garbage.commit();
  for (Actor* actor : {&garbage, &there}) actor->worker.pass_horizon();
  const Snapshot seen = reader.begin();
  ASSERT_TRUE(reader.read(row_, seen).ok());
  NoIndexes none;
  for (Actor* cleaner : {&garbage, &there}) {
    auto stats = cleaner->heap.vacuum(none, 0);
    ASSERT_TRUE(stats.ok());
    EXPECT_FALSE(stats->held);
    EXPECT_EQ(stats->removed, 0u);
  }
  ASSERT_TRUE(reader.heap.hold_map().ok());
  EXPECT_TRUE(there.heap.vacuum(none, 0)->held);
  reader.commit();
  reader.worker->set_oldest(std::nullopt);
  EXPECT_EQ(there.heap.vacuum(none, 0)->removed, 1u);
}

struct HasHeld final : IndexCleaner {
  coherence::Status remove(std::span<const Tid>) override { return Errc::kHeld; }
};

TEST_F(HoldsTest, EntriesThatStayKeepTheirLinePointers) {
  Actor garbage(*this, 0);
  ASSERT_EQ(garbage.insert("gone"), Errc::kOk);
  garbage.commit();
  ASSERT_EQ(garbage.heap.remove(garbage.inserted, 1)->result, RowResult::kOk);
  garbage.commit();
  garbage.worker.pass_horizon();
  HasHeld held;
  auto stats = garbage.heap.vacuum(held, kPatienceMs);
  ASSERT_TRUE(stats.ok());
  EXPECT_EQ(stats->freed, 0u);
  EXPECT_EQ(stats->left, 1u);
  NoIndexes none;
  EXPECT_EQ(garbage.heap.vacuum(none, kPatienceMs)->freed, 1u);
}

TEST_F(HoldsTest, ThereIsABound) {
  Actor serial(*this, 0);
  serial.holds.begin(2);
  Snapshot seen = serial.worker.snapshot(1);
  seen.strict = true;
  ASSERT_TRUE(serial.heap.hold_map().ok());
  EXPECT_EQ(serial.holds.held(), 2u);
  EXPECT_EQ(serial.read(row_, seen).error(), Errc::kNoHolds);
  serial.heap.set_holds(false, false);  // a lock on the table
  EXPECT_TRUE(serial.read(row_, seen)->found);
}

}  // namespace engine_test
