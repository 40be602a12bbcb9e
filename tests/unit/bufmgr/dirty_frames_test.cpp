// DirtyFrames: no frame with a change is lost (frames.dirty-is-listed).
#include "bufmgr/frame/dirty_frames.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <thread>
#include <vector>

namespace bufmgr {
namespace {

constexpr uint64_t kRingBytes = 32000;

struct Lists {
  explicit Lists(uint32_t frames)
      : memory(aligned_alloc(64, (DirtyFrames::bytes_for(frames) + 63) / 64 * 64), free),
        dirty((memset(memory.get(), 0, DirtyFrames::bytes_for(frames)), memory.get()), kRingBytes) {}
  std::vector<uint32_t> taken(uint64_t part) {
    std::vector<uint32_t> frames;
    dirty.take(part, [&](uint32_t frame) {
      frames.push_back(frame);
      dirty.drop(frame);
    });
    return frames;
  }
  std::unique_ptr<void, decltype(&free)> memory;
  DirtyFrames dirty;
};

TEST(DirtyFrames, AFrameIsInTheListOfItsFirstChangeAndOnlyThere) {
  Lists lists(100);
  const uint64_t early = lists.dirty.part_of(1000), late = lists.dirty.part_of(9000);
  ASSERT_LT(early, late);
  lists.dirty.list(7, 1000);
  lists.dirty.list(7, 9000);  // its second one
  lists.dirty.list(8, 9000);
  lists.dirty.list(99, 1000);
  EXPECT_EQ(lists.taken(early), (std::vector<uint32_t>{99, 7}));
  EXPECT_EQ(lists.taken(early), std::vector<uint32_t>{});
  EXPECT_EQ(lists.taken(late), std::vector<uint32_t>{8});
  lists.dirty.list(7, 9000);
  EXPECT_EQ(lists.taken(late), std::vector<uint32_t>{7});
}

// A session changes a frame while it is taken.  If it listed the frame itself, and stood still before it has, the frame
// would be in no list.
TEST(DirtyFrames, AFrameThatIsTakenCountsAsListed) {
  Lists lists(100);
  const uint64_t part = lists.dirty.part_of(1000);
  lists.dirty.list(7, 1000);
  lists.dirty.take(part, [&](uint32_t frame) {
    lists.dirty.list(frame, 9000);      // the session's second change
    lists.dirty.put_back(frame, 1000);  // the first one is not in the pool yet
  });
  EXPECT_EQ(lists.taken(lists.dirty.part_of(9000)), std::vector<uint32_t>{});
  EXPECT_EQ(lists.taken(part), std::vector<uint32_t>{7});
}

TEST(DirtyFrames, WhatARingHoldsAtOnceSharesNoList) {
  Lists lists(1);
  for (uint64_t tail = 0; tail < 10 * kRingBytes; tail += 333) {
    const uint64_t parts = lists.dirty.part_of(tail + kRingBytes) - lists.dirty.part_of(tail) + 1;
    EXPECT_LT(parts, DirtyFrames::kLists);
    EXPECT_LE(lists.dirty.start_of(lists.dirty.part_of(tail)), tail);
    EXPECT_GT(lists.dirty.start_of(lists.dirty.part_of(tail) + 1), tail);
  }
}

// Sessions change frames while one writes them back, as it finds them: at the end each frame has been written after its
// last change.
TEST(DirtyFrames, NoChangeIsMissed) {
  constexpr uint32_t kFrames = 50, kSessions = 3, kChanges = 20000;
  Lists lists(kFrames);
  std::vector<std::atomic<uint64_t>> changed(kFrames), written(kFrames);
  std::atomic<uint64_t> head{1};
  std::atomic<uint32_t> working{kSessions};
  std::vector<std::thread> threads;
  for (uint32_t s = 0; s < kSessions; ++s)
    threads.emplace_back([&, s] {
      std::mt19937 random(s);
      for (uint32_t i = 0; i < kChanges; ++i) {
        const uint32_t frame = random() % kFrames;
        const uint64_t place = head.fetch_add(1);
        changed[frame].fetch_add(1, std::memory_order_relaxed);
        lists.dirty.list(frame, place);
      }
      --working;
    });
  std::mt19937 random(99);
  const auto pass = [&](bool all) {
    for (uint64_t part = 0; part < DirtyFrames::kLists; ++part)
      lists.dirty.take(part, [&](uint32_t frame) {
        if (!all && random() % 3 == 0) return lists.dirty.put_back(frame, head.load());  // busy
        written[frame].store(changed[frame].load(std::memory_order_relaxed), std::memory_order_relaxed);
        lists.dirty.drop(frame);
        if (changed[frame].load(std::memory_order_relaxed) != written[frame]) lists.dirty.list(frame, head.load());
      });
  };
  while (working != 0) pass(false);
  for (std::thread& thread : threads) thread.join();
  pass(true);
  uint64_t sum = 0;
  for (uint32_t frame = 0; frame < kFrames; ++frame) {
    EXPECT_EQ(written[frame].load(), changed[frame].load()) << frame;
    sum += written[frame];
  }
  EXPECT_EQ(sum, uint64_t{kSessions} * kChanges);
}

}  // namespace
}  // namespace bufmgr
