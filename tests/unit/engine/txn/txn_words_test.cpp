// The pure parts: ids, status words, creators and deleters, where words lie.
#include <gtest/gtest.h>

#include "extension/engine/heap/heap_page.hpp"
#include "extension/engine/txn/txn_status.hpp"
#include "extension/engine/txn/txn_words.hpp"

namespace engine {

TEST(TxnId, HoldsNodeAndSequence) {
  constexpr TxnId id = TxnId::make({5}, 123456789);
  static_assert(id.node().value == 5 && id.sequence() == 123456789 && id.valid());
  EXPECT_EQ(RowTxn::of(RowTxnKind::kUpdatedKey, id).id(), id);
  EXPECT_EQ(StatusWord::sub(id).parent(), id);
}

TEST(StatusWord, OfARunningIdIsItsAlone) {
  const TxnId first = TxnId::make({5}, 7), next = TxnId::make({5}, 7 + (1 << 20));  // the same place in a ring
  EXPECT_NE(StatusWord::committing({9}, first), StatusWord::committing({9}, next));
  EXPECT_NE(StatusWord::active({9}, first), StatusWord::active({8}, first));
  EXPECT_EQ(StatusWord::prepared({60000}, next).session().value, 60000);
  EXPECT_EQ(StatusWord::committing({9}, TxnId::make({5}, ~uint64_t{0})).state(), TxnState::kCommitting);
}

TEST(TxnWords, NoTwoWordsShareAPlace) {
  const TxnWords words({coherence::PoolAddress::at({0}, 4096), 64 << 10},
                       {coherence::PoolAddress::at({0}, 1 << 20), 8 * 1024 * 8}, 8, ~0u);
  EXPECT_EQ(words.slots(), 1024u);
  EXPECT_LT(words.bound({7}).offset(), words.reserved({0}).offset());
  EXPECT_LT(words.swept({7}).offset(), words.watch({0}, {0}).offset());
  EXPECT_LT(words.swept({0}).offset(), words.reserved({1}).offset());
  EXPECT_LT(words.reclaim_root({0}).offset(), words.swept({0}).offset());
  EXPECT_EQ(words.watch({1}, {0}).offset() - words.watch({0}, {0}).offset(), words.sessions() * 8u);
  const coherence::SessionId last{uint16_t(words.sessions() - 1)};
  EXPECT_LT(words.watch({7}, last).offset(), words.session_lock({0}, {0}).offset());
  EXPECT_LT(words.session_lock({7}, last).offset(), words.speculation({0}, {0}).offset());
  EXPECT_LE(words.speculation({7}, last).offset() + 8, 4096u + (64 << 10));
  EXPECT_EQ(words.status(TxnId::make({3}, 5)), words.status(TxnId::make({3}, 5 + 1024)));
  EXPECT_EQ(words.status(TxnId::make({7}, 1023)).offset() + 8, (1u << 20) + 8 * 1024 * 8);
}

TEST(RowHeader, KeepsOffsetAttributesAndFlagsApart) {
  RowHeader row{};
  row.set(291, 1600, kHasNull | kHeapOnly);
  EXPECT_EQ(row.next_offset(), 291);
  EXPECT_EQ(row.natts(), 1600);
  EXPECT_TRUE(row.heap_only());
  EXPECT_EQ(row.flags(), kHasNull | kHeapOnly);
}

TEST(RowHeader, SaysACommandOrABlockElsewhere) {
  RowHeader row{};
  row.set(291, 1600, 15);
  row.word = kOutOfLine;
  row.set_command(kCommandMax);
  EXPECT_FALSE(row.far());
  EXPECT_EQ(row.command(), kCommandMax);
  EXPECT_EQ(row.next(5), (Tid{5, 291}));
  row.set_far(kCommandMax);
  EXPECT_TRUE(row.far() && row.out_of_line());
  EXPECT_EQ(row.next(5), (Tid{kCommandMax, 291}));
  row.set_command(0);
  EXPECT_TRUE(!row.far() && row.out_of_line());
  EXPECT_EQ(row.pack(), 291u | 1600u << 9 | 15u << 20);
}

TEST(RowTxn, OfADeleterKeepsKindOuterLockAndIdApart) {
  const TxnId last = TxnId::make({63}, ~uint64_t{0});
  for (RowLock outer : {RowLock::kKeyShare, RowLock::kShare, RowLock::kNoKeyExclusive, RowLock::kExclusive}) {
    for (RowLock mode : {RowLock::kKeyShare, RowLock::kShare, RowLock::kNoKeyExclusive, RowLock::kExclusive}) {
      const RowTxn lock = RowTxn::lock(mode, last, OuterLock::of(outer));
      EXPECT_EQ(lock.kind(), RowTxnKind::kLocked);
      EXPECT_EQ(lock.lock_mode(), mode);
      EXPECT_EQ(lock.outer(), OuterLock::of(outer));
      EXPECT_EQ(lock.id(), last);
    }
    const RowTxn end = RowTxn::of(RowTxnKind::kUpdatedKey, last, OuterLock::of(outer));
    EXPECT_EQ(end.kind(), RowTxnKind::kUpdatedKey);
    EXPECT_EQ(end.outer(), OuterLock::of(outer));
    EXPECT_EQ(end.id(), last);
  }
  EXPECT_EQ(RowTxn::of(RowTxnKind::kDeleted, last).outer(), OuterLock{});
  EXPECT_EQ(RowTxn::of(RowTxnKind::kCommitted, (uint64_t{1} << 60) - 1).cts().value, (uint64_t{1} << 60) - 1);
}

TEST(HeapLine, IsSaneOnlyIfAReadersBufferHoldsTheRow) {
  EXPECT_TRUE(Line::normal(40, kRowBytesMax).sane());
  EXPECT_FALSE(Line::normal(32, kRowBytesMax + 1).sane());
  EXPECT_FALSE(Line::normal(32, 8160).sane());
}

TEST(HeapLine, IsSaneOnlyInsideThePage) {
  EXPECT_TRUE(Line::normal(8192 - 40, 40).sane());
  EXPECT_FALSE(Line::normal(8192 - 40, 41).sane());
  EXPECT_FALSE(Line::normal(8, 40).sane());
  EXPECT_FALSE(Line::redirect(3).sane());
  EXPECT_EQ(Line::redirect(291).offset(), 291u);
}

}  // namespace engine
