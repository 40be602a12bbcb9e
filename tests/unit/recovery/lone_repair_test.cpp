// All nodes of a pool are dead: the first process that joins repairs it.
#include "recovery/lone_repair.hpp"

#include <filesystem>

#include "coherence/transport/shm/local_pool.hpp"
#include "recovery/page_sweep.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/pool_bytes.hpp"
#include "tests/support/processes.hpp"
#include "tests/support/random_change.hpp"
#include "tests/unit/recovery/replay.hpp"

namespace recovery {
namespace {

using bufmgr::PageId;
using coherence::Errc;
using coherence::kPageSize;
using gcl_test::random_change;

class LoneRepairTest : public ::testing::Test {
 protected:
  static constexpr int kNodes = 3;
  LoneRepairTest()
      : cluster_({.nodes = kNodes,
                  .frames = 128,
                  .ring_bytes = bufmgr::kRingBytesLeast,
                  .repairs_deaths = true,
                  .keep_records = true,
                  .alone = &alone_}) {
    auto session = cluster_.session(0);
    pages_ = gcl_test::pages_of_two_memory_nodes(cluster_.pool(0), *session, 24);
  }
  void change(int node, int times) {
    auto session = cluster_.session(node);
    for (int i = 0; i < times; ++i) random_change(cluster_.pool(node), *session, pages_, random_);
    cluster_.end(node, std::move(session));
  }
  void change_all() {
    for (const int node : {0, 1, 2, 1, 0}) change(node, 15);
    for (auto& record : recovery_test::logged(cluster_)) records_.push_back(std::move(record));
    for (const PageId id : pages_) images_[id.raw];
    recovery_test::replay(images_, records_);
  }
  void expect_pages(int node) {
    auto session = cluster_.session(node);
    for (const PageId id : pages_) {
      auto page = cluster_.pool(node).fix_shared(*session, id);
      ASSERT_TRUE(page.ok()) << coherence::errc_name(page.error());
      EXPECT_EQ(memcmp(page->bytes(), images_[id.raw].bytes, kPageSize), 0) << "page " << id.raw;
    }
    cluster_.end(node, std::move(session));
  }
  coherence::Result<std::unique_ptr<bufmgr::BufferPool>> join(int node, coherence::PoolRepair* alone,
                                                              coherence::Problem* problem) {
    return bufmgr::BufferPool::create_node(
        {.files = {.path = cluster_.path().c_str(), .durable_path = nullptr, .compatibility = "test=1\n"},
         .node = {uint8_t(node)},
         .frames = 16,
         .sessions_max = 8,
         .alone = alone},
        problem);
  }
  int arenas() {
    int count = 0;
    for (const auto& file : std::filesystem::directory_iterator(std::filesystem::path(cluster_.path()).parent_path()))
      count += file.path().string().find(".node") != std::string::npos;
    return count;
  }

  LoneRepair alone_;
  gcl_test::Cluster cluster_;
  std::vector<PageId> pages_;
  std::vector<recovery_test::Record> records_;
  recovery_test::Images images_;
  std::mt19937_64 random_{gcl_test::seed(41)};
};

TEST_F(LoneRepairTest, ThePagesAreAsTheRingsSay) {
  for (int life = 0; life < 2; ++life) {
    change_all();
    for (int n = 0; n < kNodes; ++n) cluster_.kill(n);
    cluster_.start(1);
    coherence::Pool& pool = cluster_.pool(1).coherence_pool();
    for (const PageId id : pages_) {
      EXPECT_EQ(memcmp(gcl_test::pool_bytes(pool, id), images_[id.raw].bytes, kPageSize), 0) << "page " << id.raw;
      EXPECT_EQ(pool.peek_latch(id).raw, 0u);
    }
    EXPECT_LE(arenas(), 2);  // the arena and the recorders of the one that has joined
    cluster_.start(0);
    cluster_.start(2);
    for (int n = 0; n < kNodes; ++n) expect_pages(n);
  }
}

// It dies after so many batches.
class Dying final : public coherence::Memory {
 public:
  Dying(coherence::Memory& real, int batches) : real_(real), left_(batches) {}
  using Memory::post;
  void post(coherence::Batch* const* batches, int count) override {
    if (left_-- == 0) _exit(7);
    real_.post(batches, count);
  }
  void poll() override { real_.poll(); }

