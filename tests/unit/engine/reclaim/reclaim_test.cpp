// What is made and not kept, and what is dropped, comes back to the pool, whichever node is left to free it.
#include "extension/engine/reclaim/reclaimer.hpp"

#include <gtest/gtest.h>

#include <thread>

#include "extension/engine/blink/build.hpp"
#include "extension/engine/sequence/sequence.hpp"
#include "tests/unit/engine/blink/keys.hpp"
#include "tests/unit/engine/engine_fixture.hpp"

namespace engine_test {
namespace {

using blink::Tree;

class Reclaim : public testing::Test {
 protected:
  static constexpr uint64_t kListPages = 2;  // of a node: the root, and one more for many records

  BufferPool& pool(int node = 0) { return engine_.cluster().pool(node); }
  uint64_t free_pages() { return *pool().free_pages(session()); }
  Session& session() { return a_->session(); }

  // A page of the running level's.
  PageId page_for(Worker& worker, ReclaimKind kind) {
    auto page = ReclaimList(worker.txns()).allocate(*worker->id_for_write(), kind, bufmgr::PageUse::kHousekeeping);
    EXPECT_TRUE(page.ok());
    return page ? *page : PageId{};
  }
  RelationId make_table(Worker& worker, int rows = 0) {
    const RelationId table{page_for(worker, ReclaimKind::kTable)};
    EXPECT_TRUE(Heap::create_at(worker.txns(), table.header).ok());
    Heap heap(worker.txns(), table);
    const TestRow row(std::string(2000, 'r'));
    for (int i = 0; i < rows; ++i) EXPECT_EQ(heap.insert(row.image(), 0).error(), coherence::Errc::kOk);
    return table;
  }
  PageId make_index(Worker& worker, uint64_t entries, bool finish) {
    const PageId meta = page_for(worker, ReclaimKind::kIndex);
    EXPECT_TRUE(Tree::create_at(pool(), worker.session(), meta).ok());
    Tree tree = *Tree::open(pool(), worker.session(), meta);
    gcl_test::TestComparator compare;
    auto builder = std::make_unique<blink::Builder>(tree, worker.session(), compare);
    for (uint64_t i = 0; i < entries; ++i)
      EXPECT_TRUE(builder->add(gcl_test::TestKey{i, "abcdefgh"}.image(), {uint32_t(i + 1), 1}).ok());
    if (finish) {
      EXPECT_TRUE(builder->finish().ok());
    }
    return meta;
  }
  void drop(Worker& worker, std::vector<Dropped> dropped) {
    std::span<const Dropped> rest = dropped;
    EXPECT_TRUE(ReclaimList(worker.txns()).add(*worker->id_for_write(), rest).ok());
    EXPECT_TRUE(rest.empty());
  }
  // Until nothing is left to do; each few steps are the last ones of their process.
  void reclaim(Worker& worker) {
    constexpr int kSteps = 20;  // to choose a list, to read its pages, to free something
    for (int processes = 0;; ++processes) {
      ASSERT_LT(processes, 100000);
      Reclaimer reclaimer(worker.txns());
      bool more = true;
      for (int i = 0; more && i < kSteps; ++i) {
        auto step = reclaimer.step();
        ASSERT_TRUE(step.ok());
        more = *step;
      }
      EXPECT_FALSE(reclaimer.take_failure());
      worker->release_session_lock();
      if (!more) return;
    }
  }
  void expect_back_to(uint64_t before) {
    const uint64_t now = free_pages();
    EXPECT_LE(now, before);
    EXPECT_GE(now + kListPages * uint64_t(engine_.nodes()), before);
  }

