// Rows, trees and transactions on one node: what PostgreSQL's callbacks pay below them.
#include <benchmark/benchmark.h>

#include <cstring>

#include "bench/traffic.hpp"
#include "extension/engine/blink/build.hpp"
#include "extension/engine/blink/scan.hpp"
#include "tests/unit/engine/engine_fixture.hpp"
#include "tests/unit/engine/tpcb_like.hpp"

namespace engine_test {
namespace {

constexpr uint32_t kRows = 20000;

class Rig {
 public:
  Rig()
      : engine_({.cluster = {.nodes = 1, .frames = 16384, .pool_bytes = 128 << 20}}),
        worker_(engine_, 0),
        row_(std::string(89, 'x')) {}
  Engine& engine() { return engine_; }
  Worker& worker() { return worker_; }
  TxnSystem& txns() { return worker_.txns(); }
  bufmgr::BufferPool& pool() { return engine_.cluster().pool(0); }
  Session& session() { return worker_.session(); }
  RowImage row() const { return row_.image(); }
  template <class Act>
  void run(benchmark::State& state, Act act) {
    const gcl_bench::Traffic traffic({&pool().coherence_node()});
    for (auto _ : state) act();
    traffic.report(state);
  }

 private:
  Engine engine_;
  Worker worker_;
  TestRow row_;
};

// --- transactions ----------------------------------------------------------------------------------------------------

void snapshot(benchmark::State& state) {
  Rig rig;
  rig.run(state, [&] { benchmark::DoNotOptimize(rig.txns().take_snapshot()); });
}
BENCHMARK(snapshot);

void begin_and_commit(benchmark::State& state) {
  Rig rig;
  rig.run(state, [&] {
    benchmark::DoNotOptimize(rig.txns().id_for_write());
    rig.worker().commit();
  });
}
BENCHMARK(begin_and_commit);

// --- rows ------------------------------------------------------------------------------------------------------------

struct Table {
  explicit Table(Rig& rig, uint32_t rows = kRows) : heap(rig.txns(), *Heap::create(rig.txns())) {
    for (uint32_t i = 0; i < rows; ++i) tids.push_back(*heap.insert(rig.row(), 0));
    rig.worker().commit();
  }
  Tid next() { return tids[turn++ * 7919 % tids.size()]; }
  Heap heap;
  std::vector<Tid> tids;
  uint64_t turn = 0;
};

void heap_insert(benchmark::State& state) {
  Rig rig;
  Table table(rig, 1);
  uint32_t count = 0;
  rig.run(state, [&] {
    benchmark::DoNotOptimize(table.heap.insert(rig.row(), 0));
    if (++count % 1000 == 0) rig.worker().commit();
  });
}
BENCHMARK(heap_insert)->Iterations(50000);

void heap_multi_insert(benchmark::State& state) {
  Rig rig;
  Table table(rig, 1);
  const std::vector<RowImage> rows(1000, rig.row());
  std::vector<Tid> tids(rows.size());
  rig.run(state, [&] {
    for (size_t done = 0; done < rows.size();)
      done += *table.heap.multi_insert(std::span(rows).subspan(done), 0, tids.data() + done);
    rig.worker().commit();
  });
  state.SetItemsProcessed(state.iterations() * int64_t(rows.size()));
}
BENCHMARK(heap_multi_insert)->Iterations(50);

void heap_fetch(benchmark::State& state) {
  Rig rig;
  Table table(rig);
  RowBuffer to;
  const Snapshot now = rig.worker().snapshot();
  rig.run(state, [&] { benchmark::DoNotOptimize(table.heap.fetch_chain(table.next(), now, to.bytes)); });
}
BENCHMARK(heap_fetch);

// Each in a transaction of its own: the snapshot, the chain, the commit, the prune now and then.
void heap_update_and_commit(benchmark::State& state) {
  Rig rig;
  Table table(rig);
  RowBuffer to;
  rig.run(state, [&] {
    const auto found = table.heap.fetch_chain(table.next(), rig.worker().snapshot(), to.bytes);
    const auto done = table.heap.update({.tid = found->tid, .row = rig.row(), .command = 0, .indexed_changed = false});
    if (!done || done->row.result != RowResult::kOk) state.SkipWithError("a row was not updated");
    rig.worker().commit();
  });
}
BENCHMARK(heap_update_and_commit)->Iterations(5000);

// FOR UPDATE by one transaction of its own after another: no other transaction holds the row.
void heap_lock_and_commit(benchmark::State& state) {
  Rig rig;
  Table table(rig);
  RowBuffer to;
  rig.run(state, [&] {
    const auto done = table.heap.lock({.tid = table.next(), .command = 0}, to.bytes);
    if (!done || done->row.result != RowResult::kOk) state.SkipWithError("a row was not locked");
    rig.worker().commit();
  });
}
BENCHMARK(heap_lock_and_commit)->Iterations(5000);

// FOR KEY SHARE of a row that another transaction holds so already, as foreign keys come to a popular parent: the other
// way to record a lock.
void heap_lock_beside_another(benchmark::State& state) {
  Rig rig;
  Table table(rig);
  RowBuffer to;
  Worker other(rig.engine(), 0);
  Heap others(other.txns(), table.heap.relation());
  for (Tid tid : table.tids) benchmark::DoNotOptimize(others.lock({tid, 0, RowLock::kKeyShare}, to.bytes));
  rig.run(state, [&] {
    const auto done = table.heap.lock({.tid = table.next(), .command = 0, .mode = RowLock::kKeyShare}, to.bytes);
    if (!done || done->row.result != RowResult::kOk) state.SkipWithError("a row was not locked");
    rig.worker().commit();
  });
}
BENCHMARK(heap_lock_beside_another)->Iterations(5000);

void heap_scan(benchmark::State& state) {
  Rig rig;
  Table table(rig);
  const auto rows = std::make_unique<PageRows>();
  uint64_t seen = 0;
  rig.run(state, [&] {
    HeapScan scan(table.heap, rig.worker().snapshot());
    if (!scan.start()) state.SkipWithError("no scan");
    for (uint32_t i = 0; i < scan.pages(); ++i) {
      if (!scan.read(i, *rows)) state.SkipWithError("no page");
      seen += rows->count;
    }
  });
  if (seen != uint64_t(state.iterations()) * kRows) state.SkipWithError("rows are missing");
  state.SetItemsProcessed(int64_t(seen));
}
BENCHMARK(heap_scan);

// pgbench's transaction; `fresh`: on pages that are still full.
void tpcb_like(benchmark::State& state) {
  Rig rig;
  TpcbLike bank(rig.worker(), rig.pool(), 10, 2000);
  const int worn = state.range(0) != 0 ? 0 : 8000;
  for (int i = 0; i < worn; ++i) bank.transaction();
  const uint64_t before = rig.session().counts().get(bufmgr::Count::kRedoBytes);
  rig.run(state, [&] { bank.transaction(); });
  const uint64_t bytes = rig.session().counts().get(bufmgr::Count::kRedoBytes) - before;
  state.counters["redo_bytes"] = benchmark::Counter(double(bytes), benchmark::Counter::kAvgIterations);
}
BENCHMARK(tpcb_like)->ArgName("fresh")->Arg(1)->Arg(0)->Iterations(3000);

// --- trees -----------------------------------------------------------------------------------------------------------

class Keys {
 public:
  Keys(Rig& rig, uint64_t entries)
      : tree(*blink::Tree::open(rig.pool(), rig.session(), *blink::Tree::create(rig.pool(), rig.session()))),
        session_(rig.session()) {
    auto builder = std::make_unique<blink::Builder>(tree, session_, compare);
    for (uint64_t i = 0; i < entries; ++i)
      if (!builder->add(key(2 * i), tid(i))) abort();
    if (!builder->finish()) abort();
  }
  std::span<const std::byte> key(uint64_t number) {
    memcpy(bytes_ + 8, &number, 8);
    return bytes_;
  }
  static Tid tid(uint64_t n) { return {uint32_t(n / 200), uint16_t(1 + n % 200)}; }
  bool insert(uint64_t number, uint64_t row) {
    const auto done = tree.insert(session_, compare, &number, key(number), tid(row));
    return done.ok() && done->inserted;
  }

