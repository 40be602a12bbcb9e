// A node and memory nodes: which batches end known, and which do not (tcp.link-over); what waits for room.
#include "coherence/transport/tcp/network_worker.hpp"

#include "loops.hpp"

namespace coherence::tcp {
namespace {

class TcpWorker : public testing::Test {
 protected:
  static constexpr int kPlaces = 4;
  void start(net::LinkTimes times = {}, uint32_t window = 4u << 20) {
    worker = gcl_test::must(
        NetworkWorker::make(port(), {.self = net::Who::node(NodeId{3}, 1), .window = window, .times = times},
                            net::Credentials::plain(), log, &problem),
        problem);
    for (MemoryNodeId n : {kZero, kOne})
      gcl_test::must(worker->memory().add(n, gcl_test::endpoints(served(n).address()), &problem), problem);
    memory = std::make_unique<TcpMemory>(port(), counters);
  }
  void TearDown() override {
    worker.reset();  // first: what is under way ends
    memory.reset();
  }
  Served& served(MemoryNodeId n) { return n == kZero ? zero : one; }
  void run_once() {
    if (worker) worker->run_once(0);
    for (Served* node : {&zero, &one})
      if (node->server) node->server->run_once(0);
    memory->poll();
  }
  template <class Condition>
  bool until(const Condition& condition) {
    return gcl_test::eventually([&] {
      run_once();
      return condition();
    });
  }
  bool ends(const Batch& batch) {
    return until([&] { return batch.done(); });
  }
  static std::unique_ptr<Batch> addition(MemoryNodeId node, uint64_t offset = 0) {
    auto batch = std::make_unique<Batch>(node);
    batch->faa(PoolAddress::at(node, offset), 1);
    return batch;
  }
  // A whole round trip, which succeeds.
  void works(MemoryNodeId node) {
    const auto batch = addition(node, 64);
    const uint64_t before = served(node).word(8);
    memory->post(*batch);
    ASSERT_TRUE(ends(*batch));
    ASSERT_TRUE(batch->known()) << log.all;
    EXPECT_EQ(batch->op(0).old, before);
    EXPECT_EQ(served(node).word(8), before + 1);
  }
  // A batch that is posted, and not carried out as long as the memory node does not run.
  std::unique_ptr<Batch> under_way(MemoryNodeId node) {
    auto batch = addition(node);
    memory->post(*batch);
    for (int i = 0; i < 5; i++) worker->run_once(0);
    EXPECT_FALSE(batch->done());
    return batch;
  }

  gcl_test::SocketDirectory directory;
  Served zero{directory, kZero}, one{directory, kOne};
  Lines log;
  Problem problem;
  Counters counters{};
  Port& port() { return port_.port(); }
  std::unique_ptr<NetworkWorker> worker;
  std::unique_ptr<TcpMemory> memory;

