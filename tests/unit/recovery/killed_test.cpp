// Nodes that are processes die by SIGKILL while they change pages.  The survivor reads every change that was committed,
// each whole, and frees the name; the next process is the node again.
#include <sys/mman.h>

#include <atomic>

#include "recovery/lone_repair.hpp"
#include "recovery/page_sweep.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/processes.hpp"
#include "tests/unit/recovery/replay.hpp"

namespace recovery {
namespace {

using bufmgr::BufferPool;
using bufmgr::PageId;
using coherence::MemberState;

constexpr int kPages = 32, kLives = 8;
constexpr uint32_t kValueAt[] = {64, 4000, 8100};
constexpr uint32_t kFormerAt = 1024, kFormer = 100;  // values before, moved on by each change

// What processes know of each other.
struct Known {
  std::atomic<uint64_t> begun[kPages], committed[kPages];
  PageId page[kPages];
  char path[256];  // of the pool
};
Known* share_known() {
  return static_cast<Known*>(mmap(nullptr, sizeof(Known), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
}

class Killed : public ::testing::Test {
 protected:
  Killed()
      : known_(share_known()),
        victims_(children()),
        cluster_({.nodes = 1, .frames = 24, .repairs_deaths = true, .alone = &alone_}) {
    auto session = cluster_.session(0);
    const auto pages = gcl_test::pages_of_two_memory_nodes(cluster_.pool(0), *session, kPages);
    std::copy_n(pages.begin(), kPages, known_->page);
    snprintf(known_->path, sizeof known_->path, "%s", cluster_.path().c_str());
    cluster_.end(0, std::move(session));
    prepare();
  }
  std::vector<gcl_test::WaitingChild> children() {
    std::vector<gcl_test::WaitingChild> all;
    for (int life = 0; life < kLives; ++life) all.emplace_back([this, life] { work(life); });
    return all;
  }
  ~Killed() override { munmap(known_, sizeof(Known)); }
  void prepare() {
    redo_ = std::make_unique<RingRepair>(cluster_.pool(0));
    sweep_ = std::make_unique<PageSweep>(cluster_.pool(0), *redo_);
    cluster_.pool(0).coherence_node().set_repair(redo_.get());
  }

  // The node's process, until it is killed: two pages are changed together.
  void work(int life) {
    coherence::Problem problem;
    auto joined =
        BufferPool::create_node({.files = {.path = known_->path, .durable_path = nullptr, .compatibility = "test=1\n"},
                                 .node = {1},
                                 .frames = 24,
                                 .sessions_max = 8},
                                &problem);
    CHILD_VERIFY(joined.ok());
    BufferPool& pool = **joined;
    RingRepair redo(pool);
    pool.coherence_node().set_repair(&redo);
    gcl_test::Switch never;
    gcl_test::MemoryLog log;
    log.set_node(&pool.coherence_node());
    const auto server = pool.attach({0}, never, log), provider = pool.attach({1}, never, log),
               user = pool.attach({2}, never, log);
    std::thread serves([&] {
      while (pool.serve(*server, 20).ok()) {
      }
    });
    std::thread provides([&] {
      for (;;)
        if (!pool.run_provider_once(*provider)) pool.wait_for_provider_work(20);
    });
    std::mt19937_64 random(gcl_test::seed(50 + life));
    for (;;) {
      const int page = int(random() % (kPages - 1));
      const bool in_order = known_->page[page] < known_->page[page + 1];  // guards.ordered-waits
      change_two(pool, *user, in_order ? page : page + 1, in_order ? page + 1 : page);
    }
  }
  void change_two(BufferPool& pool, bufmgr::Session& session, int one, int other) {
    bufmgr::MiniTransaction change(pool, session);
    CHILD_VERIFY(change.reserve(4096).ok());
    auto first = pool.fix_exclusive(session, known_->page[one]);
    CHILD_VERIFY(first.ok());
    session.next_wait(bufmgr::WaitOrder::kById);
    auto second = pool.fix_exclusive(session, known_->page[other]);
    CHILD_VERIFY(second.ok());
    uint64_t value[2];
    int i = 0;
    for (auto* guard : {&*first, &*second}) {
      memcpy(&value[i], guard->bytes() + kValueAt[0], 8);
      value[i]++;
      known_->begun[i == 0 ? one : other] = value[i];
      change.join(*guard);
      for (const uint32_t at : kValueAt) change.set(*guard, at, value[i]);
      change.move(*guard, kFormerAt + 8, kFormerAt, 8 * (kFormer - 1));
      change.set(*guard, kFormerAt, value[i] - 1);
      ++i;
    }
    change.commit();
    CHILD_VERIFY(session.push_what_was_seen().ok());  // as the commit of a transaction does
    known_->committed[one] = value[0];
    known_->committed[other] = value[1];
  }
  void expect_pages() {
    auto session = cluster_.session(0);
    for (int page = 0; page < kPages; ++page) {
      const auto guard = cluster_.pool(0).fix_shared(*session, known_->page[page]);
      ASSERT_TRUE(guard.ok()) << coherence::errc_name(guard.error()) << ": "
                              << cluster_.pool(0).coherence_node().fence_reason();
      uint64_t value;
      memcpy(&value, guard->bytes() + kValueAt[0], 8);
      EXPECT_GE(value, known_->committed[page].load()) << "page " << page;
      EXPECT_LE(value, known_->begun[page].load()) << "page " << page;
      for (const uint32_t at : kValueAt) EXPECT_EQ(memcmp(guard->bytes() + at, &value, 8), 0) << page << " at " << at;
      for (uint64_t i = 0; i < kFormer; ++i) {
        uint64_t former;
        memcpy(&former, guard->bytes() + kFormerAt + 8 * i, 8);
        ASSERT_EQ(former, value > i ? value - 1 - i : 0) << "page " << page << ", " << i + 1 << " changes ago";
      }
      known_->begun[page] = known_->committed[page] = value;
      total_ += value;
    }
    cluster_.end(0, std::move(session));
  }
  bool sweep() {
    return gcl_test::eventually([&] {
      auto session = cluster_.session(0);
      coherence::Problem problem;
      const auto step = sweep_->step(*session, &problem);
      EXPECT_TRUE(step.ok()) << problem.text;
      cluster_.end(0, std::move(session));
      return cluster_.pool(0).coherence_node().info({1}).state == MemberState::kAbsent;
    });
  }
  // Starts the node, and kills it while it is at work.
  void live_and_die(int life) {
    const auto committed = [&] {
      uint64_t sum = 0;
      for (const auto& value : known_->committed) sum += value;
      return sum;
    };
    const uint64_t before = committed();
    gcl_test::WaitingChild& victim = victims_[size_t(life)];
    victim.go();
    EXPECT_TRUE(gcl_test::eventually([&] { return committed() > before + 300 + uint64_t(life) * 37; }));
    if (life % 2 == 0) {  // one of its pages is wanted meanwhile
      auto session = cluster_.session(0);
      EXPECT_TRUE(cluster_.pool(0).fix_shared(*session, known_->page[5]).ok());
      cluster_.end(0, std::move(session));
    }
    victim.kill();
  }

  Known* known_;
  std::vector<gcl_test::WaitingChild> victims_;
  LoneRepair alone_;
  gcl_test::Cluster cluster_;
  std::unique_ptr<RingRepair> redo_;
  std::unique_ptr<PageSweep> sweep_;
  uint64_t total_ = 0;
};

TEST_F(Killed, EveryCommittedChangeIsRead) {
  for (int life = 0; life < kLives; ++life) {
    live_and_die(life);
    if (life % 3 == 0) {  // the sweep meets what no user has met
      EXPECT_TRUE(sweep());
      expect_pages();
    } else {
      expect_pages();
      EXPECT_TRUE(sweep());
    }
    if (HasFailure()) break;
  }
  EXPECT_FALSE(cluster_.pool(0).fenced()) << cluster_.pool(0).coherence_node().fence_reason();
  EXPECT_GT(total_, 0u);
}

// The survivor dies, too: the next one that comes finds all of it.
TEST_F(Killed, EveryCommittedChangeIsReadByTheNodeThatComesWhenAllAreDead) {
  for (int life = 0; life < 3; ++life) {
    live_and_die(life);
    cluster_.kill(0);
    cluster_.start(0);
    prepare();
    expect_pages();
  }
  EXPECT_GT(total_, 0u);
}

}  // namespace
}  // namespace recovery