  blink::Tree tree;
  Numbers compare;

 private:
  Session& session_;
  std::byte bytes_[16] = {};
};

void tree_look_up(benchmark::State& state) {
  Rig rig;
  const uint64_t entries = uint64_t(state.range(0));
  Keys keys(rig, entries);
  const auto scan = std::make_unique<blink::Scan>(keys.tree, rig.session(), keys.compare);
  uint64_t turn = 0;
  rig.run(state, [&] {
    const uint64_t wanted = turn++ * 7919 % entries * 2;
    scan->reset({.low = {&wanted, true, true}, .high = {&wanted, true, true}});
    blink::Entry entry;
    const auto found = scan->next(entry);
    if (!found || !*found) state.SkipWithError("an entry is missing");
  });
}
BENCHMARK(tree_look_up)->ArgName("entries")->Arg(300)->Arg(300000);

void tree_insert(benchmark::State& state) {
  Rig rig;
  constexpr uint64_t kEntries = 100000;
  Keys keys(rig, kEntries);
  const bool ascending = state.range(0) != 0;
  uint64_t turn = 0;
  rig.run(state, [&] {
    const uint64_t number = ascending ? 2 * kEntries + turn : turn * 7919 % kEntries * 2 + 1;
    if (!keys.insert(number, kEntries + turn)) state.SkipWithError("not inserted");
    ++turn;
  });
}
BENCHMARK(tree_insert)->ArgName("ascending")->Arg(1)->Arg(0)->Iterations(30000);

void tree_scan(benchmark::State& state) {
  Rig rig;
  constexpr uint64_t kEntries = 100000;
  Keys keys(rig, kEntries);
  const auto scan = std::make_unique<blink::Scan>(keys.tree, rig.session(), keys.compare);
  uint64_t seen = 0;
  rig.run(state, [&] {
    scan->reset({});
    blink::Entry entry;
    for (auto more = scan->next(entry); more && *more; more = scan->next(entry)) ++seen;
  });
  if (seen != uint64_t(state.iterations()) * kEntries) state.SkipWithError("entries are missing");
  state.SetItemsProcessed(int64_t(seen));
}
BENCHMARK(tree_scan);

}  // namespace
}  // namespace engine_test

BENCHMARK_MAIN();
