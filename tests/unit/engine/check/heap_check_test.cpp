// The checker of tables: silent about what the engine makes, and a message for each way in which a page can be wrong.
#include "extension/engine/check/heap_check.hpp"
#include "extension/engine/check/page_check.hpp"
#include "extension/engine/heap/lock_page.hpp"
#include "tests/unit/engine/check/damage.hpp"
#include "tests/unit/engine/heap/heap_fixture.hpp"

namespace engine_test {

class HeapCheckTest : public HeapTest {
 protected:
  // What the checker says, of maps, lock pages and blocks, as of a snapshot taken now (or `seen`).
  std::string check(const Snapshot* seen = nullptr) {
    Worker& reader = b_;
    const Snapshot snapshot = seen != nullptr ? *seen : reader.snapshot();
    HeapCheck check(reader.txns(), relation_, snapshot, 1);
    auto findings = std::make_unique<Findings>();
    EXPECT_TRUE(check.maps().check(*findings).ok());
    for (uint32_t i = 0; i < check.maps().extents(); ++i)
      EXPECT_TRUE(check.maps().check_locks(i, check.limits(), *findings).ok());
    for (uint32_t i = 0; i < check.maps().blocks().size(); ++i) EXPECT_TRUE(check.check_block(i, *findings).ok());
    if (seen == nullptr) reader->set_oldest(std::nullopt);
    return told(*findings);
  }
  std::string entry(Tid tid) {
    const Snapshot snapshot = b_.snapshot();
    HeapCheck check(b_.txns(), relation_, snapshot, 1);
    Findings findings;
    EXPECT_TRUE(check.maps().check(findings).ok());
    EXPECT_TRUE(check.check_entry(tid, {}, findings).ok());
    b_->set_oldest(std::nullopt);
    return told(findings);
  }
  PageId page_of(uint32_t block) {
    MapCheck maps(a_.txns(), relation_);
    Findings findings;
    EXPECT_TRUE(maps.check(findings).ok());
    return maps.page_of(block);
  }
  PageId map_page() {
    alignas(8) std::byte bytes[coherence::kPageSize];
    EXPECT_TRUE(a_->pool().copy_page(a_.session(), relation_.header, bytes).ok());
    return RelationPage::page_of(reinterpret_cast<const RelationPage*>(bytes)->map[0]);
  }
  template <class T>
  T read(PageId page, size_t offset) {
    alignas(8) std::byte bytes[coherence::kPageSize];
    EXPECT_TRUE(a_->pool().copy_page(a_.session(), page, bytes).ok());
    T value;
    std::memcpy(&value, bytes + offset, sizeof value);
    return value;
  }
  template <class T>
  void write(PageId page, size_t offset, const T& value) {
    damage(a_->pool(), a_.session(), page, offset, value);
  }
  Line line(Tid tid) { return read<Line>(page_of(tid.block), HeapPage::line_offset(tid.offset)); }
  void set_line(Tid tid, Line line) { write(page_of(tid.block), HeapPage::line_offset(tid.offset), line); }
  RowHeader row(Tid tid) { return read<RowHeader>(page_of(tid.block), line(tid).offset()); }
  void set_row(Tid tid, const RowHeader& row) { write(page_of(tid.block), line(tid).offset(), row); }
  Tid updated(Tid tid, const std::string& text, bool indexed = false) {
    auto done = update(*heap_a_, tid, text, 0, indexed);
    a_.commit();
    return done.tid;
  }
};

// --- what is sound ---------------------------------------------------------------------------------------------------

TEST_F(HeapCheckTest, SaysNothingOfATableWithRowsOfAllKinds) {
  Tid first = committed("one"), second = committed("two");
  updated(first, "one more");
  updated(second, "two more", true);
  update(*heap_a_, committed("three"), "rolled back", 0);
  a_.abort();
  insert("rolled back");
  a_.abort();
  const Tid gone = committed("gone");
  EXPECT_EQ(heap_a_->remove(gone, 0)->result, RowResult::kOk);
  a_.commit();
  const Tid locked = committed("locked");
  EXPECT_TRUE(heap_a_->lock({.tid = locked, .command = 0, .mode = RowLock::kKeyShare}, buffer_.bytes).ok());
  RowBuffer other;
  EXPECT_TRUE(heap_b_->lock({.tid = locked, .command = 0, .mode = RowLock::kKeyShare}, other.bytes).ok());
  insert("running");
  EXPECT_EQ(check(), "");
  a_.commit();
  b_.commit();
  NoIndexes none;
  b_.pass_horizon();
  EXPECT_TRUE(heap_a_->vacuum(none, 1000).ok());
  EXPECT_EQ(check(), "");
}

TEST_F(HeapCheckTest, SaysNothingOfAnEntryWhoseRowIsThereOrDead) {
  const Tid tid = committed("one");
  EXPECT_EQ(entry(tid), "");
  set_line(tid, Line::dead());
  EXPECT_EQ(entry(tid), "");
}

// --- line pointers and rows ------------------------------------------------------------------------------------------

TEST_F(HeapCheckTest, FindsAnEntryWithoutARow) {
  const Tid tid = committed("one");
  const Tid next = updated(tid, "two");
  expect_told(entry({tid.block, 200}), "index entry points to item 200 of block 0, which is unused");
  expect_told(entry({4711, 1}), "index entry points to block 4711, which the table does not have");
  expect_told(entry(next), "a heap-only version");
}

TEST_F(HeapCheckTest, FindsALinePointerThatLeadsOutOfItsPage) {
  const Tid tid = committed("one");
  set_line(tid, Line::normal(16, 40));
  expect_told(check(), "line pointer to offset 16 with length 40 is outside of the page's rows");
}

TEST_F(HeapCheckTest, FindsRowsThatOverlap) {
  const Tid tid = committed("one"), other = committed("two");
  set_line(other, line(tid));
  expect_told(check(), "overlaps that of item 1");
}

TEST_F(HeapCheckTest, FindsARedirectionToNoRow) {
  const Tid tid = committed("one"), other = committed("two");
  set_line(tid, Line::redirect(77));
  expect_told(check(), "line pointer redirection to item at offset 77 exceeds maximum offset 2");
  set_line(tid, Line::redirect(tid.offset));
  expect_told(check(), "line pointer redirection to item at offset 1, which is no row");
  set_line(tid, Line::redirect(other.offset));
  expect_told(check(), "line pointer redirection to item at offset 2, which begins a chain of its own");
}

TEST_F(HeapCheckTest, FindsALinePointerThatIsHalfDead) {
  const Tid tid = committed("one");
  set_line(tid, Line{Line::dead().raw | 8});
  expect_told(check(), "line pointer without a row has offset 8 and length 0");
}

TEST_F(HeapCheckTest, FindsAnUnusedLinePointerThatNothingFinds) {
  const Tid tid = committed("one");
  committed("two");
  set_line(tid, Line::unused());
  expect_told(check(), "line pointer is unused, but the page says that none is");
}

TEST_F(HeapCheckTest, FindsFreeBytesThatNothingFinds) {
  const Tid tid = committed("one");
  committed("two");
  set_line(tid, Line::dead());
  expect_told(check(), "bytes among the rows are free, but the page says that none are");
}

TEST_F(HeapCheckTest, FindsARowWithTooManyAttributes) {
  const Tid tid = committed("one");
  RowHeader wrong = row(tid);
  wrong.set(wrong.next_offset(), 300, wrong.flags());
  set_row(tid, wrong);
  expect_told(check(), "number of attributes 300 exceeds maximum expected for table 1");
}

TEST_F(HeapCheckTest, FindsARowThatEndsBeforeItsData) {
  const Tid tid = committed("one");
  set_line(tid, Line::normal(line(tid).offset(), kRowHeaderBytes));
  expect_told(check(), "data begins at offset 24 beyond the row's length 23");
}

TEST_F(HeapCheckTest, FindsAPageWithoutEnds) {
  const Tid tid = committed("one");
  write(page_of(tid.block), offsetof(PageHeader, upper), uint16_t{44});
  expect_told(check(), "line pointers end at 44, rows begin at 44");
  write(page_of(tid.block), offsetof(PageHeader, lower), uint16_t{8000});
  expect_told(check(), "line pointers end at 8000");
}

TEST_F(HeapCheckTest, FindsUnknownFlagsOfAPage) {
  const Tid tid = committed("one");
  write(page_of(tid.block), offsetof(PageHeader, flags), uint16_t{0x40});
  expect_told(check(), "page has unknown flags 64");
}

TEST_F(HeapCheckTest, FindsAnotherRelationsPage) {
  const Tid tid = committed("one");
  write(page_of(tid.block), offsetof(PageHeader, relation), uint32_t{4711});
  expect_told(check(), "page says that it belongs to relation 4711");
}

TEST_F(HeapCheckTest, FindsAPageOfAnotherType) {
  const Tid tid = committed("one");
  write(page_of(tid.block), offsetof(PageHeader, type), PageType::kBlinkLeaf);
  expect_told(check(), "page is of type 8 instead of 5");
}

TEST_F(HeapCheckTest, FindsAChecksumInMemory) {
  const Tid tid = committed("one");
  write(page_of(tid.block), offsetof(PageHeader, checksum), uint32_t{1});
  expect_told(check(), "page has a checksum, which only pages on durable storage have");
}

TEST(PageCheck, FindsContentThatNothingHasMade) {
  alignas(8) std::byte page[coherence::kPageSize]{};
  auto& header = *reinterpret_cast<PageHeader*>(page);
  header.type = PageType::kHeap;
  header.relation = 7;
  Findings findings;
  check_header(page, PageType::kHeap, 7, {}, findings);
  expect_told(told(findings), "page has content, but no change has ever been made to it");
  findings.clear();
  header.version = 1;
  check_header(page, PageType::kHeap, 7, {}, findings);
  EXPECT_EQ(told(findings), "");
}

// --- transactions ----------------------------------------------------------------------------------------------------

TEST_F(HeapCheckTest, FindsCreatorsThatNeverWere) {
  const Tid tid = committed("one");
  RowHeader wrong = row(tid);
  wrong.creator = RowTxn::of(RowTxnKind::kInserted, TxnId::make(NodeId{0}, 1'000'000));
  set_row(tid, wrong);
  expect_told(check(), "creating transaction 1000000 of node 0 has never been assigned");
  wrong.creator = RowTxn::of(RowTxnKind::kInserted, TxnId::make(NodeId{61}, 1));
  set_row(tid, wrong);
  expect_told(check(), "creating transaction 1 of node 61 has never been assigned");
  wrong.creator = RowTxn::of(RowTxnKind::kDeleted, TxnId::make(NodeId{0}, 1));
  set_row(tid, wrong);
  expect_told(check(), "has no meaning");
}

TEST_F(HeapCheckTest, FindsACommitOfTheFuture) {
  const Tid tid = committed("one");
  RowHeader wrong = row(tid);
  wrong.creator = RowTxn::of(RowTxnKind::kCommitted, 1'000'000'000);
  set_row(tid, wrong);
  expect_told(check(), "creating transaction committed at 1000000000, which is in the future");
}

TEST_F(HeapCheckTest, FindsDeletersThatNeverWere) {
  const Tid tid = committed("one");
  RowHeader wrong = row(tid);
  wrong.deleter = RowTxn::of(RowTxnKind::kDeleted, TxnId::make(NodeId{1}, 1'000'000));
  set_row(tid, wrong);
  expect_told(check(), "deleting transaction 1000000 of node 1 has never been assigned");
  wrong.deleter = RowTxn::of(RowTxnKind::kFrozen);
  set_row(tid, wrong);
  expect_told(check(), "deleter word 0x7000000000000000 has no meaning");
}

TEST_F(HeapCheckTest, FindsADeletionOfWhatNeverWas) {
  const Tid tid = committed("one");
  EXPECT_EQ(heap_a_->remove(tid, 0)->result, RowResult::kOk);
  a_.commit();
  RowHeader wrong = row(tid);
  wrong.creator = RowTxn::of(RowTxnKind::kAborted);
  set_row(tid, wrong);
  expect_told(check(), "version was deleted by a committed transaction, but its creation was rolled back");
}

TEST_F(HeapCheckTest, FindsADeletionBeforeTheCreation) {
  auto held = b_.snapshot();
  const Tid tid = committed("one");
  EXPECT_EQ(heap_a_->remove(tid, 0)->result, RowResult::kOk);
  a_.commit();
  committed("later");
  const Cts later = *a_->take_snapshot();
  RowHeader wrong = row(tid);
  wrong.creator = RowTxn::of(RowTxnKind::kCommitted, later.value);
  set_row(tid, wrong);
  expect_told(check(&held), "before it was created at");
}

TEST_F(HeapCheckTest, FindsADeletionWhileTheCreatorRuns) {
  const Tid gone = committed("one");
  EXPECT_EQ(heap_a_->remove(gone, 0)->result, RowResult::kOk);
  const RowTxn deleter = row(gone).deleter;
  a_.commit();
  const Tid tid = *heap_b_->insert(TestRow("running").image(), 0);
  RowHeader wrong = row(tid);
  wrong.deleter = deleter;
  set_row(tid, wrong);
  Worker other(engine_, 0);  // not the one that runs
  HeapCheck check(other.txns(), relation_, other.snapshot(), 1);
  auto findings = std::make_unique<Findings>();
  EXPECT_TRUE(check.maps().check(*findings).ok());
  for (uint32_t i = 0; i < check.maps().blocks().size(); ++i) EXPECT_TRUE(check.check_block(i, *findings).ok());
  expect_told(told(*findings), "version was deleted by a committed transaction, but its creator still runs");
}

// --- chains and successors -------------------------------------------------------------------------------------------

TEST_F(HeapCheckTest, FindsAVersionThatNoChainReaches) {
  const Tid tid = committed("one");
  RowHeader wrong = row(tid);
  wrong.set(wrong.next_offset(), wrong.natts(), wrong.flags() | kHeapOnly);
  set_row(tid, wrong);
  expect_told(check(), "heap-only version is not reached by any chain of the page");
}

TEST_F(HeapCheckTest, FindsAChainWithoutItsNextVersion) {
  const Tid tid = committed("one"), other = committed("other");
  updated(tid, "two");
  RowHeader wrong = row(tid);
  wrong.set(other.offset, wrong.natts(), wrong.flags());
  set_row(tid, wrong);
  const std::string said = check();
  expect_told(said, "version was updated to item 2, which is not its successor");
  expect_told(said, "heap-only version is not reached");
}

TEST_F(HeapCheckTest, FindsAVersionOfTwoChains) {
  const Tid tid = committed("one"), other = committed("other");
  updated(tid, "two");
  const RowHeader ended = row(tid);
  RowHeader wrong = row(other);
  wrong.deleter = ended.deleter;
  wrong.word = ended.word;
  wrong.set(ended.next_offset(), ended.natts(), ended.flags());
  set_row(other, wrong);
  expect_told(check(), "version belongs to the chains of item 1 and item 2");
}

TEST_F(HeapCheckTest, FindsAChainThatRunsInACircle) {
  const Tid tid = committed("one");
  const Tid second = update(*heap_a_, tid, "two", 0).tid;
  const Tid third = update(*heap_a_, second, "three", 1).tid;
  a_.commit();
  RowHeader wrong = row(third);
  wrong.deleter = row(second).deleter;
  wrong.set(second.offset, wrong.natts(), wrong.flags() | kChainUpdated);
  set_row(third, wrong);
  expect_told(check(), "chain of item 1 runs in a circle");
}

TEST_F(HeapCheckTest, FindsASuccessorThatIsGone) {
  const Tid tid = committed("one");
  auto before = b_.snapshot();
  const Tid next = updated(tid, "two", true);
  EXPECT_EQ(check(&before), "");
  RowHeader wrong = row(next);
  wrong.creator = RowTxn::of(RowTxnKind::kFrozen);
  wrong.set(wrong.next_offset(), wrong.natts(), wrong.flags());
  const RowHeader ended = row(tid);
  set_row(next, wrong);
  RowHeader elsewhere = ended;
  elsewhere.set(tid.offset, ended.natts(), ended.flags());
  set_row(tid, elsewhere);
  expect_told(check(&before), "version was updated to item 1 of block 0, which is not its successor");
  elsewhere.set_far(4711);
  set_row(tid, elsewhere);
  expect_told(check(&before), "version was updated to item 1 of block 4711, which is not its successor");
}

TEST_F(HeapCheckTest, FindsADeletedVersionWithASuccessor) {
  const Tid tid = committed("one");
  EXPECT_EQ(heap_a_->remove(tid, 0)->result, RowResult::kOk);
  a_.commit();
  RowHeader wrong = row(tid);
  wrong.set(9, wrong.natts(), wrong.flags());
  set_row(tid, wrong);
  expect_told(check(), "deleted version names item 9 as its successor");
}

// --- maps ------------------------------------------------------------------------------------------------------------

TEST_F(HeapCheckTest, FindsAHeaderThatIsNone) {
  committed("one");
  write(relation_.header, offsetof(RelationPage, magic), uint32_t{7});
  expect_told(check(), "header page has magic number 0x7");
  write(relation_.header, offsetof(RelationPage, maps), uint32_t{5000});
  expect_told(check(), "header page names 5000 map pages");
}

TEST_F(HeapCheckTest, FindsAMapOfAnotherNode) {
  committed("one");
  write(map_page(), offsetof(ExtentMapPage, owner), uint32_t{1});
  expect_told(check(), "map page is node 1's, but the header page says node 0's");
}

TEST_F(HeapCheckTest, FindsAMapThatThePoolDoesNotHave) {
  committed("one");
  write(relation_.header, offsetof(RelationPage, map), uint64_t{1} << 39);
  expect_told(check(), "which the pool does not have");
}

TEST_F(HeapCheckTest, FindsExtentsThatCannotBe) {
  committed("one");
  const PageId map = map_page();
  const MapExtent good = read<MapExtent>(map, offsetof(ExtentMapPage, extent));
  MapExtent wrong = good;
  wrong.used = 65;
  write(map, offsetof(ExtentMapPage, extent), wrong);
  expect_told(check(), "extent 0 has 65 pages in use");
  wrong = good;
  wrong.set_room(20, 7);
  write(map, offsetof(ExtentMapPage, extent), wrong);
  expect_told(check(), "page 20 of extent 0 is not in use, but has room");
  write(map, offsetof(ExtentMapPage, extent), good);
  write(map, offsetof(ExtentMapPage, extents), uint32_t{161});
  expect_told(check(), "map page has 161 extents");
}

TEST_F(HeapCheckTest, FindsAPageThatIsTwoBlocks) {
  for (int i = 0; i < 3; ++i) committed(std::string(5000, 'x'));
  const PageId map = map_page();
  write(map, offsetof(ExtentMapPage, single) + sizeof(ShortPageId),
        read<ShortPageId>(map, offsetof(ExtentMapPage, single)));
  expect_told(check(), "page is also block");
}

TEST_F(HeapCheckTest, FindsABlockThatThePoolDoesNotHave) {
  committed("one");
  write(map_page(), offsetof(ExtentMapPage, single), ShortPageId::of(PageId{uint64_t{1} << 39}));
  expect_told(check(), "block 0 is a page that the pool does not have");
}

TEST_F(HeapCheckTest, FindsAPageThatIsInUseButFree) {
  const PageId page = page_of(committed("one").block);
  EXPECT_EQ(check(), "");
  alignas(8) std::byte bytes[coherence::kPageSize];
  EXPECT_TRUE(a_->pool().copy_page(a_.session(), page, bytes).ok());
  EXPECT_TRUE(a_->pool().free(a_.session(), page, 1).ok());
  expect_told(check(), "page is in use, but free in the pool's map of pages");
  EXPECT_TRUE(a_->pool().allocate(a_.session(), 1).ok());
}

TEST_F(HeapCheckTest, FindsAnExtentThatBeginsInTheMiddleOfOne) {
  const std::string big(5000, 'x');
  for (uint32_t i = 0; i < kExtentPages + 1; ++i) insert(big);
  a_.commit();
  EXPECT_EQ(check(), "");
  const PageId map = map_page();
  const size_t at = offsetof(ExtentMapPage, extent) + sizeof(MapExtent) + offsetof(MapExtent, first);
  write(map, at, read<uint64_t>(map, at) + 3);
  expect_told(check(), "extent 1 begins at a page that no extent begins at");
}

// --- lock pages ------------------------------------------------------------------------------------------------------

class LockPagesCheck : public HeapCheckTest {
 protected:
  LockPagesCheck() : tid_(committed("one")) {
    EXPECT_TRUE(heap_a_->lock({.tid = tid_, .command = 0, .mode = RowLock::kKeyShare}, buffer_.bytes).ok());
    RowBuffer other;
    EXPECT_TRUE(heap_b_->lock({.tid = tid_, .command = 0, .mode = RowLock::kKeyShare}, other.bytes).ok());
    directory_ = read<MapExtent>(map_page(), offsetof(ExtentMapPage, extent)).lock_directory();
    locks_ = {read<uint64_t>(directory_, offsetof(LockDirectory, first))};
  }
  ~LockPagesCheck() override {
    a_.commit();
    b_.commit();
  }
  Tid tid_;
  PageId directory_, locks_;
};

TEST_F(LockPagesCheck, FindsLocksThatCannotBe) {
  EXPECT_EQ(check(), "");
  LockEntry wrong = read<LockEntry>(locks_, offsetof(LockPage, entry));
  wrong.line = 500;
  write(locks_, offsetof(LockPage, entry), wrong);
  expect_told(check(), "lock entry 0 is no lock of a row: item 500");
  wrong.line = 1;
  wrong.id = TxnId::make(NodeId{0}, 1'000'000).raw;
  write(locks_, offsetof(LockPage, entry), wrong);
  expect_told(check(), "lock entry 0 is no lock of a row: item 1");
  write(locks_, offsetof(LockPage, used), uint32_t{0});
  expect_told(check(), "lock entry 0 is taken, but the page says that there are 0");
  write(locks_, offsetof(LockPage, used), uint32_t{600});
  expect_told(check(), "lock page has 600 entries");
}

TEST_F(LockPagesCheck, FindsLockPagesInACircle) {
  write(locks_, offsetof(LockPage, next), locks_.raw);
  expect_told(check(), "lock pages are linked in a circle");
}

TEST_F(LockPagesCheck, FindsAnotherPageInTheirPlace) {
  write(directory_, offsetof(LockDirectory, first), page_of(tid_.block).raw);
  expect_told(check(), "page is of type 5 instead of 9");
}

}  // namespace engine_test
