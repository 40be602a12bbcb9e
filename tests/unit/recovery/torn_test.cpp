// A ring's records on images that a write-back has left half done (log.ring-has-bytes, repair.version-written-last).
#include "coherence/session/write_back.hpp"
#include "tests/support/longer.hpp"
#include "tests/support/pool_bytes.hpp"
#include "tests/support/random_change.hpp"
#include "tests/unit/recovery/replay.hpp"

namespace recovery_test {
namespace {

using bufmgr::BufferPool;
using bufmgr::PageId;
using bufmgr::RecordStep;
using coherence::kPageSize;
using gcl_test::Cluster;
using gcl_test::random_change;

constexpr uint32_t kVersionBytes = 8;

bool has_copies(const Record& record) {
  bufmgr::RecordReader reader(record);
  while (reader.next_page())
    while (const RecordStep* step = reader.next_step())
      if (step->kind == RecordStep::kCopy) return true;
  return false;
}

class Torn : public ::testing::Test {
 protected:
  // What is in the pool, before some changes, and what the pages are after them.
  Torn() : session_(cluster_.session(0)), random_(gcl_test::seed(21)) {
    pages_ = gcl_test::pages_of_two_memory_nodes(pool(), *session_, 6);
    for (int i = 0; i < 20; ++i) random_change(pool(), *session_, pages_, random_);
    begin_again();
  }
  BufferPool& pool() { return cluster_.pool(0); }
  // Writes all back.
  void begin_again() {
    for (const PageId id : pages_) {
      coherence::Line* line = pool().find(id);
      EXPECT_TRUE(session_->push_redo().ok());  // a changed page leaves behind it
      ASSERT_TRUE(session_->coherence().write_back(*line, id).ok());
      old_[id.raw] = in_pool(id);
    }
    logged_ = cluster_.log(0).records().size();
    sequence_ = pool().ring().head();
  }
  PageBytes in_pool(PageId id) {
    PageBytes image;
    memcpy(image.bytes, gcl_test::pool_bytes(pool().coherence_pool(), id), kPageSize);
    return image;
  }
  void change(int times) {
    for (int i = 0; i < times; ++i) random_change(pool(), *session_, pages_, random_);
    for (const PageId id : pages_) copy_to(pool(), *session_, id, &new_[id.raw]);
  }
  std::vector<Record> since(std::vector<Record> records) const {
    std::erase_if(records, [&](const Record& r) { return bufmgr::RecordReader(r).header().sequence < sequence_; });
    return records;
  }
  std::vector<Record> from_ring() { return since(ring_of(pool(), *session_, {0})); }
  std::vector<Record> from_log() {
    auto all = cluster_.log(0).records();
    return {all.begin() + ptrdiff_t(logged_), all.end()};
  }
  // Any parts of the new page, in pieces of so many bytes, in the old one.
  PageBytes torn(PageId id, uint32_t piece) {
    PageBytes image = old_[id.raw];
    const auto odds = random_() % 5;  // of the pieces, from none to all
    for (uint32_t at = 0; at < kPageSize; at += piece)
      if (random_() % 4 < odds) memcpy(image.bytes + at, new_[id.raw].bytes + at, piece);
    memcpy(image.bytes, old_[id.raw].bytes, kVersionBytes);
    return image;
  }
  // How many pages are not what they should be.
  int wrong_after(const std::vector<Record>& records, uint32_t piece) {
    Images images;
    for (const PageId id : pages_) images[id.raw] = torn(id, piece);
    replay(images, records);
    int wrong = 0;
    for (const PageId id : pages_) wrong += memcmp(images[id.raw].bytes, new_[id.raw].bytes, kPageSize) != 0;
    return wrong;
  }

