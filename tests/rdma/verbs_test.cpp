// What only queue pairs have: their errors, their ends, and which node gets one.  Run in the guest (README.md), with a
// node at one end of the cable and memory nodes at the other.
#include <gtest/gtest.h>
#include <net/if.h>
#include <signal.h>
#include <sys/ioctl.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/cutting_proxy.hpp"
#include "verbs_loops.hpp"

namespace coherence::verbs {
namespace {

// The cable's end at the memory nodes.
void set_cable(bool up) {
  const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  ifreq request = {};
  snprintf(request.ifr_name, sizeof request.ifr_name, "rdma1");
  ASSERT_EQ(ioctl(fd, SIOCGIFFLAGS, &request), 0);
  request.ifr_flags = short(up ? request.ifr_flags | IFF_UP : request.ifr_flags & ~IFF_UP);
  ASSERT_EQ(ioctl(fd, SIOCSIFFLAGS, &request), 0);
  close(fd);
  if (!up) return;
  ASSERT_EQ(system("ip -4 route replace 10.77.0.1 dev rdma1 table 71"), 0);  // it went with the end
}

}  // namespace

// verbs.error-is-unknown.  The log names memory node, address and what the device said.
TEST(Verbs, AnErrorIsUnknownForAllThatIsUnderWayAndEndsTheLink) {
  const gcl_test::SocketDirectory directory;
  Served served(directory);
  Worked node(served.address());
  Batch before(kZero), bad(kZero), behind(kZero);
  before.faa(at(0), 1);
  node.memory->post(before);
  ASSERT_TRUE(until(served, node, [&] { return before.done(); }));
  EXPECT_TRUE(before.known());
  EXPECT_EQ(served.server->figures().paths, 1u);
  bad.faa(at(0), 1);
  bad.faa(at(kBytes), 1);
  behind.faa(at(8), 1);
  Batch* both[] = {&bad, &behind};
  node.memory->post(both, 2);
  ASSERT_TRUE(until(served, node, [&] { return bad.done() && behind.done(); }));
  EXPECT_FALSE(bad.known());
  EXPECT_FALSE(behind.known());
  EXPECT_EQ(served.word(0), 2u) << "what came in front of the error took place";
  EXPECT_EQ(served.word(8), 0u);
  EXPECT_TRUE(until(served, node, [&] { return node.worker->memory().link(kZero) == nullptr; }));
  EXPECT_TRUE(node.log.tell("memory node 0")) << node.log.all;
  EXPECT_TRUE(node.log.tell(addresses().memory_node)) << node.log.all;
  EXPECT_TRUE(node.log.tell("remote access error")) << node.log.all;
  EXPECT_TRUE(until(served, node, [&] { return served.server->figures().paths == 0; }));
  Batch later(kZero);
  later.faa(at(0), 1);
  node.memory->post(later);
  ASSERT_TRUE(until(served, node, [&] { return later.done(); }));
  EXPECT_FALSE(later.known());
  EXPECT_EQ(served.word(0), 2u);
}

// An atomic beside a word is refused by the device.
TEST(Verbs, AnAtomicThatIsOnNoWordIsUnknown) {
  const gcl_test::SocketDirectory directory;
  Served served(directory);
  Worked node(served.address());
  Batch bad(kZero);
  bad.faa(at(4), 1);
  node.memory->post(bad);
  ASSERT_TRUE(until(served, node, [&] { return bad.done(); }));
  EXPECT_FALSE(bad.known());
  EXPECT_EQ(served.word(0), 0u);
}

// Of a node that goes on writing nothing takes place when its link is over, whatever was on its way (tcp.path-of-link,
// verbs.gone-for-certain).
TEST(Verbs, NothingOfADeadNodeTakesPlaceAfterItsLink) {
  const gcl_test::SocketDirectory directory;
  Served served(directory);
  for (uint64_t round = 1; round <= 12; round++) {
    RawNode node(served, round);
    const auto run_once = [&] {
      node.run_once();
      served.server->run_once(0);
    };
    ASSERT_TRUE(eventually([&] {
      run_once();
      return node.has_pair();
    }));
    node.connect();
    std::atomic<uint64_t> complete{0};
    std::atomic<bool> over{false};
    std::atomic<ibv_wc_status> refused{IBV_WC_SUCCESS};
    std::thread writer([&] { refused = node.write_until_refused(&complete, over); });
    EXPECT_TRUE(eventually([&] { return complete.load() >= 2 + round % 3; }));
    const int ends = served.members.ends;
    node.send(99, {});  // the memory node ends the link of a node that sends that
    EXPECT_TRUE(eventually([&] {
      run_once();
      return served.members.ends > ends;
    }));
    const std::vector<std::byte> then = served.members.as_of_end;
    EXPECT_TRUE(round > 1 || eventually([&] { return refused.load() == IBV_WC_RETRY_EXC_ERR; }));
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    EXPECT_EQ(memcmp(then.data(), served.bytes(), kBytes), 0) << "in round " << round;
    EXPECT_NE(then[0], std::byte{0});
    EXPECT_EQ(served.server->figures().paths, 0u);
    over.store(true);
    writer.join();
  }
}

// A node that is not admitted (verbs.no-pair-no-access).
TEST(Verbs, ANodeThatMayNotHaveBatchesCarriedOutGetsNoQueuePair) {
  const gcl_test::SocketDirectory directory;
  Served served(directory);
  served.members.admits = false;
  RawNode node(served, 1);
  ASSERT_TRUE(eventually([&] {
    node.run_once();
    served.server->run_once(0);
    return node.over();
  }));
  EXPECT_FALSE(node.has_pair());
  EXPECT_NE(node.reason().find("cut off"), std::string::npos) << node.reason();
  EXPECT_EQ(served.server->figures().paths, 0u);
}

// verbs.one-pair-per-memory-node
TEST(Verbs, ANodeThatAsksForASecondQueuePairLosesTheFirst) {
  const gcl_test::SocketDirectory directory;
  Served served(directory);
  RawNode node(served, 1);
  const auto run_once = [&] {
    node.run_once();
    served.server->run_once(0);
  };
  ASSERT_TRUE(eventually([&] {
    run_once();
    return node.has_pair();
  }));
  EXPECT_EQ(served.server->figures().paths, 1u);
  PathEnd another;
  another.number = 77;
  another.mtu = IBV_MTU_1024;
  another.reads = 1;
  node.send(tcp::kAskPathFrame, bytes_of(another));
  ASSERT_TRUE(eventually([&] {
    run_once();
    return node.over();
  }));
  EXPECT_EQ(served.server->figures().paths, 0u);
}

// Both sides are of one kind, and the log says what is wrong (tcp.one-data-path).
TEST(Verbs, NodesAndMemoryNodesAreOfOneTransport) {
  const gcl_test::SocketDirectory directory;
  for (const bool verbs : {true, false}) {
    Served served(directory, verbs);
    Worked node(served.address(), !verbs);
    Batch batch(kZero);
    batch.faa(at(0), 1);
    node.memory->post(batch);
    ASSERT_TRUE(until(served, node, [&] { return batch.done(); }));
    EXPECT_FALSE(batch.known());
    EXPECT_EQ(served.word(0), 0u);
    EXPECT_TRUE(node.log.tell(verbs ? "reached by verbs alone" : "reached over tcp alone")) << node.log.all;
    served.server.reset();
    unlink((directory.path() + "/m").c_str());
  }
}

// The frames of a node are registered: pages travel from and to them.
TEST(Verbs, PagesTravelFromAndToFrames) {
  const gcl_test::SocketDirectory directory;
  const gcl_test::SharedBytes region(kBytes), frames(64 * kPageSize);
  const gcl_test::ServedNode memory_node({.id = kZero,
                                          .at = region.at(),
                                          .bytes = kBytes,
                                          .listen = directory.socket("m"),
                                          .key = directory.key(),
                                          .access = gcl_test::access_at(addresses().memory_node)});
  gcl_test::WorkedPort node({.memory_nodes = {{kZero, memory_node.address()}},
                             .key = directory.key(),
                             .path = gcl_test::path_at(addresses().node, {frames.at(), 64 * kPageSize})});
  Counters counters{};
  TcpMemory memory(node.port(), counters);
  for (uint64_t i = 0; i < 64; i++) memset(frames.at() + i * kPageSize, int(i + 1), kPageSize);
  Batch out(kZero);
  for (uint64_t i = 0; i < 32; i++) {
    out.write(at(i * kPageSize), frames.at() + i * kPageSize, kPageSize);
    out.op(int(i)).registered = true;
  }
  ASSERT_TRUE(memory.run(out).ok());
  Batch in(kZero);
  for (uint64_t i = 0; i < 32; i++) {
    in.read(at(i * kPageSize), frames.at() + (32 + i) * kPageSize, kPageSize);
    in.op(int(i)).registered = true;
  }
  ASSERT_TRUE(memory.run(in).ok());
  EXPECT_EQ(memcmp(frames.at(), frames.at() + 32 * kPageSize, 32 * kPageSize), 0);
  EXPECT_EQ(memcmp(frames.at(), region.at(), 32 * kPageSize), 0);
  EXPECT_EQ(memory_node.batches(), 0u) << "the memory node's process has no part in it";
}

namespace {

// Sessions that add to a word of all and to one of their own, until told.
class Adders {
 public:
  Adders(tcp::Port& port, int count) {
    for (int s = 0; s < count; s++)
      threads_.emplace_back([this, &port, s] {
        Counters counters{};
        TcpMemory memory(port, counters);
        while (!over_.load()) {
          Batch batch(kZero);
          batch.faa(at(0), 1);
          const int own = batch.faa(at(uint64_t(s + 1) * 64), 1);
          if (!memory.run(batch).ok()) {
            unknown++;
            return;
          }
          EXPECT_EQ(batch.op(own).old, mine_[s]) << "not once";
          mine_[s]++;
          added++;
        }
      });
  }
  void join() {
    over_.store(true);
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }
  std::atomic<uint64_t> added{0}, unknown{0};

