// A memory node believes nobody (tcp.nothing-believed): what leaves its region, or is no batch, ends the link that it
// came by; nothing of it takes place, and others are not harmed.
#include "coherence/transport/tcp/memory/memory_server.hpp"

#include "coherence/transport/tcp/memory/figures_frame.hpp"
#include "loops.hpp"

namespace coherence::tcp {
namespace {

PoolAddress at(uint64_t offset, MemoryNodeId node = kOne) { return PoolAddress::at(node, offset); }

class TcpMemoryServer : public testing::Test {
 protected:
  void run_once() {
    memory_node.server->run_once(0);
    peer.links->wait(0);
    other.links->wait(0);
  }
  template <class Condition>
  bool until(const Condition& condition) {
    return gcl_test::eventually([&] {
      run_once();
      return condition();
    });
  }
  void SetUp() override {
    for (RawPeer* one : {&peer, &other}) one->dial(net::Who::memory_node(kOne, 0), memory_node.address());
    ASSERT_TRUE(until([&] { return peer.link->connected() && other.link->connected(); }));
    for (uint64_t i = 0; i < kRegionBytes / 8; i++) memory_node.word(i) = i;
  }
  static std::vector<std::byte> frame_of(Batch& batch) {
    const std::span<Op> ops{&batch.op(0), size_t(batch.size())};
    std::vector<std::byte> frame(request_bytes(ops));
    encode_request(batch.to(), 0, ops, frame.data());
    return frame;
  }
  void send(RawPeer& from, std::span<const std::byte> frame, uint16_t type = kRequestFrame) {
    ASSERT_TRUE(from.link->send(type, frame).ok());
  }
  void carried_out(RawPeer& from, Batch& batch) {
    from.frames.clear();
    send(from, frame_of(batch));
    ASSERT_TRUE(until([&] { return !from.frames.empty() || from.link == nullptr; }));
    EXPECT_NE(from.link, nullptr) << from.ended_because;
  }
  // The link of `peer` ends, for that reason; nothing has changed, and `other` goes on.
  void refused(std::span<const std::byte> frame, const std::string& because, uint16_t type = kRequestFrame) {
    send(peer, frame, type);
    ASSERT_TRUE(until([&] { return peer.link == nullptr || !peer.frames.empty(); }));
    EXPECT_EQ(peer.link, nullptr) << "it was carried out, and not refused: " << because;
    EXPECT_NE(peer.ended_because.find(because), std::string::npos) << peer.ended_because;
    EXPECT_TRUE(memory_node.log.tell("node 7")) << memory_node.log.all;
    EXPECT_TRUE(memory_node.log.tell(because)) << memory_node.log.all;
    EXPECT_EQ(memory_node.server->figures().ended, 1u);
    for (uint64_t i = 0; i < kRegionBytes / 8; i++) ASSERT_EQ(memory_node.word(i), i);
    Batch batch(kOne);
    batch.load(at(0));
    carried_out(other, batch);
  }
  void refused(Batch& batch, const std::string& because) { refused(frame_of(batch), because); }

