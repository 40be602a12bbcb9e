// What every Memory does, whatever carries it: run on shm here.
#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <vector>

#include "coherence/transport/shm/shm_memory.hpp"

namespace coherence {

class MemoryContract : public testing::Test {
 protected:
  static PoolAddress at(uint64_t offset) { return PoolAddress::at(MemoryNodeId{0}, offset); }
  alignas(64) std::byte pool_[16384] = {};
  Counters counters_{};
  ShmMemory shm_{pool_, counters_};
  Memory& memory = shm_;
};

TEST_F(MemoryContract, OperationsOfABatchRunInOrder) {
  uint64_t seven = 7, read = 0;
  Batch batch(MemoryNodeId{0});
  batch.write(at(64), &seven, 8);
  int add = batch.faa(at(64), 1);
  int load = batch.load(at(64));
  batch.read(at(64), &read, 8);
  memory.post(batch);
  memory.wait(batch);
  EXPECT_TRUE(batch.known());
  EXPECT_EQ(batch.op(add).old, 7u);
  EXPECT_EQ(batch.op(load).old, 8u);
  EXPECT_EQ(read, 8u);
}

TEST_F(MemoryContract, ACompareAndSwapSaysWhatWasThere) {
  EXPECT_EQ(memory.cas(at(0), 0, 5), 0u);
  EXPECT_EQ(memory.cas(at(0), 0, 6), 5u);
  EXPECT_EQ(memory.load(at(0)), 5u);
  EXPECT_EQ(memory.faa(at(0), ~uint64_t{0}), 5u);
  EXPECT_EQ(memory.load(at(0)), 4u);
}

TEST_F(MemoryContract, AReadBehindAFailedSwapIsSkipped) {
  uint64_t one = 1, read = 99;
  memory.cas(at(0), 0, 5);
  Batch batch(MemoryNodeId{0});
  int swap = batch.cas(at(0), 0, 6);
  batch.read(at(128), &read, 8, OnlyIf::kCasSucceeded);
  memory.post(batch);
  memory.wait(batch);
  EXPECT_FALSE(batch.cas_succeeded(swap));
  EXPECT_EQ(read, 99u);
  Batch again(MemoryNodeId{0});
  again.write(at(128), &one, 8);
  memory.post(again);
  Batch third(MemoryNodeId{0});
  third.cas(at(0), 5, 6);
  third.read(at(128), &read, 8, OnlyIf::kCasSucceeded);
  memory.post(third);
  EXPECT_EQ(read, 1u);
}

TEST_F(MemoryContract, AReadBehindAHeldWordIsSkipped) {
  uint64_t read = 99;
  memory.faa(at(0), uint64_t{3} << 58);
  Batch batch(MemoryNodeId{0});
  batch.faa(at(0), 1);
  batch.read(at(128), &read, 8, OnlyIf::kNoHolder);
  memory.post(batch);
  EXPECT_EQ(read, 99u);
}

TEST_F(MemoryContract, AtomicsOfManySessionsAllCount) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; t++)
    threads.emplace_back([&] {
      auto counters = std::make_unique<Counters>();
      ShmMemory mine(pool_, *counters);
      for (int i = 0; i < 1000; i++) static_cast<Memory&>(mine).faa(at(256), 1);
    });
  for (auto& t : threads) t.join();
  EXPECT_EQ(memory.load(at(256)), 4000u);
}

}  // namespace coherence
