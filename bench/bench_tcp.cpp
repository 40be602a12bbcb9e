// Batches over shm and over tcp, on one machine, and by queue pairs where GCL_RDMA says which (tests/rdma): round trips
// of one session, of several at once, and batches under way together.  us_of_worker, us_of_memory: CPU time per batch
// of the network worker and of the memory node.
//
// A network of its own adds its distance; what is seen here is the work that each batch takes.
#include <benchmark/benchmark.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "coherence/transport/shm/shm_memory.hpp"
#include "coherence/transport/tcp/memory/tcp_memory.hpp"
#include "tests/support/verbs_nodes.hpp"

namespace coherence {
namespace {

enum class Way { kShm, kUnix, kLoopback, kProtected, kVerbs };
constexpr const char* kNames[] = {"shm", "unix", "loopback", "tls", "verbs"};
constexpr MemoryNodeId kHere{0};
constexpr uint64_t kRegion = 64 << 20;
constexpr int kSessions = 8, kUnderWay = 16;
constexpr uint64_t kFramesBytes = uint64_t{kSessions} * kUnderWay * kPageSize;
constexpr PoolAddress kWord = PoolAddress::at(kHere, 0);

// What a benchmark runs on; made while there are no threads, as processes are forked.
class Rig {
 public:
  explicit Rig(Way way) {
    if (way == Way::kShm) return;
    const std::string key = way == Way::kProtected ? directory_.key() : "";
    const std::string listen = way == Way::kUnix ? directory_.socket("memory") : "127.0.0.1:0";
    gcl_test::ServedNode::Spec memory_node{
        .id = kHere, .at = region_.at(), .bytes = kRegion, .listen = listen, .key = key};
    const auto rdma = way == Way::kVerbs ? gcl_test::rdma_addresses() : std::nullopt;
    if (rdma) memory_node.access = gcl_test::access_at(rdma->memory_node);
    memory_node_ = std::make_unique<gcl_test::ServedNode>(memory_node);
    gcl_test::WorkedPort::Spec node{
        .places = kSessions, .memory_nodes = {{kHere, memory_node_->address()}}, .key = key};
    if (rdma) node.path = gcl_test::path_at(rdma->node, {frames_.at(), kFramesBytes});
    node_ = std::make_unique<gcl_test::WorkedPort>(node);
  }
  std::unique_ptr<Memory> session(Counters& counters) {
    if (node_ == nullptr) return std::make_unique<ShmMemory>(map_, counters);
    return std::make_unique<tcp::TcpMemory>(node_->port(), counters);
  }
  // Memory of the node that all its processes share: page i.
  std::byte* frame(int i) { return frames_.at() + i * kPageSize; }

  struct Used {
    uint64_t worker = 0, memory = 0;
  };
  Used used() {  // by now; it is told some milliseconds later
    if (node_ == nullptr) return {};
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    return {node_->cpu_ns(), memory_node_->cpu_ns()};
  }

 private:
  gcl_test::SocketDirectory directory_;
  gcl_test::SharedBytes region_{kRegion}, frames_{kFramesBytes};
  gcl_test::OneRegion map_{kHere, region_.at()};
  std::unique_ptr<gcl_test::ServedNode> memory_node_;
  std::unique_ptr<gcl_test::WorkedPort> node_;
};
std::unique_ptr<Rig> rig;

void begin(const benchmark::State& state) { rig = std::make_unique<Rig>(Way(state.range(0))); }
void end(const benchmark::State&) { rig.reset(); }

// `act(memory, thread)` posts batches, and waits for them; how many.
template <class Act>
void run(benchmark::State& state, Act act) {
  Counters counters{};
  const auto memory = rig->session(counters);
  (void)memory->load(kWord);  // it is connected
  const bool first = state.thread_index() == 0;
  const Rig::Used before = first ? rig->used() : Rig::Used();
  uint64_t batches = 0;
  for (auto _ : state) batches += uint64_t(act(*memory, state.thread_index()));
  state.counters["batches"] = benchmark::Counter(double(batches), benchmark::Counter::kIsRate);
  if (first) {
    const Rig::Used after = rig->used();
    const double all = double(batches) * state.threads();
    state.counters["us_of_worker"] = double(after.worker - before.worker) / all / 1000;
    state.counters["us_of_memory"] = double(after.memory - before.memory) / all / 1000;
  }
  state.SetLabel(kNames[state.range(0)]);
}

PoolAddress page_of(int thread, int i) {
  return PoolAddress::at(kHere, uint64_t(1 + thread * kUnderWay + i) * kPageSize);
}
void add_read(Batch& batch, int thread, int i) {
  batch.faa(kWord + uint64_t(8 * (thread + 1)), 1);
  batch.read(page_of(thread, i), rig->frame(thread * kUnderWay + i), kPageSize);
  batch.op(1).registered = true;
}
void add_write(Batch& batch, int thread, int i) {
  batch.write(page_of(thread, i), rig->frame(thread * kUnderWay + i), kPageSize);
  batch.op(0).registered = true;
  batch.faa(kWord + uint64_t(8 * (thread + 1)), 1);
}

void word(benchmark::State& state) {
  run(state, [](Memory& memory, int thread) {
    benchmark::DoNotOptimize(memory.faa(kWord + uint64_t(8 * (thread + 1)), 1));
    return 1;
  });
}
void fetch_page(benchmark::State& state) {
  run(state, [](Memory& memory, int thread) {
    Batch batch(kHere);
    add_read(batch, thread, 0);
    benchmark::DoNotOptimize(memory.run(batch));
    return 1;
  });
}
void write_page(benchmark::State& state) {
  run(state, [](Memory& memory, int thread) {
    Batch batch(kHere);
    add_write(batch, thread, 0);
    benchmark::DoNotOptimize(memory.run(batch));
    return 1;
  });
}
// As a worker does that hands over many pages at once.
void write_pages_together(benchmark::State& state) {
  run(state, [](Memory& memory, int thread) {
    std::vector<std::unique_ptr<Batch>> batches;
    std::vector<Batch*> all;
    for (int i = 0; i < kUnderWay; ++i) {
      batches.push_back(std::make_unique<Batch>(kHere));
      add_write(*batches.back(), thread, i);
      all.push_back(batches.back().get());
    }
    memory.post(all.data(), kUnderWay);
    for (Batch* batch : all) benchmark::DoNotOptimize(memory.wait(*batch));
    return kUnderWay;
  });
}

void ways(benchmark::internal::Benchmark* benchmark) {
  const Way last = gcl_test::rdma_addresses() ? Way::kVerbs : Way::kProtected;
  benchmark->DenseRange(int(Way::kShm), int(last))->Setup(begin)->Teardown(end)->UseRealTime();
  benchmark->Threads(1)->Threads(4);
}
BENCHMARK(word)->Apply(ways);
BENCHMARK(fetch_page)->Apply(ways);
BENCHMARK(write_page)->Apply(ways);
BENCHMARK(write_pages_together)->Apply(ways);

}  // namespace
}  // namespace coherence

BENCHMARK_MAIN();
