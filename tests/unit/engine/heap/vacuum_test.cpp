// VACUUM from several nodes at once.
#include "tests/unit/engine/engine_fixture.hpp"

namespace engine_test {

// Another node's VACUUM of the relation, while one cleans the indexes.
struct Meanwhile final : IndexCleaner {
  explicit Meanwhile(Heap& heap) : other(heap) {}
  coherence::Status remove(std::span<const Tid> tids) override {
    EXPECT_EQ(tids.size(), 1u);
    NoIndexes cleaner;
    auto stats = other.vacuum(cleaner, kPatienceMs);
    EXPECT_TRUE(stats.ok());
    EXPECT_TRUE(stats->skipped);
    EXPECT_EQ(stats->freed, 0u);
    return {};
  }
  Heap& other;
};

class HeapVacuum : public ::testing::Test {
 protected:
  explicit HeapVacuum(uint32_t slots = ~uint32_t{0})
      : engine_({.cluster = {.nodes = 2}, .slots_max = slots}), a_(engine_, 0), b_(engine_, 1) {
    auto made = Heap::create(a_.txns());
    EXPECT_TRUE(made.ok());
    relation_ = *made;
    heap_a_ = std::make_unique<Heap>(a_.txns(), relation_);
    heap_b_ = std::make_unique<Heap>(b_.txns(), relation_);
  }
  // A row that was deleted before every snapshot there is.
  void leave_garbage() {
    auto gone = heap_a_->insert(TestRow("gone").image(), 0);
    ASSERT_TRUE(gone.ok());
    a_.commit();
    EXPECT_EQ(heap_a_->remove(*gone, 0)->result, RowResult::kOk);
    a_.commit();
    for (Worker* worker : {&a_, &b_}) worker->pass_horizon();
  }

  Engine engine_;
  Worker a_, b_;
  RelationId relation_;
  std::unique_ptr<Heap> heap_a_, heap_b_;
};

// Between one VACUUM's survey of the page and its cleaning of the indexes another must not free what it found.
TEST_F(HeapVacuum, ExcludesAnotherOfTheRelationUntilItIsDone) {
  leave_garbage();
  Meanwhile meanwhile(*heap_a_);
  auto stats = heap_b_->vacuum(meanwhile, kPatienceMs);
  ASSERT_TRUE(stats.ok());
  EXPECT_FALSE(stats->skipped);
  EXPECT_EQ(stats->freed, 1u);
  NoIndexes cleaner;
  EXPECT_FALSE(heap_a_->vacuum(cleaner, 0)->skipped);
  EXPECT_FALSE(heap_b_->vacuum(cleaner, 0)->skipped);
}

struct Failing final : IndexCleaner {
  coherence::Status remove(std::span<const Tid>) override { return coherence::Errc::kInterrupted; }
};

TEST_F(HeapVacuum, OneThatFailedLeavesTheRelationToOthers) {
  leave_garbage();
  Failing failing;
  EXPECT_FALSE(heap_b_->vacuum(failing, kPatienceMs).ok());
  NoIndexes cleaner;
  auto stats = heap_a_->vacuum(cleaner, kPatienceMs);
  EXPECT_FALSE(stats->skipped);
  EXPECT_EQ(stats->freed, 1u);
}

// Two sessions' words and an old place: what stands is decided by the session's word alone.
TEST_F(HeapVacuum, AnOldClaimOfASessionIsNotItsNext) {
  auto first = a_->take_session_lock();
  EXPECT_TRUE(*b_->is_held(*first));
  a_->release_session_lock();
  EXPECT_FALSE(*b_->is_held(*first));
  auto second = a_->take_session_lock();
  EXPECT_FALSE(*b_->is_held(*first));
  EXPECT_TRUE(*b_->is_held(*second));
  EXPECT_FALSE(*b_->is_held({}));
  a_->release_session_lock();
}

class HeapVacuumSmallRing : public HeapVacuum {
 protected:
  HeapVacuumSmallRing() : HeapVacuum(256) {}
};

// Transactions of the node that vacuums, far more than its status log has words.
struct Busy final : IndexCleaner {
  Busy(Engine& engine, RelationId relation) : worker(engine, 1), heap(worker.txns(), relation) {}
  coherence::Status remove(std::span<const Tid>) override {
    for (int i = 0; i < 1000 && !refused; ++i) {
      refused = !heap.insert(TestRow("more").image(), 0).ok();
      refused ? worker.abort() : void(worker.commit());
    }
    return {};
  }
  Worker worker;
  Heap heap;
  bool refused = false;
};

TEST_F(HeapVacuumSmallRing, DoesNotKeepTheStatusLogFromBeingRecycled) {
  leave_garbage();
  Busy busy(engine_, relation_);
  auto stats = heap_b_->vacuum(busy, kPatienceMs);
  ASSERT_TRUE(stats.ok());
  EXPECT_FALSE(busy.refused);
  EXPECT_FALSE(b_->current().wrote());
}

// Rows of one node filled the pool; the other has no extents of its own and can get none.
TEST_F(HeapVacuum, InAFullPoolRoomInOtherNodesExtentsIsUsed) {
  const std::string x(1000, 'x'), z(1000, 'z');
  std::vector<Tid> tids;
  for (int i = 0; i < 500; ++i) {
    auto tid = heap_a_->insert(TestRow(x).image(), 0);
    ASSERT_TRUE(tid.ok());
    tids.push_back(*tid);
    a_.commit();
  }
  auto& pool = engine_.cluster().pool(0);
  while (pool.allocate(a_.session(), 64) || pool.allocate(a_.session(), 1)) {
  }
  for (bool full = false; !full;) {  // what its extents still have
    auto tid = heap_a_->insert(TestRow(x).image(), 0);
    full = !tid;
    if (full)
      a_.abort();
    else
      a_.commit();
  }
  EXPECT_EQ(heap_b_->insert(TestRow(z).image(), 0).error(), Errc::kNoSpace);
  b_.abort();
  for (Tid tid : tids) ASSERT_TRUE(heap_a_->remove(tid, 0).ok());
  a_.commit();
  b_.pass_horizon();
  NoIndexes cleaner;
  auto stats = heap_b_->vacuum(cleaner, kPatienceMs);
  ASSERT_TRUE(stats.ok());
  EXPECT_EQ(stats->freed, tids.size());
  for (int i = 0; i < 300; ++i) {
    ASSERT_TRUE(heap_b_->insert(TestRow(z).image(), 0).ok()) << i;
    b_.commit();
  }
}

}  // namespace engine_test
