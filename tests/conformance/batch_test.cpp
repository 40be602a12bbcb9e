// What one batch does, and several at once: transport.batch-in-order, transport.poll-until-done.
#include "contract.hpp"

namespace conformance {

INSTANTIATE_TEST_SUITE_P(Transport, MemoryContract, testing::ValuesIn(transports()), kind_name);

TEST_P(MemoryContract, OperationsOfABatchRunInOrder) {
  set_word(local(), 7);
  Batch batch(kZero);
  batch.write(at(64), local(), 8);
  int add = batch.faa(at(64), 1);
  int swap = batch.cas(at(64), 8, 20);
  int load = batch.load(at(64));
  batch.read(at(64), local(8), 8);
  run(batch);
  EXPECT_EQ(batch.op(add).old, 7u);
  EXPECT_EQ(batch.op(swap).old, 8u);
  EXPECT_EQ(batch.op(load).old, 20u);
  EXPECT_EQ(word(local(8)), 20u);
}

TEST_P(MemoryContract, AFullBatchRunsInOrder) {
  Batch batch(kOne);
  while (!batch.full()) batch.faa(at(8, kOne), 1);
  EXPECT_EQ(batch.size(), kBatchOpsMax);
  run(batch);
  for (int i = 0; i < batch.size(); i++) EXPECT_EQ(batch.op(i).old, uint64_t(i));
}

TEST_P(MemoryContract, ACompareAndSwapSaysWhatWasThere) {
  EXPECT_EQ(*memory().cas(at(0), 0, 5), 0u);
  EXPECT_EQ(*memory().cas(at(0), 0, 6), 5u) << "nothing is swapped";
  EXPECT_EQ(*memory().load(at(0)), 5u);
  EXPECT_EQ(*memory().cas(at(0), 5, ~uint64_t{0}), 5u);
  EXPECT_EQ(*memory().load(at(0)), ~uint64_t{0});
}

TEST_P(MemoryContract, AnAdditionWrapsAndStaysInItsWord) {
  write_word(at(8), 3);
  EXPECT_EQ(*memory().faa(at(0), ~uint64_t{0}), 0u);
  EXPECT_EQ(*memory().faa(at(0), 2), ~uint64_t{0});
  EXPECT_EQ(*memory().load(at(0)), 1u);
  EXPECT_EQ(*memory().faa(at(0), uint64_t{1} << 63), 1u);
  EXPECT_EQ(*memory().faa(at(0), uint64_t{1} << 63), uint64_t{1} << 63 | 1);
  EXPECT_EQ(*memory().load(at(0)), 1u) << "no carry is left";
  EXPECT_EQ(*memory().load(at(8)), 3u) << "nor does it reach the neighbour";
}

// The condition asks for the value *before* operation 0.  A transport that ignores conditions reads what is there.
TEST_P(MemoryContract, AReadWhoseConditionHoldsIsDone) {
  write_word(at(128), 4711);
  Batch swap(kZero);
  int cas = swap.cas(at(0), 0, 6);
  swap.read(at(128), local(0), 8, OnlyIf::kCasSucceeded);
  run(swap);
  EXPECT_TRUE(swap.cas_succeeded(cas));
  EXPECT_EQ(word(local(0)), 4711u);
  Batch add(kZero);
  add.faa(at(8), uint64_t{1} << 58);  // free before, held afterwards
  add.read(at(128), local(8), 8, OnlyIf::kNoOwner);
  run(add);
  EXPECT_EQ(word(local(8)), 4711u);
  Batch readers(kZero);
  write_word(at(16), (uint64_t{1} << 58) - 1);  // every reader's bit, no owner
  readers.load(at(16));
  readers.read(at(128), local(16), 8, OnlyIf::kNoOwner);
  run(readers);
  EXPECT_EQ(word(local(16)), 4711u);
}

TEST_P(MemoryContract, AReadWhoseConditionFailsIsSkippedOrReadsWhatIsThere) {
  write_word(at(128), 4711);
  EXPECT_TRUE(memory().cas(at(0), 0, 5));
  EXPECT_TRUE(memory().faa(at(8), uint64_t{1} << 58));
  auto unwanted = [&](uint32_t i) {
    if (GetParam().keeps_unwanted) return word(local(i)) == 99;
    return word(local(i)) == 99 || word(local(i)) == 4711;
  };
  for (uint32_t i = 0; i < 24; i += 8) set_word(local(i), 99);
  Batch swap(kZero);
  int cas = swap.cas(at(0), 0, 6);
  swap.read(at(128), local(0), 8, OnlyIf::kCasSucceeded);
  swap.read(at(128), local(24), 8);  // asks for nothing
  run(swap);
  EXPECT_FALSE(swap.cas_succeeded(cas));
  EXPECT_TRUE(unwanted(0));
  EXPECT_EQ(word(local(24)), 4711u);
  Batch add(kZero);
  add.faa(at(8), -(uint64_t{1} << 58));  // held before, free afterwards
  add.read(at(128), local(8), 8, OnlyIf::kNoOwner);
  run(add);
  EXPECT_TRUE(unwanted(8));
  write_word(at(8), uint64_t{63} << 58);
  Batch load(kZero);
  load.load(at(8));
  load.read(at(128), local(16), 8, OnlyIf::kNoOwner);
  run(load);
  EXPECT_TRUE(unwanted(16));
}

TEST_P(MemoryContract, ReadsAndWritesTakeAnyLengthUpToAPageAndTouchNothingElse) {
  std::byte* from = local(0);
  std::byte* to = local(16384);
  for (uint32_t i = 0; i < kPageSize; i++) from[i] = std::byte(i * 7 + 1);
  constexpr std::byte kGuard{0xee}, kPoolGuard{0xdd};
  for (uint32_t bytes : {1u, 2u, 7u, 8u, 9u, 63u, 64u, 65u, 1000u, 4096u, kPageSize - 1, kPageSize})
    for (uint32_t shift : {0u, 1u, 8u, 13u}) {
      // Pool and destination are filled with guards first.
      memset(to, int(kPoolGuard), kPageSize + 64);
      for (uint32_t i = 0; i < 2 * kPageSize; i += kPageSize) {
        Batch fill(kOne);
        fill.write(at(i, kOne), to, kPageSize);
        run(fill);
      }
      memset(to, int(kGuard), kPageSize + 64);
      Batch batch(kOne);
      batch.write(at(64 + shift, kOne), from, bytes);
      batch.read(at(64 + shift, kOne), to + 32 - shift, bytes);
      run(batch);
      EXPECT_EQ(memcmp(to + 32 - shift, from, bytes), 0) << bytes << " bytes at " << shift;
      EXPECT_EQ(to[32 - shift - 1], kGuard);
      EXPECT_EQ(to[32 - shift + bytes], kGuard);
      Batch around(kOne);
      around.read(at(64 + shift - 1, kOne), to, 1);
      around.read(at(64 + shift + bytes, kOne), to + 1, 1);
      run(around);
      EXPECT_EQ(to[0], kPoolGuard) << bytes << " bytes at " << shift;
      EXPECT_EQ(to[1], kPoolGuard) << bytes << " bytes at " << shift;
    }
}

TEST_P(MemoryContract, MemoryNodesAreApart) {
  write_word(at(256, kZero), 10);
  write_word(at(256, kOne), 20);
  EXPECT_EQ(*memory().faa(at(256, kOne), 1), 20u);
  EXPECT_EQ(*memory().cas(at(256, kZero), 10, 11), 10u);
  EXPECT_EQ(*memory().load(at(256, kOne)), 21u);
  EXPECT_EQ(*memory().load(at(256, kZero)), 11u);
  Batch last(kOne);  // to the end of its memory
  last.read(at(kMemoryBytes - kPageSize, kOne), local(), kPageSize);
  run(last);
}

TEST_P(MemoryContract, ABatchGoesToOneMemoryNode) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  Batch batch(kZero);
  EXPECT_DEATH(batch.faa(at(0, kOne), 1), "VERIFY");
  EXPECT_EQ(batch.size(), 0);
}

