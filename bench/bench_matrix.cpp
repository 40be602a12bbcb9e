// SELCC's micro-benchmark on shm, in real time: nodes and their threads in one process, over the public interface
// (bufmgr/global_memory.hpp); what is accessed comes from the same generator as in virtual time (bench/paper/workload).
// An operation is a lock and 8 bytes.  One iteration is a slice of time in which all threads work.
//
//   bench_matrix --benchmark_filter='^matrix/nodes:4/threads:1/sharing:100/reads:95/'
//   bench_matrix --benchmark_filter='^(gamma|without|writer)/'
//
// Every write adds one: at the end of a cell the lines' sum is the number of writes, or the cell is an error.
#include <benchmark/benchmark.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <latch>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "bench/paper/histogram.hpp"
#include "bench/paper/workload.hpp"
#include "bench/traffic.hpp"
#include "bufmgr/global_memory.hpp"

namespace gcl_bench {
namespace {

using bufmgr::GlobalMemory;
using bufmgr::GlobalThread;
using coherence::PageId;
using Clock = std::chrono::steady_clock;

constexpr uint32_t kPagesPerNode = 768, kFrames = 128;  // as the paper's 48 GB and 8 GB
constexpr auto kSlice = std::chrono::milliseconds(50);
constexpr uint64_t kTimedOneIn = 16;  // the clock costs as much as a hit
constexpr uint32_t kGammaProduct = 16;

struct Cell {
  paper::WorkloadSpec work;
  uint32_t gamma = kGammaProduct;
  std::string features = "all";  // as Features::parse() reads them
};

[[noreturn]] void fail(const char* what, const char* why) {
  fprintf(stderr, "%s: %s\n", what, why);
  abort();
}

// Nodes over a pool of their own, and its lines.
class Cluster {
 public:
  explicit Cluster(const Cell& cell) : cell_(cell) {
    coherence::Problem problem;
    auto features = coherence::Features::parse(cell.features.c_str(), &problem);
    if (!features) fail("features", problem.text);
    if (!mkdtemp(home_.data())) fail("mkdtemp", home_.c_str());
    path_ = home_ + "/memory";
    const uint64_t pages = cell.work.pages();
    if (!GlobalMemory::create(path_.c_str(), {.bytes = (64 << 20) + pages * coherence::kPageSize}, &problem))
      fail("create", problem.text);
    for (int n = 0; n < cell.work.nodes; n++) {
      auto node = GlobalMemory::join(path_.c_str(), {.node = {uint8_t(n)}, .frames = kFrames}, &problem);
      if (!node) fail("join", problem.text);
      nodes_.push_back(node.take());
      nodes_.back()->pool().coherence_node().set_features(*features);  // no node asks for anything yet
      nodes_.back()->pool().coherence_node().set_lease(cell.gamma);
    }
    GlobalThread first(*nodes_[0]);
    for (uint64_t i = 0; i < pages; i++) {
      auto line = first.allocate();
      if (!line) fail("allocate", errc_name(line.error()));
      lines_.push_back(*line);
    }
  }
  ~Cluster() {
    nodes_.clear();
    GlobalMemory::remove(path_.c_str());
    rmdir(home_.c_str());
  }
  Cluster(const Cluster&) = delete;

  GlobalMemory& node(int n) { return *nodes_[size_t(n)]; }
  PageId line(uint64_t page) const { return lines_[page]; }
  Traffic traffic() const {
    std::vector<const coherence::Node*> all;
    for (const auto& node : nodes_) all.push_back(&node->pool().coherence_node());
    return Traffic(all);
  }
  uint64_t sum() {
    GlobalThread reader(*nodes_[0]);
    uint64_t all = 0;
    for (const PageId line : lines_) {
      bufmgr::SLock lock(reader, line);
      if (!lock) fail("lock", errc_name(lock.error()));
      for (uint32_t at = 0; at + 8 <= bufmgr::kLineBytes; at += 64) all += lock.get<uint64_t>(at);
    }
    return all;
  }

 private:
  const Cell& cell_;
  std::string home_ = "/dev/shm/gcl-bench-matrix-XXXXXX", path_;
  std::vector<std::unique_ptr<GlobalMemory>> nodes_;
  std::vector<PageId> lines_;
};

// One thread of a node; what it counts is read between slices.
class Worker {
 public:
  Worker(Cluster& cluster, const Cell& cell, const paper::Zipf* zipf, int node, int number)
      : at(node), cluster_(cluster), thread_(cluster.node(node)), workload_(cell.work, zipf, node, number) {}

  void work(const std::atomic<bool>& stop) {
    for (; !stop.load(std::memory_order_relaxed); operations++) {
      const paper::Access access = workload_.next();
      if (operations % kTimedOneIn != 0) {
        run(access);
        continue;
      }
      const auto began = Clock::now();
      run(access);
      latencies.add(uint64_t(std::chrono::nanoseconds(Clock::now() - began).count()));
    }
  }

  const int at;
  uint64_t operations = 0, writes = 0;
  paper::Histogram latencies;

