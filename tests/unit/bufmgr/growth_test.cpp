// A pool that grows under load: threads of two nodes, and processes that were forked before.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include <cstring>
#include <functional>
#include <map>
#include <random>

#include "bufmgr/buffer_pool.hpp"
#include "coherence/base/os.hpp"
#include "tests/support/cluster_fixture.hpp"
#include "tests/support/processes.hpp"

namespace bufmgr {
namespace {

using coherence::Errc;
using gcl_test::child;
using gcl_test::Cluster;
using gcl_test::ended_well;

constexpr uint64_t kAddedBytes = 4 << 20;
constexpr uint32_t kWordAt = 4096;

coherence::PoolFiles files_of(const Cluster& cluster) {
  return {.path = cluster.path().c_str(), .durable_path = nullptr, .compatibility = "test=1\n"};
}

coherence::Status set_word(BufferPool& pool, Session& session, PageId id, uint64_t word) {
  MiniTransaction change(pool, session);
  GCL_TRY(change.reserve(64));
  auto page = pool.fix_exclusive(session, id);
  if (!page) return page.error();
  change.join(*page);
  change.write(*page, kWordAt, &word, sizeof word);
  change.commit();
  return {};
}

uint64_t word_in(BufferPool& pool, Session& session, PageId id) {
  auto page = pool.fix_shared(session, id);
  if (!page) return ~uint64_t{0};
  uint64_t word;
  memcpy(&word, page->bytes() + kWordAt, sizeof word);
  return word;
}

TEST(GrowingPool, AFullPoolHasRoomAgainForAllNodes) {
  Cluster cluster({.nodes = 2, .frames = 256, .pool_bytes = 24 << 20, .memory_nodes = 2});
  auto a = cluster.session(0), b = cluster.session(1);
  BufferPool &pa = cluster.pool(0), &pb = cluster.pool(1);
  for (const uint32_t count : {64u, 1u})
    while (pa.allocate(*a, count)) {
    }
  EXPECT_EQ(pb.allocate(*b, 1).error(), Errc::kNoSpace);
  Problem problem;
  EXPECT_EQ(BufferPool::add_memory_node(files_of(cluster), 600 << 10, &problem).error(), Errc::kNoSpace);
  EXPECT_NE(strstr(problem.text, "no room for pages"), nullptr) << problem.text;
  EXPECT_EQ(pb.allocate(*b, 1).error(), Errc::kNoSpace);
  auto added = BufferPool::add_memory_node(files_of(cluster), kAddedBytes, &problem);
  ASSERT_TRUE(added.ok()) << problem.text;
  const MemoryNodeId fresh = added->memory_node;
  EXPECT_EQ(fresh, MemoryNodeId{2});
  const uint64_t room = *pb.free_pages(*b, fresh);
  EXPECT_GT(room * kPageSize, kAddedBytes / 2);
  std::set<uint64_t> given;
  for (;;) {
    const bool first = given.size() % 2 == 0;
    auto page = first ? pa.allocate(*a, 1) : pb.allocate(*b, 1);
    if (!page) break;
    EXPECT_EQ(page->node(), fresh);
    EXPECT_TRUE(given.insert(page->raw).second);
    ASSERT_TRUE(first ? set_word(pa, *a, *page, page->raw).ok() : set_word(pb, *b, *page, page->raw).ok());
  }
  EXPECT_EQ(given.size(), room);
  for (const uint64_t raw : given)
    EXPECT_EQ(word_in(given.size() % 2 ? pa : pb, given.size() % 2 ? *a : *b, {raw}), raw);
  EXPECT_EQ(pa.use(*a)->free, 0u);
  EXPECT_EQ(pa.use(*a)->pages, pb.pages());
}

TEST(GrowingPool, MemoryNodesComeWhileThreadsAllocateAndWrite) {
  constexpr int kThreads = 4, kPagesEach = 300, kAfterwards = 20;  // of which all memory nodes give some
  Cluster cluster({.nodes = 2, .frames = 128});
  std::atomic<int> allocated{0};
  std::atomic<bool> grown{false};
  std::vector<std::vector<PageId>> pages(kThreads);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      BufferPool& pool = cluster.pool(t % 2);
      auto session = cluster.session(t % 2);
      std::mt19937 random(unsigned(t) + 1);
      while (pages[t].size() < kPagesEach) {
        while (pages[t].size() == kPagesEach - kAfterwards && !grown.load()) std::this_thread::yield();
        auto page = pool.allocate(*session, 1);
        ASSERT_TRUE(page.ok());
        pages[t].push_back(*page);
        allocated.fetch_add(1);
        ASSERT_TRUE(set_word(pool, *session, *page, page->raw).ok());
        const PageId old = pages[t][random() % pages[t].size()];
        EXPECT_EQ(word_in(pool, *session, old), old.raw);
      }
    });
  for (uint32_t n = 2; n < 5; ++n) {
    while (allocated.load() < int(n - 1) * kThreads * kPagesEach / 5) std::this_thread::yield();
    Problem problem;
    auto added = BufferPool::add_memory_node(files_of(cluster), kAddedBytes, &problem);
    ASSERT_TRUE(added.ok()) << problem.text;
    EXPECT_EQ(added->memory_node, MemoryNodeId{uint8_t(n)});
  }
  grown.store(true);
  for (std::thread& t : threads) t.join();
  std::map<int, int> given;
  std::set<uint64_t> all;
  for (int node : {1, 0}) {
    auto session = cluster.session(node);
    for (const auto& of_thread : pages)
      for (const PageId page : of_thread) {
        EXPECT_EQ(word_in(cluster.pool(node), *session, page), page.raw);
        all.insert(page.raw);
        ++given[page.node().value];
      }
  }
  EXPECT_EQ(all.size(), size_t(kThreads * kPagesEach)) << "no page was given twice";
  for (int n = 2; n < 5; ++n) EXPECT_GT(given[n], 0) << "memory node " << n;
}

