// PREPARED, or the commit, waits until a survivor would find every record of the transaction
// (log.ring-before-prepared).
#include <latch>

#include "tests/unit/engine/engine_fixture.hpp"

namespace engine_test {

using gcl_test::eventually;

struct Sleeper final : bufmgr::Interrupts {
  bool pending() noexcept override { return interrupted.load(); }
  void waits(coherence::Wait what) noexcept override {
    if (what == coherence::Wait::kRedoRing) ++waited;
  }
  std::atomic<bool> interrupted{false};
  std::atomic<int> waited{0};
};

// One session of node 0 has taken its place in the ring, and is at work on its record until it may go on.
class HoleInRing : public ::testing::Test {
 protected:
  static constexpr uint64_t kServersXid = 4711;  // of a transaction that its server decides
  HoleInRing() : engine_({.cluster = {.nodes = 1, .workers = false}, .tickers = false}) {
    auto& pool = engine_.cluster().pool(0);
    Worker maker(engine_, 0);
    for (PageId& page : pages_) page = *pool.allocate(maker.session(), 1);
    engine_.cluster().log(0).set_on_append([this] {
      if (!hole_wanted_.exchange(false)) return;
      hole_.store(true);
      fill_.wait();
    });
  }
  void change(Session& session, PageId page) {
    auto& pool = engine_.cluster().pool(0);
    bufmgr::MiniTransaction change(pool, session);
    ASSERT_TRUE(change.reserve(64).ok());
    auto guard = pool.fix_exclusive(session, page);
    ASSERT_TRUE(guard.ok());
    change.join(*guard);
    change.set(*guard, bufmgr::kPageBody, uint64_t{1});
    change.commit();
  }
  std::thread make_hole() {
    hole_wanted_.store(true);
    std::thread thread([this] {
      Worker worker(engine_, 0);
      change(worker.session(), pages_[0]);
    });
    EXPECT_TRUE(eventually([&] { return hole_.load(); }));
    return thread;
  }
  void fill_hole() { fill_.count_down(); }
  uint64_t ring_read_until() {
    auto& pool = engine_.cluster().pool(0);
    Worker reader(engine_, 0);
    std::vector<std::byte> buffer(bufmgr::kMiniRecordMax);
    auto& memory = reader.session().unordered_memory();
    auto ring = bufmgr::RingReader::open(memory, pool.ring_of({0}).at, pool.ring_of({0}).bytes);
    while (ring->next(memory, buffer).ok()) {
    }
    return ring->position();
  }

  Engine engine_;
  PageId pages_[2];
  std::atomic<bool> hole_wanted_{false}, hole_{false};
  std::latch fill_{1};
};

TEST_F(HoleInRing, NoTransactionBehindItIsPreparedUntilItIsFilled) {
  Sleeper sleeper;
  Worker writer(engine_, 0, &sleeper);
  std::thread hole = make_hole();
  const TxnId id = *writer->id_for_write();
  change(writer.session(), pages_[1]);
  const uint64_t end = engine_.cluster().pool(0).ring().head();
  EXPECT_LT(ring_read_until(), end);
  std::atomic<bool> prepared{false};
  std::thread prepares([&] {
    EXPECT_TRUE(writer->prepare(kServersXid).ok());
    prepared.store(true);
  });
  EXPECT_TRUE(eventually([&] { return sleeper.waited > 2 || prepared; }));  // it looks again and again
  EXPECT_FALSE(prepared);
  EXPECT_EQ(Worker(engine_, 0)->status(id)->state, TxnState::kActive);
  fill_hole();
  prepares.join();
  hole.join();
  EXPECT_EQ(ring_read_until(), end);
  EXPECT_TRUE(writer->commit().ok());
}

// Its commit brings its redo (txn.prepared-if-mixed).
TEST_F(HoleInRing, ATransactionOfGclTablesAloneIsActiveUntilItIsCommitted) {
  Sleeper sleeper;
  Worker writer(engine_, 0, &sleeper);
  const TxnId id = *writer->id_for_write();
  change(writer.session(), pages_[1]);
  const uint64_t end = engine_.cluster().pool(0).ring().head();
  EXPECT_LT(ring_read_until(), end);
  EXPECT_TRUE(writer->prepare().ok());
  EXPECT_EQ(Worker(engine_, 0)->status(id)->state, TxnState::kActive);
  EXPECT_LT(ring_read_until(), end);
  std::thread hole = make_hole();  // behind it
  EXPECT_TRUE(writer->commit().ok());
  EXPECT_EQ(sleeper.waited, 0);
  EXPECT_EQ(ring_read_until(), end);
  EXPECT_TRUE(Worker(engine_, 0)->status(id)->committed());
  fill_hole();
  hole.join();
}

TEST_F(HoleInRing, ATransactionBeforeItIsPreparedAtOnce) {
  Sleeper sleeper;
  Worker writer(engine_, 0, &sleeper);
  ASSERT_TRUE(writer->id_for_write().ok());
  change(writer.session(), pages_[1]);
  std::thread hole = make_hole();
  EXPECT_TRUE(writer->prepare().ok());
  EXPECT_EQ(sleeper.waited, 0);
  fill_hole();
  hole.join();
  EXPECT_TRUE(writer->commit().ok());
}

TEST_F(HoleInRing, TheWaitIsInterrupted) {
  Sleeper sleeper;
  Worker writer(engine_, 0, &sleeper);
  std::thread hole = make_hole();
  ASSERT_TRUE(writer->id_for_write().ok());
  change(writer.session(), pages_[1]);
  sleeper.interrupted.store(true);
  EXPECT_EQ(writer->prepare().error(), Errc::kInterrupted);
  EXPECT_EQ(Worker(engine_, 0)->status(writer->current().top())->state, TxnState::kActive);
  sleeper.interrupted.store(false);
  fill_hole();
  hole.join();
  EXPECT_TRUE(writer->prepare().ok() && writer->commit().ok());
}

TEST_F(HoleInRing, TheWaitEndsWithTheFence) {
  Sleeper sleeper;
  Worker writer(engine_, 0, &sleeper);
  std::thread hole = make_hole();
  ASSERT_TRUE(writer->id_for_write().ok());
  change(writer.session(), pages_[1]);
  std::thread fences([&] {
    EXPECT_TRUE(eventually([&] { return sleeper.waited > 0; }));
    engine_.cluster().pool(0).coherence_node().fence("a test");
  });
  EXPECT_EQ(writer->prepare().error(), Errc::kFenced);
  fences.join();
  fill_hole();
  hole.join();
}

}  // namespace engine_test
