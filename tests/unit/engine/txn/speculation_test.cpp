// Rows that may be taken back: which sessions wait for them, for how long, and that no wakeup is lost.
#include <limits>
#include <random>

#include "tests/support/longer.hpp"
#include "tests/unit/engine/engine_fixture.hpp"
#include "tests/unit/engine/stops.hpp"

namespace engine_test {

TEST(SpeculationWord, CountsTurnsAndNamesARow) {
  const Tid far{~uint32_t{0}, 291};
  constexpr SpeculationWord fresh{};
  static_assert(!fresh.open() && !fresh.over().open());
  SpeculationWord word = fresh.next(far.packed());
  EXPECT_TRUE(word.open());
  EXPECT_EQ(word.row(), far.packed());
  EXPECT_EQ(word.number(), 1u);
  EXPECT_FALSE(word.over().open());
  EXPECT_EQ(word.over().number(), 1u);
  EXPECT_NE((Tid{1, 2}.packed()), (Tid{2, 1}.packed()));
  EXPECT_NE((Tid{0, 1}.packed()), 0u);
  word = SpeculationWord::of(SpeculationWord::kNumbers - 1, far.packed()).next(far.packed());
  EXPECT_EQ(word.number(), 0u);
  EXPECT_EQ(word.row(), far.packed());
}

TEST(Speculation, AsAnIdIsNoTransactionAndComesBackWhole) {
  const Speculation which{{57}, {65535}, SpeculationWord::kNumbers - 1};
  EXPECT_TRUE(Speculation::is_wait_id(which.wait_id()));
  EXPECT_FALSE(Speculation::is_wait_id(TxnId::make({63}, ~uint64_t{0}).raw));
  const Speculation back = Speculation::of_wait_id(which.wait_id());
  EXPECT_EQ(back.node, which.node);
  EXPECT_EQ(back.session, which.session);
  EXPECT_EQ(back.number, which.number);
}

TEST(Speculation, ANodeThatComesBackHasNoneOpen) {
  Engine engine({.cluster = {.nodes = 2}});
  Worker other(engine, 1);
  auto& pool = engine.cluster().pool(1);
  TxnWords words(pool.region(bufmgr::Region::kTxnWords), pool.region(bufmgr::Region::kStatusLog), pool.nodes_max(),
                 ~0u);
  const auto word = words.speculation({0}, {3});
  EXPECT_TRUE(pool.memory(other.session()).cas(word, 0, SpeculationWord::of(9, 9).raw));
  engine.restart(0);
  EXPECT_EQ(*pool.memory(other.session()).load(word), SpeculationWord::of(9, 0).raw);  // and the numbers go on
}

class SpeculationTest : public ::testing::Test {
 protected:
  SpeculationTest() {
    relation_ = *Heap::create(a_.txns());
    a_.commit();
    heap_a_.emplace(a_.txns(), relation_);
    heap_b_.emplace(b_.txns(), relation_);
  }
  Tid insert_speculatively(uint64_t host_lock = 1) {
    auto tid = heap_a_->insert(TestRow("s").image(), 0);
    EXPECT_TRUE(tid.ok());
    EXPECT_TRUE(a_->speculate(tid->packed(), host_lock).ok());
    return *tid;
  }
  void take_back(Tid tid) {
    EXPECT_TRUE(heap_a_->abandon(tid).ok());
    a_->end_speculation();
  }
  // Whether others wait for the row alone.
  bool open(Tid tid) {
    auto probe = heap_b_->probe(tid);
    EXPECT_TRUE(probe.ok());
    if (probe->kind != RowProbe::kRunning || !probe->made) return false;
    auto which = b_->speculation(probe->by, probe->tid.packed());
    EXPECT_TRUE(which.ok());
    return which->has_value();
  }
  // B probes the row, as ON CONFLICT does for a conflict; runs `meanwhile` when B waits.
  template <class F>
  bool found_after(Tid tid, F meanwhile) {
    bool found = false;
    TestWaiter& waiter = b_.waiter();
    const int before = waiter.waits + waiter.decision_waits;
    std::thread look([&] {
      RowBuffer buffer;
      auto read = heap_b_->fetch_chain(tid, {.kind = SnapshotKind::kDirty}, buffer.bytes);
      EXPECT_TRUE(read.ok());
      found = read.ok() && read->found;
    });
    waiter.expect_waits(before + 1);
    meanwhile();
    look.join();
    return found;
  }

