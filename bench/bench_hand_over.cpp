// Hand-overs of a page between two nodes of one process, one after the other: by shm; with messages that travel, over
// unix sockets; with batches that travel, too; and with those that go by queue pairs, where GCL_RDMA says which.  Each
// is what a session waits for that wants to write what the other node has just written.
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <memory>
#include <string>

#include "tests/unit/coherence/cluster.hpp"

namespace coherence {
namespace {

enum class Way { kShm, kMessages, kAll, kVerbs };
constexpr const char* kNames[] = {"shm", "messages", "messages and batches", "messages, and batches by verbs"};
constexpr gcl_test::PeersTransport::Batches kBatches[] = {{},
                                                          gcl_test::PeersTransport::Batches::kAtOnce,
                                                          gcl_test::PeersTransport::Batches::kTravel,
                                                          gcl_test::PeersTransport::Batches::kByVerbs};

class Nodes {
 public:
  explicit Nodes(Way way) {
    static int serial = 0;
    path_ = "/dev/shm/gcl-bench-" + std::to_string(getpid()) + "-" + std::to_string(serial++);
    PoolSpec spec{.nodes_max = 2, .compatibility = ""};
    spec.region_bytes[kRegionPages] = 64 * kPageSize;
    Problem problem;
    pool_ = gcl_test::must(LocalPool::create({.path = path_.c_str()}, spec, &problem), problem);
    if (way != Way::kShm) peers_ = std::make_unique<gcl_test::PeersTransport>(kBatches[int(way)]);
    for (uint8_t n = 0; n < 2; n++) {
      Transport& transport = peers_ ? static_cast<Transport&>(*peers_) : shm_transport();
      node[n] = std::make_unique<TestNode>(*pool_, NodeId{n}, 64, transport);
      if (peers_) peers_->begin(*node[n]->node);
    }
    if (!peers_) share_mapping(*node[0]->node, *node[1]->node);
    for (const auto& n : node) n->start();
    for (int n = 0; n < 2; n++) session[n] = std::make_unique<Session>(*node[n]->node, SessionId{0}, nullptr);
  }
  ~Nodes() {
    for (auto& s : session) s.reset();
    for (const auto& n : node) n->stop();
    if (peers_) peers_->end();
    for (auto& n : node) n.reset();
    peers_.reset();
    pool_.reset();
    if (system(("rm -f " + path_ + "*").c_str()) != 0) perror(path_.c_str());
  }
  Nodes(const Nodes&) = delete;
  // Node n writes the page.
  bool write(int n, PageId page) {
    Line& line = node[n]->line(*session[n], page);
    if (!session[n]->lock_exclusive(line, page)) return false;
    write_word(*node[n]->node, line, read_word(*node[n]->node, line) + 1);
    session[n]->unlock_exclusive(line);
    return true;
  }
  bool read(int n, PageId page) {
    Line& line = node[n]->line(*session[n], page);
    if (!session[n]->lock_shared(line, page)) return false;
    session[n]->unlock_shared(line);
    return true;
  }

  std::unique_ptr<TestNode> node[2];
  std::unique_ptr<Session> session[2];

 private:
  std::string path_;
  std::unique_ptr<Pool> pool_;
  std::unique_ptr<gcl_test::PeersTransport> peers_;
};

// `act(nodes, page)` has a page go over; pages take turns, so that none is still bound by the last one.
template <class Act>
void run(benchmark::State& state, Act act) {
  Nodes nodes{Way(state.range(0))};
  constexpr uint64_t kPages = 8;
  uint64_t turn = 0;
  for (uint64_t p = 0; p < kPages; p++)
    if (!nodes.write(0, PageId::at(MemoryNodeId{0}, p))) abort();
  for (auto _ : state) {
    const uint64_t now = turn++;
    if (!act(nodes, PageId::at(MemoryNodeId{0}, now % kPages), int(now / kPages % 2))) abort();
  }
  state.SetLabel(kNames[state.range(0)]);
}

void hand_over(benchmark::State& state) {
  run(state, [](Nodes& nodes, PageId page, int turn) { return nodes.write(!turn, page); });
}
// The owner keeps a share; then it writes again, and the other's share goes.
void share_and_take_back(benchmark::State& state) {
  run(state, [](Nodes& nodes, PageId page, int turn) { return turn ? nodes.write(0, page) : nodes.read(1, page); });
}
void ways(benchmark::internal::Benchmark* benchmark) {
  benchmark->DenseRange(0, int(gcl_test::rdma_addresses() ? Way::kVerbs : Way::kAll))->UseRealTime();
}
BENCHMARK(hand_over)->Apply(ways);
BENCHMARK(share_and_take_back)->Apply(ways);

}  // namespace
}  // namespace coherence

BENCHMARK_MAIN();
