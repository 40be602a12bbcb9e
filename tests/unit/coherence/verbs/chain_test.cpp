// Batches as chains of work requests, without a device: what verbs.ordered-by-table, verbs.last-is-signalled and
// verbs.load-is-a-read ask for.
#include "coherence/transport/verbs/chain.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <string>
#include <vector>

namespace coherence::verbs {
namespace {

constexpr MemoryNodeId kNode{3};
constexpr uint32_t kInline = 64;
constexpr Chain::Keys kKeys{.frames = 11, .buffer = 22, .memory_node = 33, .inline_bytes = kInline};

PoolAddress at(uint64_t offset) { return PoolAddress::at(kNode, offset); }

struct Built {
  explicit Built(Batch& batch) {
    for (int i = 0; i < batch.size(); i++) ops.push_back(batch.op(i));
    buffer.resize(Chain::buffer_bytes(ops, kInline) + 8, std::byte{0xee});
    chain.build(ops, buffer.data(), kKeys, 77);
    for (ibv_send_wr* one = chain.first(); one != nullptr; one = one->next) requests.push_back(one);
  }
  bool has(size_t i, unsigned flag) const { return (requests[i]->send_flags & flag) != 0; }
  // "F": a fence, ".": none.
  std::string fences() const {
    std::string text;
    for (size_t i = 0; i < requests.size(); i++) text += has(i, IBV_SEND_FENCE) ? 'F' : '.';
    return text;
  }
  std::vector<Op> ops;
  std::vector<std::byte> buffer;
  Chain chain;
  std::vector<ibv_send_wr*> requests;
};

// r, w: READ, WRITE; c, f: CAS, FAA; l: LOAD.
std::string fences_of(const std::string& verbs) {
  static std::byte bytes[8];
  Batch batch(kNode);
  for (const char verb : verbs) {
    if (verb == 'r') batch.read(at(0), bytes, 8);
    if (verb == 'w') batch.write(at(0), bytes, 8);
    if (verb == 'c') batch.cas(at(0), 1, 2);
    if (verb == 'f') batch.faa(at(0), 1);
    if (verb == 'l') batch.load(at(0));
  }
  return Built(batch).fences();
}

}  // namespace

// The table, pair by pair.
TEST(VerbsChain, WhatChangesBehindWhatBringsHasAFence) {
  for (const char first : std::string("wrlcf"))
    for (const char second : std::string("wrlcf")) {
      const bool fence = first != 'w' && second != 'r' && second != 'l';
      EXPECT_EQ(fences_of({first, second}), fence ? ".F" : "..") << first << second;
    }
}

// What a session does most takes one round trip.
TEST(VerbsChain, WhatIsCommonHasNoFence) {
  EXPECT_EQ(fences_of("cr"), "..");
  EXPECT_EQ(fences_of("fr"), "..");
  EXPECT_EQ(fences_of("wf"), "..");
  EXPECT_EQ(fences_of("wwc"), "...");
  EXPECT_EQ(fences_of("llllll"), "......");
}

// Of what came in front of a fence nothing is under way behind it.
TEST(VerbsChain, AFenceCountsForAllThatComesInFront) {
  EXPECT_EQ(fences_of("rwww"), ".F..");
  EXPECT_EQ(fences_of("rwfw"), ".F.F");
  EXPECT_EQ(fences_of("lrrlwr"), "....F.");
  EXPECT_EQ(fences_of("fwf"), ".F.");
  EXPECT_EQ(fences_of("cccc"), ".FFF");
}

TEST(VerbsChain, TheLastAloneIsSignalledAndAllHaveTheBatchsNumber) {
  Batch batch(kNode);
  while (!batch.full()) batch.faa(at(8), 1);
  const Built built(batch);
  ASSERT_EQ(built.requests.size(), size_t(kBatchOpsMax));
  EXPECT_EQ(built.chain.size(), uint32_t(kBatchOpsMax));
  for (size_t i = 0; i < built.requests.size(); i++) {
    EXPECT_EQ(built.has(i, IBV_SEND_SIGNALED), i + 1 == built.requests.size());
    EXPECT_EQ(built.requests[i]->wr_id, 77u);
  }
}

TEST(VerbsChain, AnEmptyBatchIsAWriteOfNothing) {
  Batch batch(kNode);
  const Built built(batch);
  ASSERT_EQ(built.requests.size(), 1u);
  EXPECT_EQ(built.requests[0]->opcode, IBV_WR_RDMA_WRITE);
  EXPECT_EQ(built.requests[0]->num_sge, 0);
  EXPECT_TRUE(built.has(0, IBV_SEND_SIGNALED));
}

TEST(VerbsChain, OperationsSayWhatTheyAre) {
  Batch batch(kNode);
  batch.cas(at(64), 5, 6);
  batch.faa(at(72), 7);
  batch.load(at(80));
  const Built built(batch);
  EXPECT_EQ(built.requests[0]->opcode, IBV_WR_ATOMIC_CMP_AND_SWP);
  EXPECT_EQ(built.requests[0]->wr.atomic.remote_addr, 64u) << "bytes are named from 0 on, without the memory node";
  EXPECT_EQ(built.requests[0]->wr.atomic.compare_add, 5u);
  EXPECT_EQ(built.requests[0]->wr.atomic.swap, 6u);
  EXPECT_EQ(built.requests[0]->wr.atomic.rkey, 33u);
  EXPECT_EQ(built.requests[1]->opcode, IBV_WR_ATOMIC_FETCH_AND_ADD);
  EXPECT_EQ(built.requests[1]->wr.atomic.compare_add, 7u);
  EXPECT_EQ(built.requests[2]->opcode, IBV_WR_RDMA_READ);
  EXPECT_EQ(built.requests[2]->wr.rdma.remote_addr, 80u);
  EXPECT_EQ(built.requests[2]->wr.rdma.rkey, 33u);
  for (size_t i = 0; i < 3; i++) {
    EXPECT_EQ(built.requests[i]->sg_list->length, 8u);
    EXPECT_EQ(built.requests[i]->sg_list->lkey, 22u);
    EXPECT_EQ(built.requests[i]->sg_list->addr, uint64_t(built.buffer.data() + 8 * i));
  }
}

// Bytes of a session come by the buffer; few that are written go inline, and take nothing of it.
TEST(VerbsChain, BytesThatAreNotRegisteredLieInTheBuffer) {
  std::byte few[kInline], many[kInline + 1], here[13] = {};
  memset(few, 1, sizeof few);
  memset(many, 2, sizeof many);
  Batch batch(kNode);
  batch.write(at(0), few, sizeof few);
  batch.write(at(0), many, sizeof many);
  batch.read(at(100), here, sizeof here);
  Built built(batch);
  EXPECT_EQ(Chain::buffer_bytes(built.ops, kInline), 72u + 16u);
  EXPECT_TRUE(built.has(0, IBV_SEND_INLINE));
  EXPECT_EQ(built.requests[0]->sg_list->addr, uint64_t(few));
  EXPECT_FALSE(built.has(1, IBV_SEND_INLINE));
  EXPECT_EQ(built.requests[1]->sg_list->addr, uint64_t(built.buffer.data()));
  EXPECT_EQ(built.requests[1]->sg_list->length, uint32_t{sizeof many});
  EXPECT_EQ(memcmp(built.buffer.data(), many, sizeof many), 0);
  EXPECT_EQ(built.requests[2]->sg_list->addr, uint64_t(built.buffer.data() + 72));
  memset(built.buffer.data() + 72, 9, sizeof here);
  Chain::take_results(built.ops, built.buffer.data(), kInline);
  EXPECT_EQ(here[0], std::byte{9});
  EXPECT_EQ(here[12], std::byte{9});
}

// Any batch: pieces of the buffer are apart and inside, and what lies there is what comes back.
TEST(VerbsChain, ResultsComeFromWhereTheyWereWanted) {
  std::mt19937 random(5);
  static std::byte bytes[kBatchOpsMax][300];
  for (int round = 0; round < 200; round++) {
    Batch batch(kNode);
    for (int left = int(random() % kBatchOpsMax); left >= 0; left--) {
      const int i = batch.size();
      const uint32_t length = uint32_t(random() % 300);
      const unsigned verb = random() % 5;
      if (verb == 0) batch.read(at(8 * random() % 4096), bytes[i], length);
      if (verb == 1) batch.write(at(8 * random() % 4096), bytes[i], length);
      if (verb == 2) batch.cas(at(0), 1, 2);
      if (verb == 3) batch.faa(at(0), 1);
      if (verb == 4) batch.load(at(0));
    }
    Built built(batch);
    const std::byte* const end = built.buffer.data() + built.buffer.size() - 8;
    std::vector<bool> taken(built.buffer.size());
    for (size_t i = 0; i < built.ops.size(); i++) {
      const ibv_send_wr& request = *built.requests[i];
      if (request.num_sge == 0 || request.sg_list->lkey != kKeys.buffer) continue;
      auto* const place = reinterpret_cast<std::byte*>(request.sg_list->addr);
      ASSERT_TRUE(place >= built.buffer.data() && place + request.sg_list->length <= end);
      for (uint32_t b = 0; b < request.sg_list->length; b++) {
        ASSERT_FALSE(taken[size_t(place - built.buffer.data()) + b]);
        taken[size_t(place - built.buffer.data()) + b] = true;
      }
      if (built.ops[i].verb != Verb::kWrite) memset(place, int(i) + 1, request.sg_list->length);
    }
    EXPECT_EQ(*end, std::byte{0xee});
    Chain::take_results(built.ops, built.buffer.data(), kInline);
    for (size_t i = 0; i < built.ops.size(); i++) {
      const Op& op = built.ops[i];
      uint64_t word;
      memset(&word, int(i) + 1, sizeof word);
      if (op.verb == Verb::kRead && op.bytes != 0) {
        EXPECT_EQ(bytes[i][0], std::byte(i + 1));
        EXPECT_EQ(bytes[i][op.bytes - 1], std::byte(i + 1));
      } else if (op.verb != Verb::kRead && op.verb != Verb::kWrite) {
        EXPECT_EQ(op.old, word);
      }
    }
  }
}

}  // namespace coherence::verbs