  Engine engine_{{.cluster = {.nodes = 2}}};
  std::unique_ptr<Worker> a_ = std::make_unique<Worker>(engine_, 0);
};

TEST_F(Reclaim, WhatIsRolledBackIsFreedAndWhatIsCommittedStays) {
  const uint64_t before = free_pages();
  make_table(*a_, 1000);
  make_index(*a_, 20000, true);
  make_index(*a_, 20000, false);
  make_index(*a_, 0, false);
  page_for(*a_, ReclaimKind::kTable);  // and it came no further
  page_for(*a_, ReclaimKind::kIndex);
  page_for(*a_, ReclaimKind::kSequence);
  reclaim(*a_);
  EXPECT_LT(free_pages(), before - 300) << "it runs";
  a_->abort();
  reclaim(*a_);
  expect_back_to(before);

  const RelationId kept = make_table(*a_, 10);
  a_->commit();
  const uint64_t with = free_pages();
  reclaim(*a_);
  EXPECT_EQ(free_pages(), with);
  EXPECT_FALSE(*Reclaimer::due_anywhere(a_->txns()));
  Heap heap(a_->txns(), kept);
  EXPECT_EQ(scan_all(heap, a_->snapshot()).size(), 10u);
}

TEST_F(Reclaim, WhatIsDroppedIsFreedWhenThatIsCommitted) {
  const uint64_t before = free_pages();
  const RelationId table = make_table(*a_, 300);
  const PageId index = make_index(*a_, 20000, true);
  const PageId sequence = page_for(*a_, ReclaimKind::kSequence);
  EXPECT_TRUE(Sequence::create_at(pool(), session(), sequence, {1, false}).ok());
  a_->commit();
  const std::vector<Dropped> all{
      {ReclaimKind::kTable, table.header}, {ReclaimKind::kIndex, index}, {ReclaimKind::kSequence, sequence}};
  drop(*a_, all);
  a_->abort();
  reclaim(*a_);
  Heap heap(a_->txns(), table);
  EXPECT_EQ(scan_all(heap, a_->snapshot()).size(), 300u);
  a_->abort();
  drop(*a_, all);
  EXPECT_FALSE(*Reclaimer::due_anywhere(a_->txns()));
  a_->commit();
  EXPECT_TRUE(*Reclaimer::due_anywhere(a_->txns()));
  reclaim(*a_);
  expect_back_to(before);
}

TEST_F(Reclaim, ASavepointThatIsRolledBackDecidesAloneAndOneThatIsReleasedWithItsTransaction) {
  make_table(*a_);
  a_->abort();
  reclaim(*a_);  // the list is there
  const uint64_t before = free_pages();
  EXPECT_TRUE(a_->txns().sub_begin(2).ok());
  make_table(*a_, 500);
  a_->txns().sub_abort(2);
  Worker other(engine_, 0);
  reclaim(other);
  EXPECT_EQ(free_pages(), before) << "while the transaction runs";
  EXPECT_TRUE(a_->txns().sub_begin(2).ok());
  const RelationId table = make_table(*a_, 500);
  a_->txns().sub_commit(2);
  drop(*a_, {{ReclaimKind::kTable, table.header}});
  reclaim(other);
  EXPECT_LT(free_pages(), before);
  a_->commit();
  reclaim(other);
  EXPECT_EQ(free_pages(), before) << "made and dropped by one transaction";
}

TEST_F(Reclaim, ThousandsAtOnceLeaveNothingBehindNorDoesTheirList) {
  const uint64_t before = free_pages();
  for (int i = 0; i < 3000; ++i) make_table(*a_);
  a_->abort();
  reclaim(*a_);
  expect_back_to(before);
  std::vector<Dropped> dropped;
  for (int i = 0; i < 3000; ++i) dropped.push_back({ReclaimKind::kTable, make_table(*a_).header});
  a_->commit();
  drop(*a_, dropped);
  a_->commit();
  reclaim(*a_);
  expect_back_to(before);
}

TEST_F(Reclaim, WhatANodeLeavesBehindAnotherOneFrees) {
  const uint64_t before = free_pages();
  {
    Worker b(engine_, 1);
    make_table(b, 500);
    b.abort();
    make_table(b, 500);
    reclaim(*a_);
    EXPECT_TRUE(*Reclaimer::due_anywhere(a_->txns())) << "a node that is there works at its own list";
    b.abort();
  }
  engine_.pause_ticker(1);
  {
    Worker last(engine_, 1);
    last->leave();
  }
  EXPECT_TRUE(a_->txns().tick().ok());
  reclaim(*a_);
  EXPECT_FALSE(*Reclaimer::due_anywhere(a_->txns()));
  expect_back_to(before);
}

TEST_F(Reclaim, WhatWasBeingMadeWhenANodeEndedItsNextIncarnationFrees) {
  const uint64_t before = free_pages();
  engine_.pause_ticker(1);
  {
    // An incarnation's transaction that was not ended: its word stays ACTIVE, as after a crash that was repaired.
    auto session = engine_.cluster().session(1);
    TestWaiter waiter(engine_, 1);
    TxnSystem txns(pool(1), *session, engine_.shared(1), waiter, engine_.waker());
    auto id = txns.id_for_write();
    ASSERT_TRUE(id.ok());
    auto page = ReclaimList(txns).allocate(*id, ReclaimKind::kTable, bufmgr::PageUse::kHousekeeping);
    ASSERT_TRUE(page.ok());
    ASSERT_TRUE(Heap::create_at(txns, *page).ok());
    Heap heap(txns, RelationId{*page});
    const TestRow row(std::string(2000, 'r'));
    for (int i = 0; i < 500; ++i) ASSERT_TRUE(heap.insert(row.image(), 0).ok());
    engine_.cluster().end(1, std::move(session));
  }
  {
    Worker probe(engine_, 1);
    reclaim(probe);
  }
  EXPECT_LT(free_pages() + 100, before);
  engine_.restart(1);
  Worker b(engine_, 1);
  EXPECT_TRUE(b->tick().ok());
  reclaim(b);
  expect_back_to(before);
}

// Two nodes make, drop and roll back; each has a process that reclaims.
TEST_F(Reclaim, NothingIsLostOrFreedTwiceBesideOthers) {
  const uint64_t before = free_pages();
  std::atomic<int> busy{4};
  auto make = [&](int node, int seed) {
    Worker worker(engine_, node);
    std::vector<Dropped> mine;
    for (int i = 0; i < 60; ++i) {
      EXPECT_TRUE(gcl_test::eventually([&] { return *pool(node).free_pages(worker.session()) > 2000; }));
      const RelationId table = make_table(worker, (i + seed) % 7 * 20);
      if ((i + seed) % 3 == 0) {
        worker.abort();
        continue;
      }
      worker.commit();
      mine.push_back({ReclaimKind::kTable, table.header});
      if (mine.size() < 3) continue;
      drop(worker, mine);
      if (i % 2 == 0) {
        worker.abort();
        continue;
      }
      worker.commit();
      mine.clear();
    }
    drop(worker, mine);
    worker.commit();
    --busy;
  };
  auto clean = [&](int node) {
    Worker worker(engine_, node);
    Reclaimer reclaimer(worker.txns());
    for (bool more = true, last = false; more || !last;) {
      last = busy == 0;  // before the check
      auto step = reclaimer.step();
      ASSERT_TRUE(step.ok());
      EXPECT_FALSE(reclaimer.take_failure());
      more = *step;
    }
    worker->release_session_lock();
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back(make, i % 2, i);
  for (int i = 0; i < 2; ++i) threads.emplace_back(clean, i);
  for (std::thread& thread : threads) thread.join();
  EXPECT_FALSE(*Reclaimer::due_anywhere(a_->txns()));
  expect_back_to(before);
}

}  // namespace
}  // namespace engine_test