  Stops stops_;
  Engine engine_{{.cluster = {.nodes = 2}}};
  Worker a_{engine_, 0}, b_{engine_, 1};
  RelationId relation_;
  std::optional<Heap> heap_a_, heap_b_;
};

TEST_F(SpeculationTest, ASessionThatMeetsARowThatIsTakenBackGoesOnWhileItsMakerRuns) {
  const Tid tid = insert_speculatively();
  EXPECT_TRUE(open(tid));
  EXPECT_FALSE(found_after(tid, [&] { take_back(tid); }));
  EXPECT_EQ(b_.waiter().decision_waits, 1);
  EXPECT_EQ(b_.waiter().waits, 0);
  EXPECT_TRUE(b_->status(a_->current().top())->running());
}

TEST_F(SpeculationTest, ASessionThatMeetsARowThatIsKeptWaitsForItsMaker) {
  const Tid tid = insert_speculatively();
  EXPECT_TRUE(found_after(tid, [&] {
    a_->end_speculation();
    b_.waiter().expect_waits(2);
    a_.commit();
  }));
  EXPECT_EQ(b_.waiter().decision_waits, 1);
  EXPECT_EQ(b_.waiter().waits, 1);
}

TEST_F(SpeculationTest, AnOrdinaryRowIsWaitedForWithItsTransaction) {
  const Tid before = *heap_a_->insert(TestRow("o").image(), 0);
  const Tid tid = insert_speculatively();
  EXPECT_FALSE(open(before));
  EXPECT_TRUE(found_after(before, [&] { a_.commit(); }));
  EXPECT_EQ(b_.waiter().decision_waits, 0);
  EXPECT_FALSE(open(tid));
}

TEST_F(SpeculationTest, TheNextTurnOfTheSessionDoesNotKeepAWaiter) {
  const Tid first = insert_speculatively();
  auto which = *b_->speculation(a_->current().top(), first.packed());
  ASSERT_TRUE(which.has_value());
  EXPECT_TRUE(*b_->watch(*which));
  take_back(first);
  const Tid second = insert_speculatively();
  EXPECT_FALSE(*b_->watch(*which));
  EXPECT_FALSE(*b_->open(Speculation::of_wait_id(which->wait_id())));
  EXPECT_TRUE(open(second));
  EXPECT_FALSE(open(first));
}

TEST_F(SpeculationTest, TurnsGoOnWithTheNextProcessOfTheSlot) {
  auto number_of = [&](Worker& worker) {
    EXPECT_TRUE(worker->id_for_write().ok());
    EXPECT_TRUE(worker->speculate(Tid{1, 1}.packed(), 1).ok());
    const uint64_t number = (*b_->speculation(worker->current().top(), Tid{1, 1}.packed()))->number;
    worker.abort();
    return number;
  };
  SessionId slot;
  uint64_t first;
  {
    Worker worker(engine_, 0);
    slot = worker.session().id();
    first = number_of(worker);
  }
  Worker worker(engine_, 0);
  ASSERT_EQ(worker.session().id(), slot);
  EXPECT_GT(number_of(worker), first);
}

TEST_F(SpeculationTest, AnErrorEndsItWithItsLevel) {
  ASSERT_TRUE(a_->id_for_write().ok());
  EXPECT_TRUE(a_->sub_begin(2).ok());
  Tid tid = insert_speculatively();
  EXPECT_TRUE(a_->sub_begin(3).ok());
  ASSERT_TRUE(a_->id_for_write().ok());
  a_->sub_abort(3);  // an exception block within an index expression
  EXPECT_TRUE(open(tid));
  EXPECT_FALSE(found_after(tid, [&] { a_->sub_abort(2); }));
  EXPECT_FALSE(open(tid));
  tid = insert_speculatively();
  EXPECT_FALSE(found_after(tid, [&] { a_.abort(); }));
  EXPECT_EQ(b_.waiter().waits, 0);
}

// An index expression that inserts speculatively itself: the outer row counts as kept from then on.
TEST_F(SpeculationTest, AnInnerOneTakesTheWordOver) {
  const Tid outer = insert_speculatively();
  const Tid inner = insert_speculatively();
  EXPECT_TRUE(open(inner));
  EXPECT_FALSE(open(outer));
  take_back(inner);
  take_back(outer);
  EXPECT_EQ(heap_b_->probe(outer)->kind, RowProbe::kDead);
  EXPECT_EQ(heap_b_->probe(inner)->kind, RowProbe::kDead);
  a_.commit();
}

TEST_F(SpeculationTest, ANeighbourFindsTheHostsLockOfThatTurnOnly) {
  Worker near(engine_, 0);
  const Tid first = insert_speculatively(4711);
  auto which = *near->speculation(a_->current().top(), first.packed());
  EXPECT_EQ(*near->host_lock_of(*which), 4711u);
  a_->end_speculation();
  EXPECT_EQ(*near->host_lock_of(*which), 0u);
  const Tid second = insert_speculatively(4712);
  EXPECT_EQ(*near->host_lock_of(*which), 0u);
  EXPECT_EQ(*near->host_lock_of(**near->speculation(a_->current().top(), second.packed())), 4712u);
}

TEST_F(SpeculationTest, ARowOfOnConflictCostsTwoBatches) {
  auto batches = [&](auto&& step) {
    const uint64_t before = a_.session().coherence().counters().get(coherence::Counter::kBatches);
    step();
    return a_.session().coherence().counters().get(coherence::Counter::kBatches) - before;
  };
  take_back(insert_speculatively());  // reads the slot's number
  EXPECT_EQ(batches([&] { EXPECT_TRUE(a_->speculate(1, 1).ok()); }), 1u);
  EXPECT_EQ(batches([&] { a_->end_speculation(); }), 1u);
  EXPECT_EQ(batches([&] { a_->end_speculation(); }), 0u);
}

// A registration that finds the speculation open is seen by the session that ends it (txn.wait-ends-with-speculation).
TEST(SpeculationStress, ANodeThatIsToldToWaitIsRung) {
  constexpr int kRoundsMin = 500, kOver = std::numeric_limits<int>::max();
  const int rounds = 20000 * gcl_test::longer();
  const auto until = std::chrono::steady_clock::now() + gcl_test::longer(std::chrono::seconds(10));
  Engine engine({.cluster = {.nodes = 2}});
  Worker maker(engine, 0);
  ASSERT_TRUE(maker->id_for_write().ok());
  std::atomic<int> begun{0}, decided{0}, checked{0};
  auto reach = [](std::atomic<int>& counter, int at) {  // to the point, while both have a CPU
    for (int i = 0; counter.load() < at; ++i)
      if (i > 2000) std::this_thread::yield();
  };
  Speculation which{};
  int told = 0, refused = 0;
  std::thread watcher([&] {
    Worker worker(engine, 1);
    for (int at = 1;; ++at) {
      const int rings = engine.waker().rings.load();
      reach(begun, at);
      if (begun.load() == kOver) break;
      auto open = worker->watch(which);
      reach(decided, at);
      EXPECT_TRUE(open.ok());
      *open ? ++told : ++refused;
      EXPECT_TRUE(!*open || engine.waker().rings.load() > rings) << "round " << at;
      checked.store(at);
    }
  });
  std::mt19937 random(gcl_test::seed(2));
  const uint64_t row = Tid{3, 4}.packed();
  const auto longest = until + std::chrono::milliseconds(gcl_test::kPatienceMs);
  const auto enough = [&](int at) {  // also, the watcher has had a CPU in time, once
    const auto now = std::chrono::steady_clock::now();
    return at > kRoundsMin && (at > rounds || now > until) && (told > 0 || now > longest);
  };
  for (int at = 1; !enough(at); ++at) {
    EXPECT_TRUE(maker->speculate(row, 1).ok());
    which = **maker->speculation(maker->current().top(), row);
    begun.store(at);
    // Both at the same time, where there are two CPUs; one after the other, where there is one.
    for (unsigned n = random() % 3000; n > 0; --n) std::atomic_signal_fence(std::memory_order_seq_cst);
    if (at % 4 == 0) std::this_thread::yield();
    maker->end_speculation();
    decided.store(at);
    reach(checked, at);
  }
  begun.store(kOver);
  watcher.join();
  std::printf("told to wait %d times, not to %d times\n", told, refused);
  EXPECT_GT(told, 0);
}

// Makers decide as soon as a session could have begun to wait, so that a lost wakeup would show as a wait that ends by
// its timeout.  What a waiter finds is what the maker said.
TEST(SpeculationStress, NoWakeUpIsLostAndWhatWasTakenBackIsNeverFound) {
  const int rounds = 2000 * gcl_test::longer();
  Engine engine({.cluster = {.nodes = 2}});
  Worker maker(engine, 0);
  const RelationId relation = *Heap::create(maker.txns());
  maker.commit();
  std::atomic<uint64_t> made{0};  // packed tid | kept << 63
  std::atomic<int> round{0}, looked{0};
  std::vector<std::thread> readers;
  constexpr int kReaders = 3;
  for (int r = 0; r < kReaders; ++r) {
    readers.emplace_back([&, r] {
      Worker reader(engine, r % 2);
      Heap heap(reader.txns(), relation);
      for (int at = 1; at <= rounds; ++at) {
        while (round.load() < at) std::this_thread::yield();
        const uint64_t word = made.load();
        const Tid tid{uint32_t(word >> 9), uint16_t(word & 511)};
        RowBuffer buffer;
        auto read = heap.fetch_chain(tid, {.kind = SnapshotKind::kDirty}, buffer.bytes);
        EXPECT_TRUE(read.ok()) << "a wait without an end, round " << at;
        EXPECT_EQ(read.ok() && read->found, made.load() >> 63 != 0) << "round " << at;
        looked.fetch_add(1);
      }
    });
  }
  Heap heap(maker.txns(), relation);
  std::mt19937 random(gcl_test::seed(7));
  for (int at = 1; at <= rounds; ++at) {
    auto tid = heap.insert(TestRow("x").image(), 0);
    ASSERT_TRUE(tid.ok());
    ASSERT_TRUE(maker->speculate(tid->packed(), 1).ok());
    const bool keep = at % 2 == 0;
    made.store(tid->packed() | uint64_t{keep} << 63);
    round.store(at);
    for (unsigned n = random() % 20000; n > 0; --n) std::atomic_signal_fence(std::memory_order_seq_cst);
    ASSERT_TRUE(keep || heap.abandon(*tid).ok());
    maker->end_speculation();
    if (keep) maker.commit();
    while (looked.load() < at * kReaders) std::this_thread::yield();
  }
  for (auto& reader : readers) reader.join();
}

// Between a read of the row and the question for its maker's status, the maker takes the row back and commits
// (heap.commit-needs-younger-read).
TEST_F(SpeculationTest, WhatWasTakenBackIsNotThereWhenItsMakerHasCommitted) {
  RowBuffer buffer;
  auto rows = std::make_unique<PageRows>();
  const auto fetched = [&](Tid tid, SnapshotKind kind) {
    auto read = heap_b_->fetch_chain(tid, {.kind = kind}, buffer.bytes);
    return read.ok() && read->found;
  };
  const std::pair<const char*, std::function<bool(Tid)>> ways[] = {
      {"probed", [&](Tid tid) { return heap_b_->probe(tid)->kind == RowProbe::kLive; }},
      {"fetched", [&](Tid tid) { return fetched(tid, SnapshotKind::kSelf); }},
      {"fetched dirty", [&](Tid tid) { return fetched(tid, SnapshotKind::kDirty); }},
      {"scanned",
       [&](Tid tid) {
         EXPECT_TRUE(heap_b_->read_block(tid.block, {.kind = SnapshotKind::kSelf}, *rows).ok());
         return std::count(rows->offset, rows->offset + rows->count, tid.offset) != 0;
       }},
  };
  for (const auto& [way, is_there] : ways) {
    const Tid tid = insert_speculatively();
    auto asks = stops_.attach(StopPoint::kTxnStatusWanted, b_.session());
    bool there = true;
    std::thread reader([&] { there = is_there(tid); });
    asks.reached();
    take_back(tid);
    a_.commit();
    asks.go_on();
    reader.join();
    EXPECT_FALSE(there) << way;
  }
}

}  // namespace engine_test
