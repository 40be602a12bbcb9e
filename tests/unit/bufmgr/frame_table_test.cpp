#include "bufmgr/frame/frame_table.hpp"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/syscall.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "bufmgr/frame/free_list.hpp"
#include "bufmgr/frame/replacement.hpp"
#include "tests/support/cluster_fixture.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/processes.hpp"

namespace bufmgr {
namespace {

struct FreeMemory {
  void operator()(void* at) const { ::free(at); }
};
std::unique_ptr<void, FreeMemory> zeroed(size_t bytes) {
  void* at = aligned_alloc(64, (bytes + 63) / 64 * 64);
  memset(at, 0, bytes);
  return std::unique_ptr<void, FreeMemory>(at);
}
const std::atomic<uint32_t> nobody_died{0};
PageId numbered(uint64_t n) { return PageId::at({0}, n); }

TEST(FrameTable, FindsWhatWasInsertedAndNothingElse) {
  constexpr uint32_t kFrames = 1000;
  auto memory = zeroed(FrameTable::bytes_for(kFrames));
  FrameTable table(memory.get(), kFrames, nobody_died);
  std::vector<uint64_t> held(kFrames, ~uint64_t{0});
  auto find = [&](uint64_t n) { return table.find(numbered(n), [&](uint32_t f) { return held[f] == n; }); };
  for (uint32_t f = 0; f < kFrames; ++f) {
    EXPECT_EQ(table.insert(
                  numbered(f * 3), f, [&](uint32_t g) { return held[g] == f * 3; }, [&] { held[f] = f * 3; }),
              kNoFrame);
  }
  for (uint32_t f = 0; f < kFrames; ++f) EXPECT_EQ(find(f * 3), f);
  EXPECT_EQ(find(1), kNoFrame);
  EXPECT_EQ(table.insert(
                numbered(30), 5, [&](uint32_t g) { return held[g] == 30; }, [] {}),
            10u);
  for (uint32_t f = 0; f < kFrames; f += 2) table.remove(numbered(f * 3), f);
  for (uint32_t f = 0; f < kFrames; ++f) EXPECT_EQ(find(f * 3), f % 2 ? f : kNoFrame);
}

TEST(FrameTable, HoldsAPageOnceThoughManyInsertIt) {
  constexpr uint32_t kFrames = 64;
  constexpr int kThreads = 4, kRounds = 3000;
  auto memory = zeroed(FrameTable::bytes_for(kFrames));
  FrameTable table(memory.get(), kFrames, nobody_died);
  std::atomic<uint64_t> held[kFrames];
  for (auto& h : held) h.store(~uint64_t{0});
  std::atomic<int> inside[8] = {};
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (uint32_t i = 0; i < kRounds; ++i) {
        const uint64_t n = i % 8;
        const uint32_t frame = t * 8 + uint32_t(n);
        held[frame].store(~uint64_t{0});
        auto holds = [&](uint32_t f) { return held[f].load() == n; };
        if (table.insert(numbered(n), frame, holds, [&] { held[frame].store(n); }) != kNoFrame) continue;
        EXPECT_EQ(inside[n].fetch_add(1), 0);
        inside[n].fetch_sub(1);
        table.remove(numbered(n), frame);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  for (uint64_t n = 0; n < 8; ++n) EXPECT_EQ(table.find(numbered(n), [](uint32_t) { return true; }), kNoFrame);
}

// frames.dead-locker-fences.  Processes that died hold the locks of all buckets.
TEST(FrameTable, AFenceEndsTheWaitForTheLockOfAProcessThatDied) {
  constexpr uint32_t kFrames = 8;
  auto memory = zeroed(FrameTable::bytes_for(kFrames));
  std::atomic<uint32_t> fence{0};
  FrameTable table(memory.get(), kFrames, fence);
  auto* const words = static_cast<std::atomic<uint64_t>*>(memory.get());
  for (size_t bucket = 1; bucket < FrameTable::bytes_for(kFrames) / 64; ++bucket) words[bucket * 8].fetch_or(1);
  std::atomic<int> ended{0}, waiter{0};
  std::thread waits([&] {
    waiter = int(syscall(SYS_gettid));
    (void)table.insert(
        numbered(1), 1, [](uint32_t) { return true; }, [] {});
    ended = 1;
    for (size_t bucket = 1; bucket < FrameTable::bytes_for(kFrames) / 64; ++bucket) words[bucket * 8].fetch_or(1);
    table.remove(numbered(2), 2);  // which is not there
    ended = 2;
  });
  EXPECT_TRUE(gcl_test::eventually([&] { return gcl_test::thread_sleeps(waiter); }));
  EXPECT_EQ(ended, 0);
  fence = 1;
  waits.join();
  EXPECT_EQ(ended, 2);
}

}  // namespace
}  // namespace bufmgr

namespace bufmgr {
namespace {

// The page's home slot, if it has room.
size_t home_of(PageId page, uint32_t frames) {
  auto memory = zeroed(FrameTable::bytes_for(frames));
  FrameTable table(memory.get(), frames, nobody_died);
  table.insert(
      page, 0, [](uint32_t) { return false; }, [] {});
  const auto* const words = static_cast<const uint64_t*>(memory.get());
  for (size_t i = 8; i < FrameTable::bytes_for(frames) / 8; ++i)
    if (words[i] != 0) return i / 8;
  return 0;
}

// frames.no-wait-in-bucket.  A process that came late for a page has the latch of a frame that is free by now, and does
// not run.  Only the session that got that frame waits for it, though the others' pages lie in the same bucket.
TEST(FrameTable, ALatchOnAFreeFrameHoldsUpTheSessionThatGotThatFrameOnly) {
  constexpr uint32_t kFrames = 64;
  gcl_test::Cluster cluster({.nodes = 1, .frames = kFrames, .workers = false});
  gcl_test::Switch no_more;
  BufferPool& pool = cluster.pool(0);
  auto mine = cluster.session(0), first = cluster.session(0, &no_more), second = cluster.session(0);
  const PageId page = *pool.allocate(*mine, 64);
  PageId neighbour = page + 1;
  while (home_of(neighbour, kFrames) != home_of(page, kFrames)) neighbour = neighbour + 1;

  std::vector<coherence::Line*> late;
  coherence::Node& node = pool.coherence_node();
  for (uint32_t i = 0; i < kFrames; ++i)
    if (!node.line(i).page().valid() && coherence::LatchTable::try_latch(node.line(i))) late.push_back(&node.line(i));
  ASSERT_GT(late.size(), 2u);
  const uint32_t free = pool.free_frames();
  std::thread waits([&] { EXPECT_EQ(pool.fix_shared(*first, page).error(), coherence::Errc::kInterrupted); });
  ASSERT_TRUE(gcl_test::eventually([&] { return pool.free_frames() == free - 1; }));
  for (size_t i = 1; i < late.size(); ++i) mine->coherence().unlock_exclusive(*late[i]);  // the waiter's is the first
  std::atomic<bool> done{false};
  std::thread goes_on([&] {
    EXPECT_TRUE(pool.fix_shared(*second, neighbour).ok());
    done = true;
  });
  EXPECT_TRUE(gcl_test::eventually([&] { return done.load(); }));
  no_more.set(true);  // and the waiter can be cancelled
  waits.join();
  EXPECT_EQ(pool.free_frames(), free - 1);  // the cancelled one's frame is back, the other's is not
  mine->coherence().unlock_exclusive(*late[0]);
  goes_on.join();
}

TEST(FreeList, GivesEachFrameToOne) {
  constexpr uint32_t kFrames = 16;
  auto memory = zeroed(FreeList::bytes_for(kFrames));
  FreeList list(memory.get());
  for (uint32_t f = 0; f < kFrames; ++f) list.push(f);
  std::atomic<int> owners[kFrames] = {};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 20000; ++i) {
        const uint32_t frame = list.pop();
        if (frame == kNoFrame) continue;
        EXPECT_EQ(owners[frame].fetch_add(1), 0);
        owners[frame].fetch_sub(1);
        list.push(frame);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(list.count(), kFrames);
  for (uint32_t f = 0; f < kFrames; ++f) EXPECT_NE(list.pop(), kNoFrame);
  EXPECT_EQ(list.pop(), kNoFrame);
}

TEST(Replacement, EpochSamplingProposesWhatIsOld) {
  constexpr uint32_t kFrames = 256;
  auto memory = zeroed(FrameMarks::bytes_for(kFrames));
  FrameMarks marks(memory.get(), kFrames);
  EpochSampling policy(marks, 7);
  for (int i = 0; i < 5; ++i) marks.advance();
  for (uint32_t f = 0; f < kFrames; f += 2) marks.touch(f);
  uint32_t frames[16];
  const int count = policy.propose(frames, 16, 0);
  ASSERT_GT(count, 0);
  for (int i = 0; i < count; ++i) EXPECT_EQ(frames[i] % 2, 1u);
}

class Marks : public testing::Test {
 protected:
  static constexpr uint32_t kFrames = 256;
  // Uses the frame in these epochs.
  void use(uint32_t frame, std::initializer_list<int> epochs) {
    bool began = false;
    for (const int epoch : epochs) {
      while (marks.epoch() < uint32_t(epoch)) marks.advance();
      began ? marks.touch(frame) : marks.begin(frame, numbered(frame));
      began = true;
    }
  }
  void go_to(uint32_t epoch) {
    while (marks.epoch() < epoch) marks.advance();
  }
  std::unique_ptr<void, FreeMemory> memory = zeroed(FrameMarks::bytes_for(kFrames));
  FrameMarks marks{memory.get(), kFrames};
};

TEST_F(Marks, WhatCameOnceIsWantedLessThanWhatCameBack) {
  use(0, {1, 10});
  use(1, {12});
  use(2, {12, 12});  // of one epoch, as good as once
  go_to(20);
  EXPECT_LT(marks.unwanted(0), marks.unwanted(1));
  EXPECT_EQ(marks.unwanted(1), marks.unwanted(2));
}

TEST_F(Marks, WhatHasNotComeForLongIsWantedLessThanWhatCameOnce) {
  use(0, {1, 2});
  go_to(3 + FrameMarks::kRememberedEpochs);
  use(1, {int(marks.epoch())});
  EXPECT_GT(marks.unwanted(0), marks.unwanted(1));
}

TEST_F(Marks, WhatWasTakenIsWantedLeastUntilItIsThereAgain) {
  use(0, {1, 3});
  use(1, {1});
  go_to(4);
  marks.lose(0);
  EXPECT_GT(marks.unwanted(0), marks.unwanted(1));
  marks.touch(0);
  EXPECT_LT(marks.unwanted(0), marks.unwanted(1));
  const uint32_t unwanted = marks.unwanted(0);
  marks.lose(0);  // and back within an epoch: it is what it was
  marks.touch(0);
  EXPECT_EQ(marks.unwanted(0), unwanted);
}

TEST_F(Marks, APageThatComesBackIsKnown) {
  use(0, {1});
  marks.end(0, numbered(0));
  go_to(5);
  marks.begin(1, numbered(0));
  marks.begin(2, numbered(7));
  EXPECT_EQ(marks.unwanted(1), 4u);
  EXPECT_EQ(marks.unwanted(2), FrameMarks::kRememberedEpochs);
}

TEST_F(Marks, EpochsMayWrapAround) {
  use(0, {0x7ffe});
  for (int i = 0; i < 4; ++i) marks.advance();
  marks.touch(0);
  EXPECT_EQ(marks.age(0), 0u);
  EXPECT_EQ(marks.unwanted(0), 4u);
}

TEST(Replacement, SecondChanceSparesWhatWasTouchedSinceTheHandCameBy) {
  constexpr uint32_t kFrames = 64;
  auto memory = zeroed(FrameMarks::bytes_for(kFrames));
  FrameMarks marks(memory.get(), kFrames);
  SecondChance policy(marks);
  uint32_t frames[kFrames];
  EXPECT_EQ(policy.propose(frames, 1, 0), 1);  // the hand has passed all frames once now
  for (uint32_t f = 0; f < kFrames; f += 2) marks.touch(f);
  const int count = policy.propose(frames, int(kFrames) / 4, 0);
  ASSERT_EQ(count, int(kFrames) / 4);
  for (int i = 0; i < count; ++i) EXPECT_EQ(frames[i] % 2, 1u);
}

}  // namespace
}  // namespace bufmgr