 private:
  gcl_test::SharedPort port_{kPlaces};
};

TEST_F(TcpWorker, BatchesThatArePostedBeforeThereIsAConnectionAreCarriedOut) {
  start();
  const auto first = addition(kZero), second = addition(kOne);
  memory->post(*first), memory->post(*second);
  EXPECT_TRUE(ends(*first) && ends(*second));
  EXPECT_TRUE(first->known() && second->known()) << log.all;
  EXPECT_EQ(zero.word(0), 1u);
  EXPECT_TRUE(log.tell("memory node 1"));
}

// One that has started anew does not know what had been asked of the former one.
TEST_F(TcpWorker, AMemoryNodeThatHasStartedAnewEndsTheLinkToItAndNoOther) {
  start();
  works(kZero), works(kOne);
  const auto lost = under_way(kOne);
  one.start();
  EXPECT_TRUE(ends(*lost));
  EXPECT_EQ(lost->state.load(), BatchState::kUnknown);
  const auto later = addition(kOne);
  memory->post(*later);
  EXPECT_TRUE(ends(*later));
  EXPECT_EQ(later->state.load(), BatchState::kUnknown) << "tcp.link-over: no later batch is sent";
  EXPECT_EQ(one.word(0), 0u);
  works(kZero);
}

TEST_F(TcpWorker, AMemoryNodeThatStopsEndsItsLink) {
  start();
  works(kOne);
  one.server->stop();
  const auto batch = addition(kOne);
  memory->post(*batch);
  EXPECT_TRUE(ends(*batch));
  EXPECT_EQ(batch->state.load(), BatchState::kUnknown);
  EXPECT_TRUE(log.tell("the memory node stops")) << log.all;
  works(kZero);
}

// tcp.lease
TEST_F(TcpWorker, ANodeThatEndsItsLinksWaitsForNothing) {
  start();
  works(kZero), works(kOne);
  const auto first = under_way(kZero), second = under_way(kOne);
  worker->memory().end("its lease is over");
  EXPECT_TRUE(ends(*first) && ends(*second));
  EXPECT_EQ(first->state.load(), BatchState::kUnknown);
  EXPECT_EQ(second->state.load(), BatchState::kUnknown);
  const auto later = addition(kZero);
  memory->post(*later);
  EXPECT_TRUE(ends(*later));
  EXPECT_EQ(later->state.load(), BatchState::kUnknown) << "no later batch is sent";
  EXPECT_TRUE(log.tell("its lease is over")) << log.all;
}

TEST_F(TcpWorker, AMemoryNodeThatIsAwayForTooLongEndsItsLink) {
  net::LinkTimes times;
  times.patience_ns = 100'000'000;
  start(times);
  works(kOne);
  const auto batch = under_way(kOne);
  one.server.reset();
  EXPECT_TRUE(ends(*batch));
  EXPECT_EQ(batch->state.load(), BatchState::kUnknown);
  works(kZero);
}

TEST_F(TcpWorker, AMemoryNodeThatWasNeverThereEndsWhatIsPostedToIt) {
  one.server.reset();
  net::LinkTimes times;
  times.patience_ns = 100'000'000;
  start(times);
  const auto batch = addition(kOne);
  memory->post(*batch);
  EXPECT_TRUE(ends(*batch));
  EXPECT_EQ(batch->state.load(), BatchState::kUnknown);
  works(kZero);
}

TEST_F(TcpWorker, AWorkerThatEndsLeavesNoBatchBehind) {
  start();
  works(kOne);
  const auto sent = under_way(kOne), posted = addition(kZero);
  memory->post(*posted);
  worker.reset();
  EXPECT_FALSE(memory->wait(*sent).ok());
  EXPECT_FALSE(memory->wait(*posted).ok());
  EXPECT_FALSE(memory->faa(PoolAddress::at(kZero, 0), 1).ok());
  EXPECT_TRUE(until([&] { return one.server->figures().links == 0; })) << one.log.all;
  EXPECT_TRUE(one.log.tell("the node ends")) << one.log.all;
}

// As long as results have room only: a window holds one result and a half.
TEST_F(TcpWorker, BatchesWhoseResultsHaveNoRoomWait) {
  constexpr uint32_t kWindow = 1 << 20;
  one.start({}, kWindow);
  start({}, kWindow);
  std::vector<std::unique_ptr<Batch>> batches;
  std::vector<std::vector<std::byte>> pages;
  for (uint64_t i = 0; i < kRegionBytes / 8; i++) one.word(i) = i * 7;
  for (int i = 0; i < 20; i++) {
    batches.push_back(std::make_unique<Batch>(kOne));
    pages.emplace_back(size_t(kBatchOpsMax) * kPageSize);
    for (int n = 0; n < kBatchOpsMax; n++) {
      batches.back()->read(PoolAddress::at(kOne, 0), pages.back().data() + n * kPageSize, kPageSize);
      batches.back()->op(n).registered = true;
    }
    memory->post(*batches.back());
  }
  for (const auto& batch : batches) {
    ASSERT_TRUE(ends(*batch));
    EXPECT_TRUE(batch->known()) << log.all << one.log.all;
  }
  for (const auto& page : pages)
    for (int n = 0; n < kBatchOpsMax; n++) ASSERT_EQ(memcmp(page.data() + n * kPageSize, one.bytes(), kPageSize), 0);
}

// Large requests: as long as they have room only.
TEST_F(TcpWorker, BatchesThatHaveNoRoomWait) {
  constexpr uint32_t kWindow = 1 << 20;
  start({}, kWindow);
  std::vector<std::unique_ptr<Batch>> batches;
  std::vector<std::byte> page(kPageSize, std::byte{0x5a});
  for (int i = 0; i < 20; i++) {
    batches.push_back(std::make_unique<Batch>(kOne));
    while (batches.back()->room() > 1) batches.back()->write(PoolAddress::at(kOne, kPageSize), page.data(), kPageSize);
    for (int n = 0; n < batches.back()->size(); n++) batches.back()->op(n).registered = true;
    batches.back()->faa(PoolAddress::at(kOne, 0), 1);
    memory->post(*batches.back());
  }
  for (size_t i = 0; i < batches.size(); i++) {
    ASSERT_TRUE(ends(*batches[i]));
    ASSERT_TRUE(batches[i]->known()) << log.all << one.log.all;
    EXPECT_EQ(batches[i]->op(kBatchOpsMax - 1).old, i) << "one link carries them in order";
  }
  EXPECT_EQ(memcmp(one.bytes() + kPageSize, page.data(), kPageSize), 0);
}

TEST_F(TcpWorker, ABatchToAMemoryNodeThatIsNotKnownHasNoKnownOutcome) {
  start();
  const auto batch = addition(MemoryNodeId{9});
  memory->post(*batch);
  EXPECT_TRUE(ends(*batch));
  EXPECT_FALSE(batch->known());
}

// tcp.nothing-believed, here about a memory node.
class TcpLiar : public TcpWorker {
 protected:
  void SetUp() override {
    one.server.reset();
    unlink(one.address().c_str() + strlen("unix:"));
    gcl_test::must(liar.links->listen(gcl_test::endpoints(one.address()), &problem), problem);
    start();
  }
  // The answer to a batch ends its link.
  void refused(std::span<const std::byte> frame, uint16_t type, const std::string& because) {
    Batch batch(kOne);
    batch.faa(PoolAddress::at(kOne, 0), 1);
    batch.read(PoolAddress::at(kOne, 0), local, sizeof local);
    memory->post(batch);
    ASSERT_TRUE(until([&] {
      liar.links->wait(0);
      return !liar.frames.empty();
    }));
    ASSERT_TRUE(liar.link->send(type, frame).ok());
    ASSERT_TRUE(until([&] {
      liar.links->wait(0);
      return batch.done();
    }));
    EXPECT_EQ(batch.state.load(), BatchState::kUnknown);
    for (const std::byte byte : local) EXPECT_EQ(byte, std::byte{});
    EXPECT_TRUE(log.tell("memory node 1")) << log.all;
    EXPECT_TRUE(log.tell(because)) << log.all;
    works(kZero);
  }
  RawPeer liar{net::Who::memory_node(kOne, 1)};
  std::byte local[64] = {};
};

TEST_F(TcpLiar, AResultThatIsTooShort) {
  const FrameHead head{0, kOne, 2, 0};
  std::byte frame[sizeof head + 8 + sizeof local - 1] = {};
  memcpy(frame, &head, sizeof head);
  memset(frame + sizeof head, 0xff, sizeof frame - sizeof head);
  refused(frame, kResultFrame, "a result of another length");
}

TEST_F(TcpLiar, AResultOfAnotherBatch) {
  const FrameHead head{1, kOne, 2, 0};
  refused(std::as_bytes(std::span(&head, 1)), kResultFrame, "a result of another batch");
}

TEST_F(TcpLiar, AFrameOfAnotherType) { refused(std::span<const std::byte>(), kRequestFrame, "a frame of type 1"); }

TEST_F(TcpLiar, AResultThatNobodyWaitsFor) {
  ASSERT_TRUE(until([&] {
    liar.links->wait(0);
    return liar.link != nullptr && liar.link->connected();
  }));
  const FrameHead head{0, kOne, 0, 0};
  ASSERT_TRUE(liar.link->send(kResultFrame, std::as_bytes(std::span(&head, 1))).ok());
  EXPECT_TRUE(until([&] {
    liar.links->wait(0);
    return liar.link == nullptr;
  }));
  EXPECT_TRUE(log.tell("a result that nobody waits for")) << log.all;
}

}  // namespace
}  // namespace coherence::tcp
