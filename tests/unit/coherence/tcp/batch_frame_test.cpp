// Batches as bytes: what was asked is carried out, what came of it arrives, and no damaged frame is taken for one.
#include "coherence/transport/tcp/memory/batch_frame.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "region.hpp"
#include "tests/support/longer.hpp"
#include "tests/support/random_batch.hpp"

namespace coherence::tcp {
namespace {

constexpr uint64_t kFrameRegion = 64 << 10;

std::span<Op> ops_of(Batch& batch) { return {&batch.op(0), size_t(batch.size())}; }

std::vector<std::byte> request_of(Batch& batch, uint32_t tag) {
  EXPECT_TRUE(can_travel(ops_of(batch)));
  std::vector<std::byte> frame(request_bytes(ops_of(batch)));
  encode_request(batch.to(), tag, ops_of(batch), frame.data());
  return frame;
}

class BatchFrame : public testing::Test {
 protected:
  // Carries `batch` out in `there` by frames.
  void travel(Batch& batch, Memory& memory, uint32_t tag = 1) {
    const auto request = request_of(batch, tag);
    ASSERT_TRUE(served.decode(request, &problem)) << problem.text;
    memory.post(served.batch());
    const auto result = served.result();
    EXPECT_LE(result.size(), result_bytes_max(ops_of(batch)));
    ASSERT_TRUE(decode_result(result, batch.to(), tag, ops_of(batch), &problem)) << problem.text;
  }
  bool refused(std::span<const std::byte> frame) {
    problem = {};
    const Status status = served.decode(frame, &problem);
    EXPECT_TRUE(status.ok() == (problem.text[0] == 0));
    return status.error() == Errc::kCorrupt;
  }