  gcl_test::SocketDirectory directory;
  Served memory_node{directory, kOne};
  RawPeer peer, other{net::Who::node(NodeId{8}, 1)};
  std::byte local[kPageSize] = {};
};

TEST_F(TcpMemoryServer, WhatIsInTheRegionIsCarriedOut) {
  Batch batch(kOne);
  batch.write(at(0), local, 0);
  batch.read(at(kRegionBytes), local, 0);
  batch.read(at(kRegionBytes - kPageSize), local, kPageSize);
  batch.faa(at(kRegionBytes - 8), 1);
  batch.read(at(kRegionBytes - 1), local, 1);
  carried_out(peer, batch);
  EXPECT_EQ(memory_node.word(kRegionBytes / 8 - 1), kRegionBytes / 8);
  EXPECT_EQ(memory_node.server->figures().batches, 1u);
  EXPECT_EQ(memory_node.server->figures().operations, 5u);
  EXPECT_EQ(memory_node.server->figures().links, 2u);
  EXPECT_EQ(memory_node.server->figures().bytes_out, sizeof(FrameHead) + 8 + kPageSize + 1);
}

TEST_F(TcpMemoryServer, AnAddressOutsideTheRegion) {
  Batch batch(kOne);
  batch.write(at(0), "\xff\xff", 2);  // what is right of it does not take place either
  batch.read(at(kRegionBytes), local, 1);
  refused(batch, "an operation on 1 bytes at 262144");
}

TEST_F(TcpMemoryServer, AnAddressFarOutsideTheRegion) {
  Batch batch(kOne);
  batch.write(at((uint64_t{1} << 56) - 1), local, 8);
  refused(batch, "an operation on 8 bytes");
}

TEST_F(TcpMemoryServer, AnOperationThatCrossesTheRegionsEnd) {
  Batch batch(kOne);
  batch.write(at(kRegionBytes - kPageSize + 1), local, kPageSize);
  refused(batch, "an operation on 8192 bytes");
}

TEST_F(TcpMemoryServer, AnAtomicAtTheRegionsEnd) {
  Batch batch(kOne);
  batch.faa(at(kRegionBytes), 1);
  refused(batch, "an operation on 8 bytes");
}

TEST_F(TcpMemoryServer, MisalignedAtomics) {
  Batch batch(kOne);
  batch.cas(at(12), 1, 2);
  refused(batch, "an atomic at 12");
}

TEST_F(TcpMemoryServer, AMisalignedLoad) {
  Batch batch(kOne);
  batch.load(at(1));
  refused(batch, "an atomic at 1,");
}

TEST_F(TcpMemoryServer, ABatchForAnotherMemoryNode) {
  Batch batch(kZero);
  batch.faa(at(0, kZero), 1);
  refused(batch, "a batch for memory node 0");
}

TEST_F(TcpMemoryServer, AnOperationForAnotherMemoryNode) {
  Batch batch(kOne);
  batch.faa(at(0), 1);
  batch.op(0).at = at(0, kZero);
  refused(batch, "an operation on another memory node");
}

TEST_F(TcpMemoryServer, AVerbThatThereIsNot) {
  Batch batch(kOne);
  batch.load(at(0));
  auto frame = frame_of(batch);
  frame[sizeof(FrameHead) + offsetof(FrameOp, verb)] = std::byte{9};
  refused(frame, "a verb that there is not");
}

TEST_F(TcpMemoryServer, ABatchOfTooManyBytes) {
  Batch batch(kOne);
  while (!batch.full()) batch.read(at(0), local, kPageSize + kPlainBytesMax / kBatchOpsMax + 1);
  refused(batch, "a batch of too many bytes");
}

TEST_F(TcpMemoryServer, ABatchOfTooManyOperations) {
  Batch batch(kOne);
  while (!batch.full()) batch.load(at(0));
  auto frame = frame_of(batch);
  frame[offsetof(FrameHead, operations)] = std::byte{kBatchOpsMax + 1};
  frame.resize(frame.size() + sizeof(FrameOp));
  refused(frame, "a batch of too many operations");
}

TEST_F(TcpMemoryServer, AFrameThatIsTooShort) {
  Batch batch(kOne);
  batch.write(at(0), "\xff\xff\xff\xff", 4);
  auto frame = frame_of(batch);
  frame.pop_back();
  refused(frame, "a request that is too short");
}

TEST_F(TcpMemoryServer, AnEmptyFrame) { refused(std::span<const std::byte>(), "a frame that is no request"); }

TEST_F(TcpMemoryServer, AFrameOfAnotherType) {
  Batch batch(kOne);
  batch.faa(at(0), 1);
  refused(frame_of(batch), "a frame of type 2", kResultFrame);
}

// Of a node that does not wait for results until they have room.
TEST_F(TcpMemoryServer, MoreBatchesThanTheirResultsHaveRoomFor) {
  Batch batch(kOne);
  while (!batch.full()) batch.read(at(0), local, kPageSize);
  const auto frame = frame_of(batch);
  bool sent = true;
  for (int i = 0; i < 100 && sent; i++) sent = peer.link->send(kRequestFrame, frame).ok();
  EXPECT_TRUE(gcl_test::eventually([&] {
    memory_node.server->run_once(0);
    peer.links->flush();
    return memory_node.server->figures().ended == 1;
  }));
  EXPECT_TRUE(memory_node.log.tell("more batches than their results have room")) << memory_node.log.all;
  Batch one(kOne);
  one.load(at(0));
  carried_out(other, one);
}

TEST_F(TcpMemoryServer, AToolIsToldTheFigures) {
  Batch batch(kOne);
  batch.faa(at(0), 1);
  batch.load(at(8));
  carried_out(peer, batch);
  RawPeer tool{net::Who::tool(5)};
  tool.dial(net::Who::memory_node(kOne, 0), memory_node.address());
  const auto answered = [&] {
    return until([&] {
      tool.links->wait(0);
      return tool.link == nullptr || !tool.frames.empty();
    });
  };
  ASSERT_TRUE(until([&] {
    tool.links->wait(0);
    return tool.link->connected();
  }));
  send(tool, {}, kAskFiguresFrame);
  ASSERT_TRUE(answered());
  ASSERT_NE(tool.link, nullptr) << tool.ended_because;
  FiguresRecord told{};
  Problem problem;
  ASSERT_EQ(tool.frames.front().first, kFiguresFrame);
  ASSERT_TRUE(decode_figures(tool.frames.front().second, &told, &problem).ok()) << problem.text;
  EXPECT_EQ(told.batches, 1u);
  EXPECT_EQ(told.operations, 2u);
  EXPECT_EQ(told.links, 3u);
  EXPECT_GT(told.up_us, 0u);
  EXPECT_GT(told.user_us + told.system_us, 0u);
  EXPECT_EQ(told.refused, 0u);
  EXPECT_FALSE(decode_figures(std::span(tool.frames.front().second).subspan(1), &told, &problem).ok());

  tool.frames.clear();
  send(tool, std::as_bytes(std::span("?")), kAskFiguresFrame);
  ASSERT_TRUE(answered());
  EXPECT_EQ(tool.link, nullptr);
  EXPECT_NE(tool.ended_because.find("a question about figures with 2 bytes"), std::string::npos) << tool.ended_because;
}

TEST_F(TcpMemoryServer, ANodeAsksForNoFigures) {
  refused(std::span<const std::byte>(), "a frame of type 5", kAskFiguresFrame);
}

TEST_F(TcpMemoryServer, AMemoryNodeAsksForNothing) {
  RawPeer memory{net::Who::memory_node(kZero, 5)};
  memory.dial(net::Who::memory_node(kOne, 0), memory_node.address());
  EXPECT_TRUE(until([&] {
    memory.links->wait(0);
    return memory.link == nullptr;
  }));
  EXPECT_NE(memory.ended_because.find("memory nodes ask for nothing"), std::string::npos) << memory.ended_because;
}

TEST_F(TcpMemoryServer, ItTellsItsPeersThatItStops) {
  memory_node.server->stop();
  EXPECT_TRUE(until([&] { return peer.link == nullptr && other.link == nullptr; }));
  EXPECT_NE(peer.ended_because.find("the memory node stops"), std::string::npos) << peer.ended_because;
}

}  // namespace
}  // namespace coherence::tcp
