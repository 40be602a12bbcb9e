// Nodes join and leave, again and again, while others work on the same pages.
#include <gtest/gtest.h>
#include <pthread.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <random>

#include "bufmgr/buffer_pool.hpp"
#include "tests/support/cluster_fixture.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/longer.hpp"

namespace bufmgr {
namespace {

constexpr int kStaying = 2, kComing = 3, kVisited = 96;
constexpr int kVisits = 12, kChangesOfVisit = 60;

// A count and its complement, so that a torn or foreign page shows.
bool count_up(BufferPool& pool, Session& session, PageId id) {
  MiniTransaction change(pool, session);
  if (!change.reserve(64)) return false;
  auto page = pool.fix_exclusive(session, id);
  if (!page) return false;
  uint64_t counts[2];
  memcpy(counts, page->bytes() + 4096, sizeof counts);
  EXPECT_TRUE(counts[0] == ~counts[1] || (counts[0] == 0 && counts[1] == 0)) << "page " << id.number();
  counts[0] += 1;
  counts[1] = ~counts[0];
  change.join(*page);
  change.write(*page, 4096, counts, sizeof counts);
  change.commit();
  return true;
}

TEST(Members, ComeAndGoUnderLoad) {
  gcl_test::Cluster cluster({.nodes = kStaying + kComing, .frames = 48});
  auto watching = cluster.session(0);
  const std::vector<PageId> pages = gcl_test::pages_of_two_memory_nodes(cluster.pool(0), *watching, kVisited);
  for (int n = kStaying; n < kStaying + kComing; ++n) cluster.stop(n);
  std::atomic<uint64_t> done{0};
  std::atomic<int> visiting{kComing};
  std::vector<std::thread> threads;
  const auto work = [&](int node, unsigned seed, const auto& go_on) {
    auto session = cluster.session(node);
    std::mt19937 random(seed);
    for (int i = 0; go_on(i); ++i) {
      const PageId page = pages[random() % (random() % 3 == 0 ? 4 : kVisited)];  // some are hot
      ASSERT_TRUE(count_up(cluster.pool(node), *session, page));
      done.fetch_add(1);
    }
    cluster.end(node, std::move(session));
  };
  for (int n = 0; n < kStaying; ++n)
    threads.emplace_back([&, n] { work(n, gcl_test::seed(n), [&](int) { return visiting.load() > 0; }); });
  for (int n = kStaying; n < kStaying + kComing; ++n)
    threads.emplace_back([&, n] {
      for (int visit = 0; visit < kVisits * gcl_test::longer(); ++visit) {
        cluster.start(n);
        work(n, gcl_test::seed(n * 1000 + visit), [](int i) { return i < kChangesOfVisit; });
        cluster.stop(n);  // expects that nothing leaked
      }
      visiting.fetch_sub(1);
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(cluster.pool(0).coherence_node().live().count(), kStaying);
  uint64_t sum = 0, versions = 0;
  for (const PageId id : pages) {
    auto page = cluster.pool(0).fix_shared(*watching, id);
    ASSERT_TRUE(page.ok());
    uint64_t count;
    memcpy(&count, page->bytes() + 4096, sizeof count);
    sum += count;
    versions += page->header().version;
  }
  EXPECT_EQ(sum, done.load()) << "a change was lost";
  EXPECT_EQ(versions, sum);
  EXPECT_GE(sum, uint64_t(kComing * kVisits * kChangesOfVisit));
}

// Asks for a page when it is told to, once.
class Asker {
 public:
  Asker(gcl_test::Cluster& cluster, int node, PageId page)
      : session_(cluster.session(node)), thread_([this, &cluster, node, page] {
          while (!ask_.load()) std::this_thread::yield();
          EXPECT_TRUE(count_up(cluster.pool(node), *session_, page));
        }) {}
  ~Asker() { thread_.join(); }
  // Returns when it has asked, and waits for the answer.
  void ask() {
    const auto waits = [&] { return session_->coherence().counters().get(coherence::Counter::kPeerWaits); };
    const uint64_t before = waits();
    ask_ = true;
    EXPECT_TRUE(gcl_test::eventually([&] { return waits() > before; }));
  }

 private:
  std::unique_ptr<Session> session_;
  std::atomic<bool> ask_{false};
  std::thread thread_;
};

// N6 of coherence, provider.passes-answer-peers: a node that leaves empties its ring page by page; a peer asks for one
// of the last pages.
TEST(Members, ANodeThatLeavesAnswersWhileItsRingIsEmptied) {
  constexpr int kAskedAt = 40;
  gcl_test::Cluster cluster({.nodes = 2, .frames = 256});
  auto mine = cluster.session(0);
  const std::vector<PageId> pages = gcl_test::pages_of_two_memory_nodes(cluster.pool(0), *mine, 128);
  for (const PageId page : pages) ASSERT_TRUE(count_up(cluster.pool(0), *mine, page));
  cluster.end(0, std::move(mine));
  int looks = 0, answered_at = 0;
  {
    Asker peer(cluster, 1, pages.back());
    cluster.stop_workers(0);
    const coherence::Counters& counters = cluster.server_session(0).coherence().counters();
    cluster.log(0).set_look([&] {
      if (++looks == kAskedAt) peer.ask();
      if (answered_at == 0 && counters.get(coherence::Counter::kPeerWrReceived) > 0) answered_at = looks;
    });
    cluster.stop(0);
  }
  EXPECT_GT(answered_at, 0);
  EXPECT_LE(answered_at - kAskedAt, 40) << "pages written back before a peer was answered";
}

uint64_t processor_ns(clockid_t clock) {
  timespec t;
  EXPECT_EQ(clock_gettime(clock, &t), 0);
  return uint64_t(t.tv_sec) * 1'000'000'000 + uint64_t(t.tv_nsec);
}

// A node leaves whose cache is full of changed pages: the most processor time that it used while a peer waited for a
// page.  (Not the time that a busy machine takes.)
uint64_t longest_pause_while_one_leaves(gcl_test::Cluster& cluster, uint32_t count) {
  BufferPool& pool = cluster.pool(0);
  auto mine = cluster.session(0), theirs = cluster.session(1);
  std::vector<PageId> pages;
  while (pages.size() < count) {
    const auto extent = pool.allocate(*mine, 64);
    EXPECT_TRUE(extent.ok());
    for (uint32_t i = 0; i < 64; ++i) pages.push_back(*extent + i);
  }
  for (const PageId page : pages) EXPECT_TRUE(count_up(pool, *mine, page));
  cluster.end(0, std::move(mine));
  std::atomic<bool> leaves{true};
  clockid_t leaver;
  EXPECT_EQ(pthread_getcpuclockid(pthread_self(), &leaver), 0);
  uint64_t longest = 0;
  std::thread peer([&] {
    std::mt19937 random(1);
    while (leaves.load()) {
      const uint64_t began = processor_ns(leaver);
      EXPECT_TRUE(cluster.pool(1).fix_exclusive(*theirs, pages[random() % count]).ok());
      longest = std::max(longest, processor_ns(leaver) - began);
    }
  });
  cluster.stop(0);
  leaves = false;
  peer.join();
  cluster.start(0);
  for (size_t i = 0; i < pages.size(); i += 64) EXPECT_TRUE(cluster.pool(1).free(*theirs, pages[i], 64).ok());
  cluster.end(1, std::move(theirs));
  return longest;
}

// The worker's host may have something to do then.  Nothing is asked of the node meanwhile.
TEST(Members, TheWorkerReturnsWhenANodeComesGoesOrDies) {
  gcl_test::Cluster cluster({.nodes = 2, .repairs_deaths = true, .workers = false});
  coherence::Node& node = cluster.pool(1).coherence_node();
  const auto returns_after = [&](const std::function<void()>& change) {
    const uint64_t view = node.view();
    const auto began = std::chrono::steady_clock::now();
    std::thread serves([&] {
      while (node.view() == view)
        EXPECT_TRUE(cluster.pool(1).serve(cluster.server_session(1), gcl_test::kPatienceMs).ok());
    });
    change();
    serves.join();
    EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::milliseconds(gcl_test::kPatienceMs));
  };
  returns_after([&] { cluster.stop(0); });
  returns_after([&] { cluster.start(0); });
  returns_after([&] { cluster.kill(0); });
}

// A cache of 128 MB; longer, of a gigabyte; under ThreadSanitizer, whose work is not a node's, of less.  The best of
// some attempts: a peer that was answered may not run at once.
TEST(Leaving, OfAFullCacheStopsNobody) {
  constexpr uint64_t kMs = 1'000'000, kPauseMax = 50 * kMs;
  const uint32_t frames = gcl_test::longer() > 1 ? 131072 : gcl_test::by_one_thread(16384u);
  const uint64_t bytes = uint64_t{frames} * coherence::kPageSize;
  gcl_test::Cluster cluster({.nodes = 2, .frames = frames, .pool_bytes = bytes + bytes / 2 + (64 << 20)});
  uint64_t best = ~uint64_t{0};
  for (int attempt = 0; attempt < 5 && best >= kPauseMax; ++attempt)
    best = std::min(best, longest_pause_while_one_leaves(cluster, frames - frames / 16));
  printf("the longest pause: %lu us\n", best / 1000);
  EXPECT_LT(best, kPauseMax);
}

}  // namespace
}  // namespace bufmgr
