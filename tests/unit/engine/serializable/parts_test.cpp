// Transactions of one node that hold different parts of a page: rows of a heap page, integers of a leaf.
#include "tests/unit/engine/serializable/leaves_fixture.hpp"

namespace engine_test {

using coherence::Errc;

class PartsTest : public LeavesTest {
 protected:
  PartsTest() {
    Worker maker(engine_, 0);
    Heap heap(maker.txns(), relation_);
    auto tid = heap.insert(TestRow("beside").image(), 0);
    EXPECT_TRUE(tid.ok());
    beside_ = *tid;
    EXPECT_EQ(beside_.block, row_.block);
    maker.commit();
  }
  Errc entry_leads_to(Session& reader, const Snapshot& snapshot, Tid root, Intent intent = Intent::kRead) {
    auto read = reader.heap.fetch_chain(root, snapshot, reader.buffer.bytes, intent);
    if (!read) return read.error();
    EXPECT_TRUE(read->found);
    found_ = read->tid;
    return Errc::kOk;
  }
  using Intent = coherence::Intent;
  Tid beside_, found_;
};

// serializable.rows-are-parts
TEST_F(PartsTest, WritersOfDifferentRowsGoOn) {
  Session one(*this, 0), two(*this, 0), plain(*this, 0), there(*this, 1);
  (void)one.begin();
  (void)two.begin();
  EXPECT_EQ(one.update(row_), Errc::kOk);
  EXPECT_EQ(two.update(beside_), Errc::kOk);
  EXPECT_EQ(two.update(row_), Errc::kHeld);
  EXPECT_EQ(plain.update(beside_), Errc::kHeld);  // a session that holds nothing looks at the whole page
  EXPECT_EQ(there.update(beside_), Errc::kHeld);  // and so does another node
  (void)there.begin();
  EXPECT_EQ(there.update(beside_), Errc::kHeld);
  EXPECT_EQ(one.worker.session().held_by().node, NodeId{});
  one.commit();
  EXPECT_EQ(plain.update(row_), Errc::kHeld);
  two.commit();
  EXPECT_EQ(plain.heap.remove(beside_, 1)->result, RowResult::kUpdated);
}

TEST_F(PartsTest, AllThatIsDoneToARowNeedsItsPart) {
  Session holder(*this, 0), other(*this, 0);
  for (int kind = 0; kind < 3; ++kind) {
    (void)holder.begin();
    (void)other.begin();
    auto change = [&](Session& by, Tid tid) {
      if (kind == 0) return by.update(tid);
      if (kind == 1) return by.heap.remove(tid, 1).error();
      return by.heap.lock({.tid = tid, .command = 1, .mode = RowLock::kShare}, by.buffer.bytes).error();
    };
    EXPECT_EQ(change(holder, row_), Errc::kOk) << kind;
    EXPECT_EQ(change(other, beside_), Errc::kOk) << kind;
    EXPECT_EQ(change(other, row_), Errc::kHeld) << kind;
    for (Session* session : {&holder, &other}) {
      session->worker.abort();
      session->holds.end();
    }
  }
}

TEST_F(PartsTest, AReaderOfARowStopsItsWriters) {
  Session reader(*this, 0), writer(*this, 0);
  const Snapshot seen = reader.begin();
  ASSERT_EQ(entry_leads_to(reader, seen, row_), Errc::kOk);
  (void)writer.begin();
  EXPECT_EQ(writer.update(beside_), Errc::kOk);
  EXPECT_EQ(writer.update(row_), Errc::kHeld);
  EXPECT_EQ(entry_leads_to(reader, seen, beside_), Errc::kHeld);
}

TEST_F(PartsTest, AReaderOfAPageStopsAllItsWriters) {
  Session reader(*this, 0), writer(*this, 0);
  const Snapshot seen = reader.begin();
  PageRows rows;
  ASSERT_TRUE(reader.heap.read_block(row_.block, seen, rows).ok());
  (void)writer.begin();
  EXPECT_EQ(writer.update(row_), Errc::kHeld);
  EXPECT_EQ(writer.update(beside_), Errc::kHeld);
  reader.commit();
  EXPECT_EQ(writer.update(row_), Errc::kOk);
  const Snapshot later = reader.begin();
  EXPECT_EQ(reader.heap.read_block(row_.block, later, rows).error(), Errc::kHeld);
}

TEST_F(PartsTest, RowsArePutBesideOthers) {
  Session one(*this, 0), two(*this, 0), reader(*this, 0), there(*this, 1);
  const Snapshot seen = reader.begin();
  ASSERT_EQ(entry_leads_to(reader, seen, row_), Errc::kOk);
  (void)one.begin();
  (void)two.begin();
  ASSERT_EQ(one.insert("one"), Errc::kOk);
  ASSERT_EQ(two.insert("two"), Errc::kOk);
  ASSERT_EQ(one.inserted.block, row_.block);
  ASSERT_EQ(two.inserted.block, row_.block);
  EXPECT_TRUE(two.heap.abandon(two.inserted).ok());
  PageRows rows;
  EXPECT_EQ(reader.heap.read_block(row_.block, seen, rows).error(), Errc::kHeld);
  EXPECT_EQ(two.heap.remove(row_, 1).error(), Errc::kHeld);
  EXPECT_EQ(one.heap.remove(beside_, 1)->result, RowResult::kOk);
  one.commit();
  two.commit();
  EXPECT_EQ(reader.heap.read_block(row_.block, seen, rows).error(), Errc::kConflict);
}

// A version that no entry leads to, and that a transaction has made, has no part that is held.
TEST_F(PartsTest, AReaderThatNamesAVersionReadsThePage) {
  Session reader(*this, 0), writer(*this, 0);
  const Snapshot seen = reader.begin();
  ASSERT_TRUE(reader.read(row_, seen)->found);
  (void)writer.begin();
  EXPECT_EQ(writer.update(beside_), Errc::kHeld);
}

// An entry leads to the root; a writer of the row changes its last version, which lies elsewhere on the page.
TEST_F(PartsTest, AllVersionsThatWereReadAreHeld) {
  Session maker(*this, 0), reader(*this, 0), writer(*this, 0);
  Tid last = row_;
  for (int i = 0; i < 3; ++i) {
    TestRow row("version " + std::to_string(i));
    auto done = maker.heap.update({.tid = last, .row = row.image(), .command = 1, .indexed_changed = false});
    ASSERT_TRUE(done.ok() && done->chained);
    last = done->tid;
    maker.commit();
  }
  ASSERT_NE(last.offset % 64, row_.offset % 64);
  for (const Intent intent : {Intent::kRead, Intent::kWrite}) {
    const Snapshot seen = reader.begin();
    ASSERT_EQ(entry_leads_to(reader, seen, row_, intent), Errc::kOk);
    EXPECT_EQ(found_, last);
    const Snapshot writers = writer.begin();
    EXPECT_EQ(writer.update(last), Errc::kHeld);
    EXPECT_EQ(writer.update(beside_), Errc::kOk);
    EXPECT_EQ(entry_leads_to(writer, writers, row_, Intent::kWrite), Errc::kHeld);
    writer.worker.abort();
    writer.holds.end();
    reader.commit();
  }
}

// A session that asks for housekeeping alone learns nothing that it would have to keep.
TEST_F(PartsTest, ATransactionThatJudgesWhatIsDeadHoldsNothing) {
  Session writer(*this, 0), judge(*this, 0), there(*this, 1);
  (void)writer.begin();
  ASSERT_EQ(writer.update(row_), Errc::kOk);
  for (Session* session : {&judge, &there}) {
    (void)session->begin();
    auto probe = session->heap.probe(row_, false);
    ASSERT_TRUE(probe.ok());
    EXPECT_FALSE(probe->dead_to_all);
    EXPECT_EQ(session->holds.held(), 0u);
    EXPECT_EQ(session->heap.probe(row_).error(), Errc::kHeld);
  }
  EXPECT_EQ(judge.heap.probe(beside_)->kind, RowProbe::kLive);
  EXPECT_EQ(writer.update(beside_), Errc::kHeld);
}

// blink.integers-are-parts
TEST_F(PartsTest, WritersOfDifferentIntegersGoOn) {
  Session one(*this, 0), two(*this, 0), there(*this, 1);
  (void)one.begin();
  (void)two.begin();
  EXPECT_EQ(one.put(10), Errc::kOk);
  EXPECT_EQ(two.put(11), Errc::kOk);
  EXPECT_EQ(two.put(10), Errc::kHeld);
  EXPECT_EQ(two.put(10 + 64), Errc::kHeld);  // of the same part
  (void)there.begin();
  EXPECT_EQ(there.put(12), Errc::kHeld);
  EXPECT_EQ(two.count(10, 10).error(), Errc::kHeld);
  EXPECT_EQ(*two.count(12, 12), 0);
  EXPECT_EQ(one.put(12), Errc::kHeld);
  EXPECT_EQ(two.count(9, 12).error(), Errc::kHeld);
  one.commit();
  EXPECT_EQ(two.put(10), Errc::kOk);
}

TEST_F(PartsTest, ARangeIsOfTheWholeLeaf) {
  Session reader(*this, 0), writer(*this, 0);
  (void)reader.begin();
  EXPECT_EQ(*reader.count(10, 11), 0);
  (void)writer.begin();
  EXPECT_EQ(writer.put(10), Errc::kHeld);
  EXPECT_EQ(writer.put(11), Errc::kHeld);
  EXPECT_EQ(writer.put(300), Errc::kHeld);
}

// A leaf of which others hold parts is split by a session that writes another one: they hold these parts wherever they
// go, and let go of all of them in the end.
TEST_F(PartsTest, WhatOthersHoldOfALeafIsHeldWhereverItGoes) {
  for (const bool leaves_first : {true, false}) {
    Session reader(*this, 0), has_put(*this, 0), splits(*this, 0), late(*this, 0);
    (void)reader.begin();
    (void)has_put.begin();
    (void)splits.begin();
    const uint64_t read = leaves_first ? 5000 : 15000, own = leaves_first ? 5001 : 15001;
    EXPECT_EQ(*reader.count(read, read), 0);
    ASSERT_EQ(has_put.put(own), Errc::kOk);
    const uint64_t pages = *splits.tree.pages(splits.worker.session());
    const uint64_t from = leaves_first ? 0 : 10000;
    for (uint64_t i = from; i < from + 10000 && *splits.tree.pages(splits.worker.session()) < pages + 6; ++i)
      if (i % 64 != read % 64 && i % 64 != own % 64) {
        ASSERT_EQ(splits.put(i), Errc::kOk) << i;
      }
    ASSERT_GE(*splits.tree.pages(splits.worker.session()), pages + 6);
    if (leaves_first) splits.commit();
    (void)late.begin();
    EXPECT_EQ(late.put(read), Errc::kHeld);
    EXPECT_EQ(late.count(own, own).error(), Errc::kHeld);
    has_put.commit();
    EXPECT_EQ(*late.count(own, own), 1);
    EXPECT_EQ(late.put(read), Errc::kHeld);
    reader.commit();
    EXPECT_EQ(late.put(read), Errc::kOk);
    if (!leaves_first) splits.commit();
    late.commit();
    EXPECT_EQ(tables_[0]->used(), 0u);
  }
}

// What a transaction was given by another one's split it passes on by its own.
TEST_F(PartsTest, GivenPartsArePassedOn) {
  Session reader(*this, 0), first(*this, 0), second(*this, 0), late(*this, 0);
  (void)reader.begin();
  (void)first.begin();
  (void)second.begin();
  EXPECT_EQ(*reader.count(40, 40), 0);
  auto fill = [&](Session& by, uint64_t from, uint64_t more) {
    const uint64_t pages = *by.tree.pages(by.worker.session());
    for (uint64_t i = from; *by.tree.pages(by.worker.session()) < pages + more; i += 64)
      ASSERT_EQ(by.put(i), Errc::kOk) << i;
  };
  fill(first, 41, 2);
  fill(second, 42, 4);
  // The reader writes where it has read; what it has read goes on with the split.
  fill(reader, 40 + 64, 4);
  (void)late.begin();
  EXPECT_EQ(late.put(40), Errc::kHeld);
  for (Session* session : {&first, &second, &reader}) session->commit();
  EXPECT_EQ(late.put(40), Errc::kOk);
  late.commit();
}

// A holder of a part to write erases there what is dead to all.  Else what the reader has read would be another leaf's.
TEST_F(PartsTest, ALeafOfWhichOthersHoldPartsStaysInTheTree) {
  Session maker(*this, 0), reader(*this, 0), writer(*this, 0), late(*this, 0);
  for (uint64_t i = 0; i < 3000; ++i) ASSERT_EQ(maker.put(i), Errc::kOk);
  (void)reader.begin();
  (void)writer.begin();
  EXPECT_EQ(*reader.count(1500, 1500), 1);
  EXPECT_EQ(writer.put(1501), Errc::kOk);
  AllEntries all;
  ASSERT_TRUE(writer.tree.remove_if(writer.worker.session(), all).ok());
  (void)late.begin();
  EXPECT_EQ(late.put(1500), Errc::kHeld);
  EXPECT_EQ(late.put(1501), Errc::kHeld);
  EXPECT_EQ(late.put(1502), Errc::kOk);
}

}  // namespace engine_test