 private:
  std::atomic<bool> over_{false};
  uint64_t mine_[8] = {};
  std::vector<std::thread> threads_;
};

}  // namespace

// A link that breaks and comes again harms nothing: batches do not go by it.
TEST(Verbs, BatchesGoOnThoughTheConnectionsOfTheLinkBreak) {
  const gcl_test::SocketDirectory directory;
  const gcl_test::SharedBytes region(kBytes);
  const gcl_test::ServedNode memory_node({.id = kZero,
                                          .at = region.at(),
                                          .bytes = kBytes,
                                          .listen = directory.socket("m"),
                                          .times = {.silence_ns = 60'000'000},
                                          .access = gcl_test::access_at(addresses().memory_node)});
  const gcl_test::CuttingProxy proxy(directory.path() + "/proxy", directory.path() + "/m", 400, 5);
  gcl_test::WorkedPort node({.memory_nodes = {{kZero, directory.socket("proxy")}},
                             .times = {.silence_ns = 60'000'000},
                             .path = gcl_test::path_at(addresses().node)});
  Adders adders(node.port(), 3);
  EXPECT_TRUE(eventually([&] { return proxy.cuts() >= 5 && adders.added.load() > 100; }));
  adders.join();
  EXPECT_EQ(adders.unknown.load(), 0u);
  uint64_t sum;
  memcpy(&sum, region.at(), sizeof sum);
  EXPECT_EQ(sum, adders.added.load());
}

// A network that is away for a moment is a pause: what was sent is sent again, and done once.
// Whether it went unnoticed; in any case all is there that was said to be.
static bool goes_on_behind_a_cable_that_is_out_for_a_moment() {
  constexpr std::chrono::seconds kLongest{90};  // behind verbs.no-batch-for-ever
  const gcl_test::SocketDirectory directory;
  const gcl_test::SharedBytes region(kBytes);
  const gcl_test::ServedNode memory_node({.id = kZero,
                                          .at = region.at(),
                                          .bytes = kBytes,
                                          .listen = directory.socket("m"),
                                          .access = gcl_test::access_at(addresses().memory_node)});
  gcl_test::WorkedPort node(
      {.memory_nodes = {{kZero, memory_node.address()}}, .path = gcl_test::path_at(addresses().node)});
  Adders adders(node.port(), 3);
  const auto goes_on = [&] {
    const uint64_t before = adders.added.load();
    EXPECT_TRUE(eventually([&] { return adders.added.load() > before + 50 || adders.unknown.load() != 0; }, kLongest));
  };
  for (int i = 0; i < 3; i++) {
    goes_on();
    set_cable(false);
    std::this_thread::sleep_for(std::chrono::milliseconds(400));
    set_cable(true);
  }
  goes_on();
  adders.join();
  uint64_t sum;
  memcpy(&sum, region.at(), sizeof sum);
  EXPECT_GE(sum, adders.added.load());
  EXPECT_LE(sum, adders.added.load() + adders.unknown.load());
  return adders.unknown.load() == 0;
}

// The software device now and then stops sending for good; then what was under way is unknown.
TEST(Verbs, ACableThatIsOutForAMomentLosesNothing) {
  bool unnoticed = false;
  for (int i = 0; i < 3 && !unnoticed; i++) unnoticed = goes_on_behind_a_cable_that_is_out_for_a_moment();
  EXPECT_TRUE(unnoticed);
}

// One that stays away, and a memory node that is killed: batches under way end unknown, and soon.
TEST(Verbs, WhatIsUnderWayEndsUnknownWhenTheOtherSideIsGone) {
  for (const bool killed : {false, true}) {
    const gcl_test::SocketDirectory directory;
    const gcl_test::SharedBytes region(kBytes);
    const gcl_test::ServedNode memory_node({.id = kZero,
                                            .at = region.at(),
                                            .bytes = kBytes,
                                            .listen = directory.socket("m"),
                                            .access = gcl_test::access_at(addresses().memory_node)});
    gcl_test::WorkedPort node(
        {.memory_nodes = {{kZero, memory_node.address()}}, .path = gcl_test::path_at(addresses().node)});
    Adders adders(node.port(), 3);
    EXPECT_TRUE(eventually([&] { return adders.added.load() > 50; }));
    killed ? void(kill(memory_node.pid(), SIGKILL)) : set_cable(false);
    const auto began = std::chrono::steady_clock::now();
    EXPECT_TRUE(eventually([&] { return adders.unknown.load() == 3; }));
    const auto took = std::chrono::steady_clock::now() - began;
    EXPECT_LT(took, std::chrono::seconds(20));
    printf("%s: unknown after %.1f s\n", killed ? "killed" : "cut", std::chrono::duration<double>(took).count());
    if (!killed) set_cable(true);
    adders.join();
    uint64_t sum;
    memcpy(&sum, region.at(), sizeof sum);
    EXPECT_GE(sum, adders.added.load());
    EXPECT_LE(sum, adders.added.load() + 3) << "each unknown one took place or not";
  }
}

}  // namespace coherence::verbs