// Post and completion are apart, in whatever order batches are asked; between batches there is no order, so each has
// words of its own.
TEST_P(MemoryContract, SeveralBatchesArePostedAtOnce) {
  constexpr int kBatches = 8;
  std::unique_ptr<Batch> batch[kBatches];
  Batch* all[kBatches];
  for (int i = 0; i < kBatches; i++) {
    MemoryNodeId node{uint8_t(i % kMemoryNodes)};
    batch[i] = std::make_unique<Batch>(node);
    all[i] = batch[i].get();
    EXPECT_EQ(all[i]->state.load(), BatchState::kOpen);
    EXPECT_FALSE(all[i]->done());
    set_word(local(uint32_t(i) * 16), uint64_t(i) + 100);
    all[i]->write(at(uint64_t(i) * 64, node), local(uint32_t(i) * 16), 8);
    all[i]->faa(at(uint64_t(i) * 64, node), 1000);
    all[i]->read(at(uint64_t(i) * 64, node), local(uint32_t(i) * 16 + 8), 8);
    all[i]->faa(at(4096, node), 1);  // shared by all of this memory node
  }
  memory().post(all, kBatches);
  for (Batch* b : all) EXPECT_TRUE(b->done() || !GetParam().done_in_post);
  for (int i = kBatches; i-- > 0;) EXPECT_TRUE(memory().wait(*all[i]));
  for (int i = 0; i < kBatches; i++) {
    EXPECT_TRUE(all[i]->known());
    EXPECT_EQ(all[i]->op(1).old, uint64_t(i) + 100);
    EXPECT_EQ(word(local(uint32_t(i) * 16 + 8)), uint64_t(i) + 1100);
  }
  for (uint8_t n = 0; n < kMemoryNodes; n++)
    EXPECT_EQ(*memory().load(at(4096, MemoryNodeId{n})), uint64_t(kBatches / kMemoryNodes));
  memory().poll();  // with nothing posted
}

}  // namespace conformance
