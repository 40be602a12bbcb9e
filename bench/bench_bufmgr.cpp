// The buffer pool: guards, the frame table, replacement, mini-transactions, space.
#include <benchmark/benchmark.h>

#include <shared_mutex>
#include <unordered_map>

#include "bench/traffic.hpp"
#include "bufmgr/frame/frame_table.hpp"
#include "tests/support/cluster_fixture.hpp"

namespace bufmgr {
namespace {

constexpr uint32_t kPages = 64;  // one extent

// Nodes over one pool, each with a session, and an extent of pages with something on them.
class Rig {
 public:
  explicit Rig(int nodes = 1, uint32_t frames = 1024, uint32_t extents = 1)
      : cluster_({.nodes = nodes, .frames = frames, .pool_bytes = 128 << 20}) {
    for (int n = 0; n < nodes; ++n) sessions_.push_back(cluster_.session(n));
    for (uint32_t i = 0; i < extents; ++i) {
      const PageId first = *pool().allocate(session(), kPages);
      for (uint32_t p = 0; p < kPages; ++p) pages_.push_back(first + p);
    }
    for (const PageId page : pages_) change({page}, 8);
  }
  BufferPool& pool(int n = 0) { return cluster_.pool(n); }
  Session& session(int n = 0) { return *sessions_[n]; }
  PageId next() { return pages_[turn_++ % pages_.size()]; }
  // One mini-transaction that writes `bytes` to each page.
  void change(std::initializer_list<PageId> pages, uint32_t bytes, int n = 0) {
    static const std::byte kBytes[512] = {};
    MiniTransaction change(pool(n), session(n));
    if (!change.reserve(uint32_t(pages.size()) * bytes)) abort();
    ExclusiveGuard guards[kMiniPagesMax];
    int held = 0;
    for (const PageId page : pages) {
      guards[held] = pool(n).fix_exclusive(session(n), page).take();
      change.join(guards[held]);
      change.write(guards[held], 256, kBytes, bytes);
      ++held;
    }
    change.commit();
  }
  gcl_bench::Traffic traffic() {
    std::vector<const coherence::Node*> nodes;
    for (int n = 0; n < cluster_.nodes(); ++n) nodes.push_back(&pool(n).coherence_node());
    return gcl_bench::Traffic(nodes);
  }
  template <class Act>
  void run(benchmark::State& state, Act act) {
    const auto before = traffic();
    for (auto _ : state) act();
    before.report(state);
  }

