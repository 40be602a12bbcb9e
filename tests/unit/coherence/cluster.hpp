// Several nodes in one process over one pool file, for tests: each with a page directory, lines and a worker thread.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "coherence/base/racy_copy.hpp"
#include "coherence/eviction_window.hpp"
#include "coherence/member/node.hpp"
#include "coherence/region/pool_outline.hpp"
#include "coherence/region/saved_file.hpp"
#include "coherence/session.hpp"
#include "coherence/transport/shm/local_pool.hpp"
#include "coherence/transport/shm/mapped_pool.hpp"
#include "coherence/transport/shm/shm_transport.hpp"
#include "tests/support/tcp_cluster.hpp"

namespace coherence {

inline constexpr uint16_t kWorkerSession = 15;

class TestDirectory : public FrameDirectory {
 public:
  // So many pages in each of three memory nodes.
  explicit TestDirectory(uint32_t pages) : pages_(pages), lines_(3 * pages) {}
  Line* find(PageId page) noexcept override { return at(page).load(std::memory_order_acquire); }
  void lost(Line&) noexcept override { losses++; }
  std::atomic<Line*>& at(PageId page) { return lines_[page.node().value * pages_ + page.number()]; }

  std::atomic<int> losses{0};

 private:
  uint64_t pages_;
  std::vector<std::atomic<Line*>> lines_;
};

class TestHorizon : public LogHorizon {
 public:
  Lsn flushed() noexcept override { return {flushed_lsn.load()}; }
  void request_flush(Lsn lsn) noexcept override { requested.store(lsn.value); }
  std::atomic<uint64_t> flushed_lsn{0}, requested{0};
};

class TestInterrupts : public Interrupts {
 public:
  bool pending() noexcept override { return raised.load(); }
  std::atomic<bool> raised{false};
};

struct TestNode {
  TestNode(Pool& pool, NodeId id, uint32_t frames, Transport& transport = shm_transport())
      : directory(uint32_t(pool.pages(MemoryNodeId{0}))) {
    Problem problem;
    auto joined =
        Node::join(pool, id, {.frames = frames, .sessions_max = 16, .private_bytes = 4096}, &problem, transport);
    EXPECT_TRUE(joined.ok()) << problem.text;
    node = joined.take();
    node->set_upcalls(&directory, &horizon);
    for (uint32_t i = 0; i < frames; i++) free.push_back(&node->line(i));
  }
  ~TestNode() { stop(); }
  void start() {
    worker = std::thread([this] {
      Session session(*node, SessionId{kWorkerSession}, nullptr);
      while (!stopping.load())
        if (!session.serve(20)) break;
    });
  }
  void stop() {
    stopping = true;
    if (worker.joinable()) node->ring(), worker.join();
  }
  // The line of a page, published; its bytes come with the first lock.
  Line& line(Session& session, PageId page) {
    if (Line* l = directory.find(page)) return *l;
    std::lock_guard guard(mutex);
    if (Line* l = directory.find(page)) return *l;
    EXPECT_FALSE(free.empty());
    Line* l = free.back();
    free.pop_back();
    EXPECT_TRUE(session.assign(*l, page, [&] { directory.at(page).store(l, std::memory_order_release); }).ok());
    return *l;
  }
  bool evict(Session& session, PageId page) {
    Line* l = directory.find(page);
    if (!l || !session.try_evict(*l, page)) return false;
    unpublish(session, *l, page);
    return true;
  }
  // After coherence gave the page up.
  void unpublish(Session& session, Line& line, PageId page) {
    std::lock_guard guard(mutex);
    directory.at(page).store(nullptr);
    session.finish_evict(line);
    free.push_back(&line);
  }
  uint64_t count(Counter c) const {
    uint64_t n = 0;
    for (uint16_t s = 0; s < 16; s++) n += node->counters(SessionId{s}).get(c);
    return n;
  }