 private:
  void run(const paper::Access& access) {
    const PageId line = cluster_.line(access.page);
    if (!access.write) {
      bufmgr::SLock lock(thread_, line);
      if (!lock) fail("lock", errc_name(lock.error()));
      benchmark::DoNotOptimize(lock.get<uint64_t>(access.line * 64));
      return;
    }
    bufmgr::XLock lock(thread_, line);
    if (!lock) fail("lock", errc_name(lock.error()));
    lock.set<uint64_t>(access.line * 64, lock.get<uint64_t>(access.line * 64) + 1);
    writes++;
  }
  Cluster& cluster_;
  GlobalThread thread_;
  paper::Workload workload_;
};

using Workers = std::vector<std::unique_ptr<Worker>>;

// All of them at once; returns the seconds from when all are there until the last one is through.
double run_slice(Workers& workers) {
  std::atomic<bool> stop{false};
  std::latch ready(std::ptrdiff_t(workers.size()) + 1);
  std::vector<std::thread> threads;
  for (auto& worker : workers)
    threads.emplace_back([&ready, &stop, w = worker.get()] {
      ready.arrive_and_wait();
      w->work(stop);
    });
  ready.arrive_and_wait();
  const auto began = Clock::now();
  std::this_thread::sleep_for(kSlice);
  stop.store(true, std::memory_order_relaxed);
  for (auto& thread : threads) thread.join();
  return std::chrono::duration<double>(Clock::now() - began).count();
}

double jain(const std::vector<double>& shares) {
  double sum = 0, squares = 0;
  for (const double share : shares) sum += share, squares += share * share;
  return squares > 0 ? sum * sum / (squares * double(shares.size())) : 0;
}

void run_cell(benchmark::State& state, const Cell& cell) {
  Cluster cluster(cell);
  std::optional<paper::Zipf> zipf;
  if (cell.work.theta > 0) zipf.emplace(cell.work.pages(), cell.work.theta);
  Workers workers;
  for (int n = 0; n < cell.work.nodes; n++)
    for (int t = 0; t < cell.work.threads; t++)
      workers.push_back(std::make_unique<Worker>(cluster, cell, zipf ? &*zipf : nullptr, n, t));
  run_slice(workers);  // the caches fill

  uint64_t warm_up = 0;
  std::vector<uint64_t> before;
  for (const auto& w : workers) warm_up += w->operations, before.push_back(w->operations), w->latencies = {};
  const Traffic traffic = cluster.traffic();
  for (auto _ : state) state.SetIterationTime(run_slice(workers));

  uint64_t operations = 0, writes = 0;
  paper::Histogram latencies;
  std::vector<double> shares(size_t(cell.work.nodes));
  for (size_t i = 0; i < workers.size(); i++) {
    const Worker& w = *workers[i];
    operations += w.operations;
    writes += w.writes;
    latencies.add(w.latencies);
    shares[size_t(w.at)] += double(w.operations - before[i]);
  }
  operations -= warm_up;
  using benchmark::Counter;
  traffic.report(state, operations);
  state.counters["ops/s"] = Counter(double(operations), Counter::kIsRate);
  state.counters["p50_us"] = latencies.quantile_us(0.5);
  state.counters["p99_us"] = latencies.quantile_us(0.99);
  state.counters["jain"] = jain(shares);
  state.counters["first"] = shares[0] / double(operations);  // node 0's part
  workers.clear();
  if (cluster.sum() != writes) state.SkipWithError("the lines do not hold what was written");
}

void add(const std::string& name, const Cell& cell) {
  benchmark::RegisterBenchmark(name.c_str(), [cell](benchmark::State& state) { run_cell(state, cell); })
      ->UseManualTime()
      ->Unit(benchmark::kMillisecond);
}

Cell cell_of(int nodes, int threads) {
  Cell cell;
  cell.work.nodes = nodes;
  cell.work.threads = threads;
  cell.work.pages_per_node = kPagesPerNode;
  cell.work.gcl = bufmgr::kLineBytes / 64 * 64;
  return cell;
}

void add_matrix(int nodes, int threads, int sharing, int reads) {
  Cell cell = cell_of(nodes, threads);
  cell.work.sharing = sharing;
  cell.work.reads = reads;
  const auto name = "matrix/nodes:" + std::to_string(nodes) + "/threads:" + std::to_string(threads) +
                    "/sharing:" + std::to_string(sharing) + "/reads:" + std::to_string(reads);
  add(name + "/uniform", cell);
  cell.work.repeat = 50;
  add(name + "/repeat", cell);
  if (sharing != 100) return;  // a Zipf distribution is over all lines
  cell.work.repeat = 0;
  cell.work.theta = 0.99;
  add(name + "/zipf", cell);
}

void add_all() {
  for (const int nodes : {1, 2, 3, 4})
    for (const int threads : {1, 2, 3, 4})
      for (const int sharing : {0, 50, 100})
        for (const int reads : {100, 95, 50, 0}) add_matrix(nodes, threads, sharing, reads);

  Cell hot = cell_of(4, 2);  // one line, in effect
  hot.work.theta = 10;
  hot.work.reads = 0;
  for (const uint32_t gamma : {0u, 16u, 256u, ~0u}) {
    hot.gamma = gamma;
    add("gamma/" + (gamma == ~0u ? std::string("inf") : std::to_string(gamma)), hot);
  }

  Cell skewed = cell_of(4, 2);
  skewed.work.theta = 0.99;
  skewed.work.reads = 50;
  add("without/nothing", skewed);
  for (int f = 0; f < coherence::kFeatures; f++) {
    const std::string feature = feature_name(coherence::Feature(f));
    skewed.features = "-" + feature;
    add("without/" + feature, skewed);
  }

  Cell writer = cell_of(4, 1);
  writer.work.theta = 10;
  writer.work.single_writer = true;
  for (const char* without : {"all", "-claim", "-claim,-matching", "-claim,-stand-back,-matching"}) {
    writer.features = without;
    add("writer/" + writer.features, writer);
  }
}

}  // namespace
}  // namespace gcl_bench

int main(int count, char** words) {
  gcl_bench::add_all();
  benchmark::Initialize(&count, words);
  if (benchmark::ReportUnrecognizedArguments(count, words)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