 private:
  gcl_test::Cluster cluster_;
  std::vector<std::unique_ptr<Session>> sessions_;
  std::vector<PageId> pages_;
  uint32_t turn_ = 0;
};

// --- hits ------------------------------------------------------------------------------------------------------------

// What a shared guard is compared with: any hash table, any latch.
void hash_table_and_shared_mutex(benchmark::State& state) {
  struct Frame {
    std::shared_mutex latch;
    uint64_t word = 0;
  };
  std::unordered_map<uint64_t, Frame> table;
  for (uint64_t i = 0; i < kPages; ++i) table[i];
  uint64_t turn = 0;
  for (auto _ : state) {
    Frame& frame = table.find(turn++ % kPages)->second;
    std::shared_lock hold(frame.latch);
    benchmark::DoNotOptimize(frame.word);
  }
}
BENCHMARK(hash_table_and_shared_mutex);

void hit_shared(benchmark::State& state) {
  Rig rig;
  rig.run(state, [&] {
    auto guard = rig.pool().fix_shared(rig.session(), rig.next());
    benchmark::DoNotOptimize(*reinterpret_cast<const uint64_t*>(guard->bytes() + 256));
  });
}
BENCHMARK(hit_shared);

void hit_exclusive(benchmark::State& state) {
  Rig rig;
  rig.run(state, [&] {
    auto guard = rig.pool().fix_exclusive(rig.session(), rig.next());
    benchmark::DoNotOptimize(guard->bytes());
  });
}
BENCHMARK(hit_exclusive);

void hit_optimistic(benchmark::State& state) {
  Rig rig;
  rig.run(state, [&] {
    auto guard = rig.pool().peek(rig.session(), rig.next());
    benchmark::DoNotOptimize(guard.get<uint64_t>(256));
    benchmark::DoNotOptimize(guard.validate());
  });
}
BENCHMARK(hit_optimistic);

void copy_page(benchmark::State& state) {
  Rig rig;
  alignas(8) static std::byte page[coherence::kPageSize];
  rig.run(state, [&] {
    benchmark::DoNotOptimize(rig.pool().copy_page(rig.session(), rig.next(), page));
    benchmark::ClobberMemory();
  });
}
BENCHMARK(copy_page);

void frame_table(benchmark::State& state) {
  constexpr uint32_t kFrames = 1 << 16;
  std::vector<std::byte> memory(FrameTable::bytes_for(kFrames) + 64);
  const std::atomic<uint32_t> fence{0};
  FrameTable table(reinterpret_cast<void*>((reinterpret_cast<uintptr_t>(memory.data()) + 63) & ~uintptr_t{63}), kFrames,
                   fence);
  auto page = [](uint64_t i) { return PageId::at(coherence::MemoryNodeId{0}, i * 7); };
  std::vector<PageId> owner(kFrames);
  for (uint32_t i = 0; i < kFrames; ++i)
    table.insert(
        page(i), i, [&](uint32_t f) { return owner[f] == page(i); }, [&] { owner[i] = page(i); });
  const uint64_t first = state.range(0) ? 0 : kFrames;  // pages that are in it, or not
  uint64_t turn = 0;
  for (auto _ : state) {
    const PageId wanted = page(first + turn++ * 40503 % kFrames);
    benchmark::DoNotOptimize(table.find(wanted, [&](uint32_t f) { return owner[f] == wanted; }));
  }
}
BENCHMARK(frame_table)->ArgName("there")->Arg(1)->Arg(0);

// --- misses ----------------------------------------------------------------------------------------------------------

// Sixteen times more pages than frames: every access brings a page and has another one evicted.
void replace_clean(benchmark::State& state) {
  Rig rig(1, 256, 64);
  rig.run(state, [&] { benchmark::DoNotOptimize(rig.pool().fix_shared(rig.session(), rig.next()).ok()); });
}
BENCHMARK(replace_clean)->UseRealTime();

void replace_dirty(benchmark::State& state) {
  Rig rig(1, 256, 64);
  rig.run(state, [&] { rig.change({rig.next()}, 64); });
}
BENCHMARK(replace_dirty)->UseRealTime();

// A page changed by two nodes in turn: two hand-overs, each with its redo in ring and log.
void change_by_two_nodes(benchmark::State& state) {
  Rig rig(2);
  const PageId page = rig.next();
  rig.run(state, [&] { rig.change({page}, 64, 0), rig.change({page}, 64, 1); });
}
BENCHMARK(change_by_two_nodes)->UseRealTime();

// --- changes ---------------------------------------------------------------------------------------------------------

void mini_transaction(benchmark::State& state) {
  Rig rig;
  const auto pages = state.range(0);
  rig.run(state, [&] {
    if (pages == 1) rig.change({rig.next()}, 100);
    if (pages == 4) rig.change({rig.next(), rig.next(), rig.next(), rig.next()}, 100);
    if (pages == 8)
      rig.change({rig.next(), rig.next(), rig.next(), rig.next(), rig.next(), rig.next(), rig.next(), rig.next()}, 100);
  });
}
BENCHMARK(mini_transaction)->ArgName("pages")->Arg(1)->Arg(4)->Arg(8);

// A row's next version beside the old one: most of it is a copy in the log, and bytes in the ring.
void mini_transaction_like(benchmark::State& state) {
  Rig rig;
  constexpr uint32_t kRow = 160, kOld = 512, kNew = 1024;
  const bool like = state.range(0) != 0;
  uint64_t version = 0;
  std::byte row[kRow];
  for (uint32_t i = 0; i < kRow; ++i) row[i] = std::byte(i * 7 + 1);
  rig.run(state, [&] {
    MiniTransaction change(rig.pool(), rig.session());
    if (!change.reserve(512)) abort();
    ExclusiveGuard page = rig.pool().fix_exclusive(rig.session(), rig.next()).take();
    change.join(page);
    ++version;
    change.write(page, kOld, row, kRow);
    memcpy(row + 72, &version, sizeof version);
    if (like)
      change.write_like(page, kNew, row, kRow, kOld, kRow);
    else
      change.write(page, kNew, row, kRow);
    change.commit();
  });
}
BENCHMARK(mini_transaction_like)->ArgName("like")->Arg(1)->Arg(0);

void allocate_and_free(benchmark::State& state) {
  Rig rig;
  const uint32_t count = uint32_t(state.range(0));
  rig.run(state, [&] {
    const auto first = rig.pool().allocate(rig.session(), count);
    if (!first || !rig.pool().free(rig.session(), *first, count)) state.SkipWithError("no space");
  });
}
BENCHMARK(allocate_and_free)->ArgName("pages")->Arg(1)->Arg(64);

}  // namespace
}  // namespace bufmgr

BENCHMARK_MAIN();