  TestDirectory directory;
  TestHorizon horizon;
  std::unique_ptr<Node> node;
  std::mutex mutex;
  std::vector<Line*> free;
  std::atomic<bool> stopping{false};
  std::thread worker;
};

// Frees the frames of what was evicted, and knows what that was.
class TestTaker : public FrameTaker {
 public:
  TestTaker(TestNode& node, Session& session) : node_(node), session_(session) {}
  void take(Line& line, PageId page) noexcept override {
    taken.push_back(page);
    node_.unpublish(session_, line, page);
  }
  std::vector<PageId> taken;

 private:
  TestNode& node_;
  Session& session_;
};

class ClusterTest : public testing::Test {
 protected:
  static constexpr uint32_t kPages = 64;
  void SetUp() override {
    static int serial = 0;
    path = "/dev/shm/gcl-test-" + std::to_string(getpid()) + "-" + std::to_string(serial++);
    durable = path + ".durable";
    PoolSpec spec{.nodes_max = nodes_max, .compatibility = "version=15\nlocale=C\n"};
    spec.region_bytes[kRegionPages] = kPages * kPageSize;
    spec.region_bytes[3] = 4096;
    spec.memory_nodes = 2;
    spec.further_pages_bytes = kPages * kPageSize;
    spec.repairs_deaths = repairs_deaths;
    spec.records_deaths = records_deaths;
    Problem problem;
    auto made = LocalPool::create(files(), spec, &problem);
    ASSERT_TRUE(made.ok()) << problem.text;
    pool = made.take();
  }
  void TearDown() override {
    for (auto& n : nodes) n->stop();  // before any arena is unmapped: they see each other's
    if (peers) peers->end();
    nodes.clear();
    peers.reset();
    pool.reset();
    if (system(("rm -f " + path + "*").c_str()) != 0) {
    }
  }
  PoolFiles files() const { return {path.c_str(), durable.c_str(), "version=15\nlocale=C\n"}; }
  TestNode& add_node(uint32_t frames = 16, bool start = true) {
    NodeId id{uint8_t(nodes.size())};
    nodes.push_back(std::make_unique<TestNode>(*pool, id, frames, transport()));
    Node& fresh = *nodes.back()->node;
    if (peers) peers->begin(fresh);
    for (auto& other : nodes)
      if (!peers && other->node && other->node.get() != &fresh) share_mapping(*other->node, fresh);
    if (start) nodes.back()->start();
    return *nodes.back();
  }
  // What GCL_TRANSPORT says: tcp; verbs; tcp_messages, whose batches are carried out at once; else shm.
  Transport& transport() {
    using Batches = gcl_test::PeersTransport::Batches;
    const char* name = getenv("GCL_TRANSPORT");
    if (name == nullptr) return shm_transport();
    const Batches batches = strcmp(name, "tcp") == 0     ? Batches::kTravel
                            : strcmp(name, "verbs") == 0 ? Batches::kByVerbs
                                                         : Batches::kAtOnce;
    if (!peers) peers = std::make_unique<gcl_test::PeersTransport>(batches);
    return *peers;
  }
  static PageId page(uint64_t n, uint8_t memory_node = 0) { return PageId::at(MemoryNodeId{memory_node}, n); }

  uint32_t nodes_max = 8;
  bool repairs_deaths = false, records_deaths = false;
  std::string path, durable;
  std::unique_ptr<Pool> pool;
  std::unique_ptr<gcl_test::PeersTransport> peers;  // null: shm
  std::vector<std::unique_ptr<TestNode>> nodes;
};

// Helpers on a latched page: a counter in its first word, changed as a mini-transaction would.
inline uint64_t read_word(Node& node, Line& line, uint32_t offset = 0) {
  uint64_t v;
  racy_copy(&v, node.frame(line) + offset, 8);
  return v;
}
inline void write_word(Node& node, Line& line, uint64_t v, Lsn lsn = {}, uint32_t offset = 0) {
  racy_copy(node.frame(line) + offset, &v, 8);
  uint64_t mask[2] = {0, 0};
  mask[offset / 64 / 64] = uint64_t{1} << offset / 64 % 64;
  line.note_change(mask, lsn, 1);
}

}  // namespace coherence
