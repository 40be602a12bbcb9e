// The latches of lines: hits, misses, upgrades, hand-over between two nodes.  No buffer pool, no log.
#include <benchmark/benchmark.h>

#include "bench/traffic.hpp"
#include "tests/unit/coherence/cluster.hpp"

namespace coherence {
namespace {

// Two nodes with a session each; both have message workers.
class Rig : public ClusterTest {
 public:
  Rig() {
    SetUp();
    add_node();
    add_node();
    for (int i = 0; i < 2; ++i) sessions_.push_back(std::make_unique<Session>(*nodes[i]->node, SessionId{0}, nullptr));
  }
  ~Rig() override {
    sessions_.clear();
    TearDown();
  }
  void TestBody() override {}
  Session& session(int n) { return *sessions_[n]; }
  Line& line(int n) { return nodes[n]->line(session(n), id()); }
  static PageId id() { return page(5); }
  void read(int n) {
    Line& l = line(n);
    benchmark::DoNotOptimize(session(n).lock_shared(l, id()));
    session(n).unlock_shared(l);
  }
  void write(int n) {
    Line& l = line(n);
    benchmark::DoNotOptimize(session(n).lock_exclusive(l, id()));
    write_word(*nodes[n]->node, l, ++value_);
    session(n).unlock_exclusive(l);
  }
  bool evict(int n) { return nodes[n]->evict(session(n), id()); }
  gcl_bench::Traffic traffic() const { return gcl_bench::Traffic({nodes[0]->node.get(), nodes[1]->node.get()}); }

 private:
  std::vector<std::unique_ptr<Session>> sessions_;
  uint64_t value_ = 0;
};

template <class Act>
void run(benchmark::State& state, Rig& rig, Act act) {
  const auto traffic = rig.traffic();
  for (auto _ : state) act();
  traffic.report(state);
}

void hit_shared(benchmark::State& state) {
  Rig rig;
  rig.read(0);
  Line& line = rig.line(0);
  run(state, rig, [&] {
    benchmark::DoNotOptimize(rig.session(0).lock_shared(line, rig.id()));
    rig.session(0).unlock_shared(line);
  });
}
BENCHMARK(hit_shared);

void hit_exclusive(benchmark::State& state) {
  Rig rig;
  rig.write(0);
  Line& line = rig.line(0);
  run(state, rig, [&] {
    benchmark::DoNotOptimize(rig.session(0).lock_exclusive(line, rig.id()));
    rig.session(0).unlock_exclusive(line);
  });
}
BENCHMARK(hit_exclusive);

void hit_optimistic(benchmark::State& state) {
  Rig rig;
  rig.write(0);
  Line& line = rig.line(0);
  run(state, rig, [&] {
    uint64_t token;
    benchmark::DoNotOptimize(line.begin_optimistic(rig.id(), &token));
    benchmark::DoNotOptimize(line.validate(token));
  });
}
BENCHMARK(hit_optimistic);

// A miss is not repeatable without giving the page up again: the pairs are measured.
void miss_and_evict_clean(benchmark::State& state) {
  Rig rig;
  run(state, rig, [&] {
    rig.read(0);
    if (!rig.evict(0)) state.SkipWithError("the page could not be evicted");
  });
}
BENCHMARK(miss_and_evict_clean);

void miss_and_evict_dirty(benchmark::State& state) {
  Rig rig;
  run(state, rig, [&] {
    rig.write(0);
    if (!rig.evict(0)) state.SkipWithError("the page could not be evicted");
  });
}
BENCHMARK(miss_and_evict_dirty);

void miss_upgrade_and_evict(benchmark::State& state) {
  Rig rig;
  run(state, rig, [&] {
    rig.read(0);
    rig.write(0);
    if (!rig.evict(0)) state.SkipWithError("the page could not be evicted");
  });
}
BENCHMARK(miss_upgrade_and_evict);

// M -> M, there and back: two hand-overs.
void hand_over_two_writers(benchmark::State& state) {
  Rig rig;
  run(state, rig, [&] { rig.write(0), rig.write(1); });
}
BENCHMARK(hand_over_two_writers)->UseRealTime();

// M -> S, then S -> M again, which takes the reader's share away.
void hand_over_writer_and_reader(benchmark::State& state) {
  Rig rig;
  run(state, rig, [&] { rig.write(0), rig.read(1); });
}
BENCHMARK(hand_over_writer_and_reader)->UseRealTime();

}  // namespace
}  // namespace coherence

BENCHMARK_MAIN();