  Problem problem;
  ServedBatch served;
  Region region{kFrameRegion};
  Counters counters{};
  ShmMemory shm{region, counters};
  std::vector<std::byte> local = std::vector<std::byte>(2 * kBatchBytesMax);
};

// Two regions and two sets of local bytes that begin alike stay alike, one by frames, one without.
TEST_F(BatchFrame, ABatchByFramesDoesWhatItDoesWithoutThem) {
  Region region_without(kFrameRegion);
  ShmMemory shm_without(region_without, counters);
  std::mt19937_64 random(gcl_test::seed(1));
  for (int round = 0; round < gcl_test::by_one_thread(2000); round++) {
    const int count = int(random() % (kBatchOpsMax + 1));
    const uint32_t bytes_max = round % 8 == 0 ? 1400 : 100;
    std::vector<std::byte> mine(kBatchOpsMax * bytes_max), theirs;
    for (auto& byte : mine) byte = std::byte(random());
    theirs = mine;
    auto make = [&](Batch& batch, std::byte* bytes, uint64_t seed) {
      std::mt19937_64 same(seed);
      gcl_test::add_random(batch, count, kFrameRegion, bytes_max, same,
                           [&](uint32_t some) { return std::exchange(bytes, bytes + some); });
    };
    const uint64_t seed = random();
    Batch by_frames(kHere), without(kHere);
    make(by_frames, mine.data(), seed), make(without, theirs.data(), seed);
    travel(by_frames, shm, uint32_t(random()));
    shm_without.post(without);
    for (int i = 0; i < count; i++) ASSERT_EQ(by_frames.op(i).old, without.op(i).old) << i << " of round " << round;
    ASSERT_EQ(mine, theirs) << round;
    ASSERT_EQ(region.words, region_without.words) << round;
  }
}

TEST_F(BatchFrame, AReadThatIsNotWantedIsNotInTheResult) {
  Batch batch(kHere);
  batch.cas(PoolAddress::at(kHere, 0), 1, 2);
  batch.read(PoolAddress::at(kHere, 64), local.data(), 5000, OnlyIf::kCasSucceeded);
  batch.read(PoolAddress::at(kHere, 8192), local.data() + 8192, 24);
  region.words[1024] = 4711;
  travel(batch, shm);
  EXPECT_EQ(served.result().size(), sizeof(FrameHead) + 8 + 24);
  EXPECT_EQ(memcmp(local.data() + 8192, &region.words[1024], 24), 0);
}

TEST_F(BatchFrame, TheLongestBatchTravels) {
  class Sink final : public Memory {
   public:
    void post(Batch* const*, int) override {}
    void poll() override {}
  } sink;  // nothing is as long as all pages that are read here
  Batch reads(kHere), writes(kHere);
  std::vector<std::byte> pages(kBatchOpsMax * kPageSize);
  while (!reads.full()) reads.read(PoolAddress::at(kHere, 0), local.data(), kPlainBytesMax / kBatchOpsMax);
  while (!writes.full()) writes.write(PoolAddress::at(kHere, 0), local.data(), kPlainBytesMax / kBatchOpsMax);
  for (Batch* batch : {&reads, &writes}) {
    EXPECT_TRUE(can_travel(ops_of(*batch)));
    travel(*batch, sink);
    for (int i = 0; i < batch->size(); i++) batch->op(i).registered = true;
    batch->op(0).bytes = kBatchBytesMax - (kBatchOpsMax - 1) * batch->op(1).bytes;
    EXPECT_TRUE(can_travel(ops_of(*batch)));
    travel(*batch, sink);
    EXPECT_LE(request_bytes(ops_of(*batch)), kRequestBytesMax);
    EXPECT_LE(served.result().size(), kResultBytesMax);
    const auto longest = request_of(*batch, 0);
    batch->op(0).bytes++;
    EXPECT_FALSE(can_travel(ops_of(*batch)));
    batch->op(0).bytes--;
    std::vector<std::byte> too_long = longest;  // one byte more of operation 0, and one byte more
    too_long[sizeof(FrameHead) + offsetof(FrameOp, bytes)] =
        std::byte(uint8_t(too_long[sizeof(FrameHead) + offsetof(FrameOp, bytes)]) + 1);
    if (batch == &writes) too_long.push_back({});
    EXPECT_TRUE(refused(too_long)) << "of " << (batch == &reads ? "READs" : "WRITEs");
  }
}

TEST_F(BatchFrame, BytesThatAreNotRegisteredHaveABoundOfTheirOwn) {
  Batch batch(kHere);
  batch.read(PoolAddress::at(kHere, 0), local.data(), kPlainBytesMax - 1);
  batch.write(PoolAddress::at(kHere, 0), local.data(), 1);
  EXPECT_TRUE(can_travel(ops_of(batch)));
  batch.write(PoolAddress::at(kHere, 0), local.data(), 1);
  EXPECT_FALSE(can_travel(ops_of(batch)));
  batch.op(2).registered = true;
  EXPECT_TRUE(can_travel(ops_of(batch)));
}

// tcp.condition-has-its-atomic
TEST_F(BatchFrame, AConditionWithoutItsAtomicIsRefused) {
  const PoolAddress at = PoolAddress::at(kHere, 0);
  for (const OnlyIf only_if : {OnlyIf::kCasSucceeded, OnlyIf::kNoOwner})
    for (int first = 0; first < 5; first++) {
      Batch batch(kHere);
      if (first == 0) batch.cas(at, 0, 1);
      if (first == 1) batch.faa(at, 1);
      if (first == 2) batch.load(at);
      if (first == 3) batch.write(at, local.data(), 8);
      batch.read(at, local.data(), 8, only_if);  // itself operation 0, in the end
      const bool right = only_if == OnlyIf::kCasSucceeded ? first == 0 : first <= 2;
      EXPECT_EQ(can_travel(ops_of(batch)), right);
      std::vector<std::byte> frame(request_bytes(ops_of(batch)));
      encode_request(kHere, 0, ops_of(batch), frame.data());
      EXPECT_EQ(refused(frame), !right) << first;
    }
  Batch write(kHere);
  write.cas(at, 0, 1);
  write.write(at, local.data(), 8);
  write.op(1).only_if = OnlyIf::kCasSucceeded;
  EXPECT_FALSE(can_travel(ops_of(write))) << "only READs have conditions";
  std::vector<std::byte> frame(request_bytes(ops_of(write)));
  encode_request(kHere, 0, ops_of(write), frame.data());
  EXPECT_TRUE(refused(frame));
}

// Each byte that says what a batch is, changed: the frame is refused, or is another batch, whose frame it then is.
TEST_F(BatchFrame, NoFrameHasTwoMeaningsAndNoTruncatedOneHasAny) {
  std::mt19937_64 random(gcl_test::seed(2));
  for (int round = 0; round < gcl_test::by_one_thread(100); round++) {
    Batch batch(kHere);
    gcl_test::add_random(batch, int(random() % 8), kFrameRegion, 40, random, [&](uint32_t) { return local.data(); });
    const auto frame = request_of(batch, uint32_t(random()));
    for (size_t bytes = 0; bytes < frame.size(); bytes++)
      ASSERT_TRUE(refused(std::span(frame).first(bytes))) << bytes << " of " << frame.size();
    auto longer = frame;
    longer.push_back({});
    EXPECT_TRUE(refused(longer));
    for (size_t at = 0; at < frame.size(); at++)
      for (int bit = 0; bit < 8; bit++) {
        auto damaged = frame;
        damaged[at] ^= std::byte(1 << bit);
        if (refused(damaged)) continue;
        FrameHead head;
        memcpy(&head, damaged.data(), sizeof head);
        std::vector<std::byte> again(damaged.size());
        ASSERT_EQ(request_bytes(ops_of(served.batch())), damaged.size());
        encode_request(served.batch().to(), head.tag, ops_of(served.batch()), again.data());
        ASSERT_EQ(again, damaged) << "bit " << bit << " of byte " << at;
      }
  }
}

TEST_F(BatchFrame, VerbsConditionsAndNodesThatThereAreNotAreRefused) {
  Batch batch(kHere);
  batch.cas(PoolAddress::at(kHere, 0), 0, 1);
  batch.read(PoolAddress::at(kHere, 0), local.data(), 8);
  const auto frame = request_of(batch, 0);
  ASSERT_FALSE(refused(frame));
  const size_t read_at = sizeof(FrameHead) + sizeof(FrameOp) + 16;
  auto with = [&](size_t at, uint8_t value) {
    auto changed = frame;
    changed[at] = std::byte(value);
    return changed;
  };
  EXPECT_TRUE(refused(with(read_at + offsetof(FrameOp, verb), 5))) << problem.text;
  EXPECT_TRUE(refused(with(read_at + offsetof(FrameOp, verb), 255)));
  EXPECT_TRUE(refused(with(read_at + offsetof(FrameOp, only_if), 3)));
  EXPECT_TRUE(refused(with(read_at + offsetof(FrameOp, reserved), 1)));
  EXPECT_TRUE(refused(with(read_at + offsetof(FrameOp, bytes) + 2, 0xff)));
  EXPECT_TRUE(refused(with(read_at + offsetof(FrameOp, at) + 7, 4))) << "another memory node than the batch";
  EXPECT_TRUE(refused(with(sizeof(FrameHead) + offsetof(FrameOp, bytes), 8))) << "a CAS of so many bytes";
  EXPECT_TRUE(refused(with(offsetof(FrameHead, operations), 65)));
  EXPECT_TRUE(refused(with(offsetof(FrameHead, reserved), 1)));
  EXPECT_TRUE(refused({}));
}

TEST_F(BatchFrame, OnlyItsResultIsABatchsResult) {
  Batch batch(kHere);
  batch.cas(PoolAddress::at(kHere, 0), 0, 1);
  batch.read(PoolAddress::at(kHere, 64), local.data(), 100, OnlyIf::kCasSucceeded);
  batch.read(PoolAddress::at(kHere, 64), local.data() + 100, 100);
  travel(batch, shm, 7);
  const auto result = served.result();
  const std::vector<std::byte> right(result.begin(), result.end());
  auto taken = [&](std::span<const std::byte> frame, uint32_t tag = 7, MemoryNodeId from = kHere) {
    memset(local.data(), 0xee, 200);
    Problem why;
    const Status status = decode_result(frame, from, tag, ops_of(batch), &why);
    for (size_t i = 0; i < 200 && !status; i++) EXPECT_EQ(local[i], std::byte{0xee}) << "touched by what is none";
    EXPECT_TRUE(status || status.error() == Errc::kCorrupt);
    return status.ok();
  };
  EXPECT_TRUE(taken(right));
  EXPECT_FALSE(taken(right, 8));
  EXPECT_FALSE(taken(right, 7, MemoryNodeId{4}));
  for (size_t bytes = 0; bytes < right.size(); bytes++) EXPECT_FALSE(taken(std::span(right).first(bytes))) << bytes;
  auto changed = right;
  changed.push_back({});
  EXPECT_FALSE(taken(changed));
  changed = right, changed[offsetof(FrameHead, operations)] = std::byte{2};
  EXPECT_FALSE(taken(changed));
  changed = right, changed[offsetof(FrameHead, reserved)] = std::byte{1};
  EXPECT_FALSE(taken(changed));
  changed = right, changed[sizeof(FrameHead)] = std::byte{1};  // the swap failed: its READ must not be there
  EXPECT_FALSE(taken(changed));
}

}  // namespace
}  // namespace coherence::tcp