TEST(GrowingPool, WhatIsInUseIsNeverMoreThanThereIs) {
  Cluster cluster({.nodes = 1, .frames = 256});
  auto session = cluster.session(0);
  BufferPool& pool = cluster.pool(0);
  const uint64_t allocated = pool.use(*session)->allocated();
  std::atomic<bool> grown{false};
  std::thread adder([&] {
    Problem problem;
    for (int i = 0; i < 20; ++i)
      EXPECT_TRUE(BufferPool::add_memory_node(files_of(cluster), kAddedBytes, &problem).ok());
    grown.store(true);
  });
  while (!grown.load() && !::testing::Test::HasFailure()) EXPECT_EQ(pool.use(*session)->allocated(), allocated);
  adder.join();
}

// Two nodes of processes, all forked before the memory node is added.  The backends of node 0 bring its pages; its
// message worker and its provider, which have never asked for one, hand them over and evict them.
class ForkedBefore : public ::testing::Test {
 protected:
  static constexpr int kPages = 200;  // more than there are frames
  enum Step : uint32_t { kStart, kAdded, kWritten, kRead, kStopProvider, kLeave };
  struct Shared {
    std::atomic<uint32_t> step, forked, provided;
    std::atomic<uint64_t> log_end[2], page[kPages];
  };
  ForkedBefore()
      : shared_(new (mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) Shared) {
    directory_ = "/dev/shm/gcl-test-XXXXXX";
    EXPECT_NE(mkdtemp(directory_.data()), nullptr);
    path_ = directory_ + "/pool", saved_ = directory_ + "/saved";
    EXPECT_TRUE(BufferPool::create_pool(files(), {.pool_bytes = 32 << 20, .memory_nodes = 2}, &problem_).ok())
        << problem_.text;
  }
  ~ForkedBefore() override {
    munmap(shared_, sizeof(Shared));
    EXPECT_EQ(system(("rm -rf " + directory_).c_str()), 0);
  }
  coherence::PoolFiles files() const { return {path_.c_str(), saved_.c_str(), "test=1\n"}; }

  // Durable at once.
  class Log final : public LogSink {
   public:
    explicit Log(std::atomic<uint64_t>& end) : end_(end) {}
    Lsn append(std::span<const std::byte> record) override { return {end_.fetch_add(record.size()) + record.size()}; }
    Lsn flushed() override { return {end_.load()}; }
    void request_flush(Lsn) override {}

