// Nodes made of processes, as in a server: a postmaster that joins, then forks workers and backends.
#include <gtest/gtest.h>
#include <signal.h>

#include <cstring>
#include <random>

#include "bufmgr/buffer_pool.hpp"
#include "tests/support/cluster_fixture.hpp"
#include "tests/support/processes.hpp"

namespace bufmgr {
namespace {

using gcl_test::child;
using gcl_test::ended_well;

constexpr int kNodes = 2, kBackends = 3, kPages = 40, kChanges = 400;

struct NodeArea {
  std::atomic<uint64_t> log_end;
  std::atomic<uint32_t> backends_done;
};

// A log all processes of a node share; durable at once.
class SharedLog final : public LogSink {
 public:
  explicit SharedLog(NodeArea* area) : area_(area) {}
  Lsn append(std::span<const std::byte> record) override {
    return {area_->log_end.fetch_add(record.size()) + record.size()};
  }
  Lsn flushed() override { return {area_->log_end.load()}; }
  void request_flush(Lsn) override {}

 private:
  NodeArea* area_;
};

// The pages lie in two extents, of two memory nodes.
PageId page_of(const PageId (&extents)[2], uint64_t i) { return extents[i % 2] + i / 2; }

void backend(BufferPool& pool, uint16_t slot, const PageId (&extents)[2]) {
  gcl_test::Switch never;
  SharedLog log(reinterpret_cast<NodeArea*>(pool.extra_memory()));
  auto session = pool.attach({slot}, never, log);
  std::mt19937_64 random(slot * 100u + pool.node().value);
  for (int i = 0; i < kChanges; ++i) {
    MiniTransaction change(pool, *session);
    CHILD_VERIFY(change.reserve(64));
    auto page = pool.fix_exclusive(*session, page_of(extents, random() % kPages));
    CHILD_VERIFY(page.ok());
    uint64_t counts[2];
    memcpy(counts, page->bytes() + 4096, sizeof counts);
    CHILD_VERIFY(counts[0] == ~counts[1] || counts[1] == 0);
    counts[0] += 1;
    counts[1] = ~counts[0];
    change.join(*page);
    change.write(*page, 4096, counts, sizeof counts);
    change.commit();
  }
}

void postmaster(const coherence::PoolFiles& files, int n, const PageId (&extents)[2]) {
  Problem problem;
  auto made = BufferPool::create_node(
      {.files = files, .node = {uint8_t(n)}, .frames = 32, .sessions_max = 16, .extra_bytes = 4096}, &problem);
  if (!made) fprintf(stderr, "%s\n", problem.text);
  CHILD_VERIFY(made.ok());
  BufferPool& pool = **made;
  auto* area = reinterpret_cast<NodeArea*>(pool.extra_memory());
  pid_t workers[2], backends[kBackends];
  workers[0] = child([&] {
    gcl_test::Switch never;
    SharedLog log(area);
    auto session = pool.attach({0}, never, log);
    while (area->backends_done.load() < 2) CHILD_VERIFY(pool.serve(*session, 20).ok());
    bool last;
    CHILD_VERIFY(pool.leave(*session, &last, &problem).ok());
  });
  workers[1] = child([&] {
    gcl_test::Switch never;
    SharedLog log(area);
    auto session = pool.attach({1}, never, log);
    while (area->backends_done.load() < 1) {
      if (!pool.run_provider_once(*session)) pool.wait_for_provider_work(20);
    }
  });
  for (int b = 0; b < kBackends; ++b) backends[b] = child([&] { backend(pool, uint16_t(2 + b), extents); });
  for (pid_t pid : backends) CHILD_VERIFY(ended_well(pid));
  area->backends_done.store(1);
  CHILD_VERIFY(ended_well(workers[1]));
  area->backends_done.store(2);
  CHILD_VERIFY(ended_well(workers[0]));
}

TEST(Processes, ShareTheirNodesFramesAndThePool) {
  gcl_test::Cluster cluster({.nodes = 1});  // node 0 watches, from this process
  auto session = cluster.session(0);
  const PageId extents[2] = {*cluster.pool(0).allocate(*session, 64), *cluster.pool(0).allocate(*session, 64)};
  ASSERT_NE(extents[0].node(), extents[1].node());
  const coherence::PoolFiles files{
      .path = cluster.path().c_str(), .durable_path = nullptr, .compatibility = "test=1\n"};
  pid_t postmasters[kNodes];
  for (int n = 0; n < kNodes; ++n) postmasters[n] = child([&] { postmaster(files, n + 1, extents); });
  for (pid_t pid : postmasters) EXPECT_TRUE(ended_well(pid));
  ASSERT_FALSE(cluster.pool(0).fenced());
  uint64_t total = 0, versions = 0;
  for (int i = 0; i < kPages; ++i) {
    auto page = cluster.pool(0).fix_shared(*session, page_of(extents, uint64_t(i)));
    ASSERT_TRUE(page.ok());
    uint64_t count;
    memcpy(&count, page->bytes() + 4096, 8);
    total += count;
    versions += page->header().version;
  }
  EXPECT_EQ(total, uint64_t(kNodes * kBackends * kChanges));
  EXPECT_EQ(versions, total);
}

}  // namespace
}  // namespace bufmgr