  Cluster cluster_{{.nodes = 1, .frames = 128, .keep_records = true}};
  std::unique_ptr<bufmgr::Session> session_;
  std::mt19937_64 random_;
  std::vector<PageId> pages_;
  Images old_, new_;
  size_t logged_ = 0;
  uint64_t sequence_ = 0;
};

TEST_F(Torn, TheRingMakesThePageOutOfAnyImage) {
  int wrong_by_log = 0, copies = 0;
  for (int round = 0; round < 60 * gcl_test::longer(); ++round) {
    change(1 + round % 7);
    const auto ring = from_ring(), log = from_log();
    ASSERT_EQ(ring.size(), log.size());
    for (const Record& record : ring) EXPECT_FALSE(has_copies(record));
    for (const Record& record : log) copies += has_copies(record);
    for (const uint32_t piece : {64u, 8u, 1u}) {
      EXPECT_EQ(wrong_after(ring, piece), 0) << "round " << round << ", pieces of " << piece;
      wrong_by_log += wrong_after(log, piece);
    }
    begin_again();
  }
  EXPECT_GT(copies, 10);
  EXPECT_GT(wrong_by_log, 0);  // what copies make of a torn image
}

// What the product writes, cut at any operation.
TEST_F(Torn, AWriteBackThatEndsAnywhereLeavesSuchAnImage) {
  change(2);
  for (const PageId id : pages_) {  // in a few places
    bufmgr::MiniTransaction few(pool(), *session_);
    ASSERT_TRUE(few.reserve(64).ok());
    auto page = pool().fix_exclusive(*session_, id);
    ASSERT_TRUE(page.ok());
    few.join(*page);
    for (int i = 0; i < 3; ++i) few.set(*page, 64 + 8 * uint32_t(random_() % 1000), random_());
    few.commit();
  }
  change(0);
  const auto ring = from_ring();
  int cuts = 0;
  for (const PageId id : pages_) {
    coherence::Batch batch(id.node());
    coherence::add_write_back(pool().coherence_node().parts(), batch, *pool().find(id));
    PageBytes image = old_[id.raw];
    for (int i = 0; i < batch.size(); ++i, ++cuts) {
      Images one;
      one[id.raw] = image;
      replay(one, ring);
      EXPECT_EQ(memcmp(one[id.raw].bytes, new_[id.raw].bytes, kPageSize), 0) << "before operation " << i;
      const coherence::Op& op = batch.op(i);
      const uint64_t at = op.at.raw - pool().coherence_pool().page_address(id).raw;
      ASSERT_LE(at + op.bytes, kPageSize);
      memcpy(image.bytes + at, op.local, op.bytes);
      EXPECT_EQ(image.header().version == new_[id.raw].header().version, i == batch.size() - 1);
      EXPECT_TRUE(i < batch.size() - 1 || op.bytes == kVersionBytes);
    }
    EXPECT_EQ(memcmp(image.bytes, new_[id.raw].bytes, kPageSize), 0);
    ASSERT_TRUE(session_->memory().run(batch).ok());  // it took the line's marks: nobody else would write the page
    coherence::written_back(*pool().find(id));
  }
  EXPECT_GT(cuts, 12);
}

// A survivor that confirms a dead node's early grant writes all of the page: cut before its end, it says that it is
// old.
TEST_F(Torn, AWholePageSaysThatItIsNewWhenAllOfItIs) {
  change(20);
  int newer = 0;
  for (const PageId id : pages_) {
    coherence::Batch batch(id.node());
    coherence::add_whole_page(pool().coherence_node().parts(), batch, *pool().find(id));
    PageBytes image = old_[id.raw];
    for (int i = 0; i < batch.size(); ++i) {
      EXPECT_EQ(image.header().version, old_[id.raw].header().version) << "before operation " << i;
      const coherence::Op& op = batch.op(i);
      const uint64_t at = op.at.raw - pool().coherence_pool().page_address(id).raw;
      ASSERT_LE(at + op.bytes, kPageSize);
      EXPECT_EQ(at < kVersionBytes, i == batch.size() - 1);
      EXPECT_TRUE(at >= kVersionBytes || op.bytes == kVersionBytes) << "the bytes of one WRITE are in no order";
      memcpy(image.bytes + at, op.local, op.bytes);
    }
    EXPECT_EQ(memcmp(image.bytes, new_[id.raw].bytes, kPageSize), 0);
    newer += image.header().version != old_[id.raw].header().version;
  }
  EXPECT_GT(newer, 1);
}

// Twelve moves of nearly all of a page: more bytes than the page has, in one record.
TEST_F(Torn, CopiesThatOverlapTakeNoMoreThanThePage) {
  const PageId id = pages_[0];
  {
    bufmgr::MiniTransaction move(pool(), *session_);
    ASSERT_TRUE(move.reserve(kPageSize).ok());
    auto page = pool().fix_exclusive(*session_, id);
    ASSERT_TRUE(page.ok());
    move.join(*page);
    for (uint32_t i = 0; i < bufmgr::kMiniCopiesMax; ++i) move.move(*page, 48 + 8 * i, 40, 8000);
    move.zero(*page, 4000, 100);
    move.set(*page, 4050, uint64_t{77});
    move.commit();
  }
  for (const PageId any : pages_) copy_to(pool(), *session_, any, &new_[any.raw]);
  const auto ring = from_ring(), log = from_log();
  ASSERT_EQ(ring.size(), 1u);
  EXPECT_TRUE(has_copies(log[0]));
  EXPECT_LT(log[0].size(), 300u);
  EXPECT_FALSE(has_copies(ring[0]));
  EXPECT_LT(ring[0].size(), kPageSize + 64);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(wrong_after(ring, 64), 0);
  EXPECT_EQ(session_->counts().get(bufmgr::Count::kOverdrafts), 0u);
}

}  // namespace
}  // namespace recovery_test