   private:
    std::atomic<uint64_t>& end_;
  };
  // Whether that step is still to come.  If it never comes, because some process died, all give up.
  bool before(Step step) const {
    return shared_->step.load() < step && coherence::monotonic_ns() - began_ < 60'000'000'000;
  }
  bool wait_for(Step step) const {
    while (before(step)) usleep(500);
    return shared_->step.load() >= step;
  }
  // Node `n`: `backend` and the two workers, each a process.
  void postmaster(uint8_t n, const std::function<void(BufferPool&, Session&)>& backend) {
    auto made = BufferPool::create_node({.files = files(), .node = {n}, .frames = 32, .sessions_max = 8}, &problem_);
    CHILD_VERIFY(made.ok());
    BufferPool& pool = **made;
    const auto process = [&](uint16_t slot, const std::function<void(Session&)>& body) {
      return child([&] {
        gcl_test::Switch never;
        Log log(shared_->log_end[n]);
        auto session = pool.attach({slot}, never, log);
        shared_->forked.fetch_add(1);
        body(*session);
      });
    };
    const auto serve = [&](Session& session) {
      while (before(kLeave)) CHILD_VERIFY(pool.serve(session, 5).ok());
      bool last;
      CHILD_VERIFY(pool.leave(session, &last, &problem_).ok());
    };
    const auto provide = [&](Session& session) {
      while (before(kStopProvider))
        if (!pool.run_provider_once(session)) pool.wait_for_provider_work(5);
      shared_->provided.fetch_add(1);
    };
    const pid_t processes[] = {process(0, serve), process(1, provide),
                               process(2, [&](Session& session) { backend(pool, session); })};
    for (const pid_t pid : processes) CHILD_VERIFY(ended_well(pid));
  }

  Shared* shared_;
  std::string directory_, path_, saved_;
  Problem problem_;
  const uint64_t began_ = coherence::monotonic_ns();
};

TEST_F(ForkedBefore, EveryProcessOfANodeUsesTheNewMemoryNode) {
  const pid_t writer = child([&] {
    postmaster(0, [&](BufferPool& pool, Session& session) {
      CHILD_VERIFY(wait_for(kAdded));
      for (int taken = 0; taken < kPages;) {
        auto page = pool.allocate(session, 1);
        CHILD_VERIFY(page.ok());
        if (page->node().value != 2) continue;
        CHILD_VERIFY(set_word(pool, session, *page, page->raw).ok());
        shared_->page[taken++].store(page->raw);
      }
      shared_->step.store(kWritten);
    });
  });
  const pid_t reader = child([&] {
    postmaster(1, [&](BufferPool& pool, Session& session) {
      CHILD_VERIFY(wait_for(kWritten));
      for (int i = kPages; i-- > 0;) {  // the newest first: they are still at the other node
        const PageId page{shared_->page[i].load()};
        CHILD_VERIFY(word_in(pool, session, page) == page.raw);
        if (i % 2 == 0) CHILD_VERIFY(set_word(pool, session, page, page.raw + 1).ok());
      }
      shared_->step.store(kRead);
    });
  });
  while (shared_->forked.load() < 6 && before(kAdded)) usleep(500);
  auto added = BufferPool::add_memory_node(files(), kAddedBytes, &problem_);
  ASSERT_TRUE(added.ok()) << problem_.text;
  shared_->step.store(kAdded);
  EXPECT_TRUE(wait_for(kRead));
  shared_->step.store(kStopProvider);
  while (shared_->provided.load() < 2 && before(kLeave)) usleep(500);  // no session is at work when its node leaves
  shared_->step.store(kLeave);
  EXPECT_TRUE(ended_well(writer));
  EXPECT_TRUE(ended_well(reader));
  if (HasFailure()) return;
  ASSERT_EQ(system(("rm " + path_ + " " + path_ + ".mem?").c_str()), 0);  // a reboot
  gcl_test::Switch never;
  Log log(shared_->log_end[0]);
  auto again = BufferPool::create_node({.files = files(), .node = {0}, .frames = 32, .sessions_max = 8}, &problem_);
  ASSERT_TRUE(again.ok()) << problem_.text;
  EXPECT_EQ((*again)->memory_nodes(), 3u);
  auto session = (*again)->attach({0}, never, log);
  for (int i = 0; i < kPages; ++i) {
    const uint64_t raw = shared_->page[i].load();
    EXPECT_EQ(word_in(**again, *session, PageId{raw}), raw + (i % 2 == 0));
  }
  bool last = false;
  EXPECT_TRUE((*again)->leave(*session, &last, &problem_).ok()) << problem_.text;
}

TEST(Node, IsMadeByATransportThatIsThere) {
  Problem problem;
  EXPECT_EQ(
      BufferPool::create_node({.files = {.path = "/dev/shm/gcl-test-none"}, .transport = {.kind = "none"}}, &problem)
          .error(),
      coherence::Errc::kNotFound);
  EXPECT_NE(strstr(problem.text, "no transport \"none\""), nullptr) << problem.text;
}

}  // namespace
}  // namespace bufmgr