 private:
  coherence::Memory& real_;
  int left_;
};

class DyingRepair final : public coherence::PoolRepair {
 public:
  explicit DyingRepair(int batches) : batches_(batches) {}
  coherence::Status repair(coherence::Pool& pool, coherence::Memory& memory, std::span<const Dead> dead,
                           coherence::Problem* problem) noexcept override {
    Dying dying(memory, batches_);
    return LoneRepair().repair(pool, dying, dead, problem);
  }

 private:
  int batches_;
};

TEST_F(LoneRepairTest, AProcessThatDiesMeanwhileIsFollowedByAnother) {
  change_all();
  for (int n = 0; n < kNodes; ++n) cluster_.kill(n);
  int died = 0;
  for (const int batches : {0, 1, 5, 8, 13, 20, 33, 40}) {
    const pid_t child = gcl_test::child([&] {
      DyingRepair dying(batches);
      coherence::Problem problem;
      (void)join(2, &dying, &problem);
      _exit(0);
    });
    int status = 0;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    died += WIFEXITED(status) && WEXITSTATUS(status) == 7;
  }
  EXPECT_GT(died, 5);
  for (const int n : {2, 0, 1}) cluster_.start(n);
  for (int n = 0; n < kNodes; ++n) expect_pages(n);
}

// The last one that lives does not save a pool in which a dead one's pages are old.
TEST_F(LoneRepairTest, ANodeLeavesBesideADeadOne) {
  change_all();
  cluster_.kill(1);
  for (const int n : {0, 2}) {
    RingRepair redo(cluster_.pool(n));
    cluster_.pool(n).coherence_node().set_repair(&redo);
    cluster_.stop(n);
  }
  for (int n = 0; n < kNodes; ++n) cluster_.start(n);
  for (int n = 0; n < kNodes; ++n) expect_pages(n);
}

// While one lives, it is that one's to repair.
TEST_F(LoneRepairTest, NobodyRepairsAloneBesideALivingNode) {
  change_all();
  cluster_.kill(1);
  coherence::Problem problem;
  ASSERT_TRUE(gcl_test::eventually([&] { return cluster_.pool(0).coherence_node().info({1}).dead(); }));
  EXPECT_EQ(join(1, &alone_, &problem).error(), Errc::kUnrepaired) << problem.text;
  RingRepair redo[kNodes] = {RingRepair(cluster_.pool(0)), RingRepair(cluster_.pool(0)), RingRepair(cluster_.pool(2))};
  for (const int n : {0, 2}) {
    cluster_.pool(n).coherence_node().set_repair(&redo[n]);
    expect_pages(n);
  }
  for (const int n : {0, 2}) cluster_.kill(n);
  cluster_.start(1);
  expect_pages(1);
}

// The rings have lost what the pool has had.
TEST_F(LoneRepairTest, AMissingRecordIsAnErrorAndNobodyJoins) {
  for (int i = 0; i < 4; ++i) change_all();
  EXPECT_GT(cluster_.pool(0).ring().tail(), 2 * cluster_.pool(0).ring().data_bytes());
  for (int n = 0; n < kNodes; ++n) cluster_.kill(n);
  coherence::Problem problem;
  auto pool = coherence::LocalPool::open(
      {.path = cluster_.path().c_str(), .durable_path = nullptr, .compatibility = "test=1\n"}, &problem);
  ASSERT_TRUE(pool.ok()) << problem.text;
  std::vector<uint64_t> versions;
  for (const PageId id : pages_) {
    uint64_t version;
    memcpy(&version, gcl_test::pool_bytes(**pool, id), sizeof version);
    versions.push_back(version);
    memset(gcl_test::pool_bytes(**pool, id), 0, sizeof version);
  }
  EXPECT_EQ(join(0, &alone_, &problem).error(), Errc::kNotFound);
  EXPECT_NE(std::string(problem.text).find("the redo between them is missing"), std::string::npos) << problem.text;
  for (size_t i = 0; i < pages_.size(); ++i)
    memcpy(gcl_test::pool_bytes(**pool, pages_[i]), &versions[i], sizeof versions[i]);
  for (int n = 0; n < kNodes; ++n) cluster_.start(n);
  expect_pages(0);
}

}  // namespace
}  // namespace recovery
