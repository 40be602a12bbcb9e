// What the engine really does to pages (rows, trees, maps, lock pages, lists, sequences), on three nodes at once, is
// replayed: onto nothing, onto copies that were taken at different moments meanwhile, and onto the pages as the pool
// has them, from the rings.
#include <random>
#include <thread>

#include "extension/engine/blink/tree.hpp"
#include "extension/engine/sequence/sequence.hpp"
#include "tests/support/longer.hpp"
#include "tests/support/pool_bytes.hpp"
#include "tests/unit/engine/blink/keys.hpp"
#include "tests/unit/engine/engine_fixture.hpp"
#include "tests/unit/recovery/replay.hpp"

namespace recovery_test {
namespace {

using namespace engine_test;  // NOLINT: the engine's fixture
using bufmgr::BufferPool;
using bufmgr::PageId;
using bufmgr::PageType;
using gcl_test::TestKey;

constexpr int kWriters = 2 * kNodes;

class OddRows final : public blink::TidPredicate {
 public:
  bool operator()(Tid tid) override { return gcl_test::number_of(tid) % 3 == 1; }
};

class OwnHorizon final : public blink::Horizon {
 public:
  explicit OwnHorizon(TxnSystem& txns) : txns_(txns) {}
  coherence::Result<uint64_t> pass_moment() override {
    auto moment = txns_.pass_moment();
    if (!moment) return moment.error();
    return moment->value;
  }
  coherence::Result<uint64_t> now(uint64_t wanted) override {
    auto horizon = txns_.refresh_horizon(engine::Cts{wanted});
    if (!horizon) return horizon.error();
    return horizon->value;
  }

 private:
  TxnSystem& txns_;
};

// One backend that does anything, until it is told to stop.  What it is refused (a row that another has, a wait that
// takes too long) it lets be.
class Writer {
 public:
  Writer(Engine& engine, int number, RelationId relation, PageId tree, PageId sequence)
      : worker_(engine, number % kNodes),
        heap_(worker_.txns(), relation),
        tree_(*blink::Tree::open(pool(engine, number), worker_.session(), tree)),
        pool_(pool(engine, number)),
        sequence_(sequence),
        number_(number),
        random_(gcl_test::seed(number + 11)) {
    worker_.waiter().timeout_ms = 50;
  }
  void transaction() {
    const Snapshot snapshot = worker_.snapshot();
    const auto rows = scan_rows(heap_, snapshot);
    const bool savepoint = below(4) == 0;
    for (uint32_t command = 0, commands = below(5) + 1; command < commands; ++command) {
      const bool in_savepoint = savepoint && command == 1 && worker_->sub_begin(2).ok();
      if (!rows.empty() && below(4) != 0)
        change(rows[below(uint32_t(rows.size()))], command);
      else
        insert(command);
      if (in_savepoint) worker_->sub_abort(2);
    }
    if (below(5) == 0)
      worker_.abort();
    else
      worker_.commit();
    index();
    if (below(10) == 0) housekeeping();
  }

 private:
  static BufferPool& pool(Engine& engine, int number) { return engine.cluster().pool(number % kNodes); }
  uint32_t below(uint32_t n) { return uint32_t(random_() % n); }
  TestRow row() {
    const uint32_t size = below(20) == 0 ? below(4000) : below(10) == 0 ? below(500) : 100;
    std::string text(size + 8, char('a' + below(26)));
    for (uint32_t i = 0; i < 4; ++i) text[below(size + 8)] = char(random_());
    return TestRow(text);
  }
  // Mostly as it was, so that the redo of the new version is that of the difference.
  TestRow like(const std::string& text) {
    std::string fresh = text;
    if (!fresh.empty()) fresh[below(uint32_t(fresh.size()))] = char(random_());
    if (below(4) == 0) fresh.insert(below(uint32_t(fresh.size()) + 1), "more");
    if (below(8) == 0) fresh.resize(fresh.size() / 2);
    return TestRow(fresh.substr(0, 5000));
  }
  void insert(uint32_t command) {
    if (below(4) == 0) {
      const std::vector<TestRow> some(below(30) + 1, row());
      std::vector<RowImage> images;
      for (const TestRow& one : some) images.push_back(one.image());
      std::vector<Tid> tids(images.size());
      (void)heap_.multi_insert(images, command, tids.data());
      return;
    }
    const auto tid = heap_.insert(row().image(), command);
    if (!tid || below(8) != 0) return;
    EXPECT_TRUE(worker_->speculate(tid->packed(), uint32_t(number_) + 1).ok());
    if (below(2) == 0) (void)heap_.abandon(*tid);
    worker_->end_speculation();
  }
  void change(const FoundRow& found, uint32_t command) {
    switch (below(8)) {
      case 0:
        (void)heap_.remove(found.tid, command);
        break;
      case 1:
      case 2:
        (void)heap_.lock({.tid = found.tid, .command = command, .mode = RowLock(below(4)), .follow = below(2) == 0},
                         buffer_.bytes);
        break;
      default:
        (void)heap_.update({.tid = found.tid,
                            .row = like(found.text).image(),
                            .command = command,
                            .indexed_changed = below(3) == 0,
                            .key_changed = below(4) == 0});
    }
  }
  void index() {
    for (uint32_t i = 0; i < 20; ++i) {
      const uint64_t number = (number_ * 4 + below(4)) * 1'000'000 + below(100'000);
      const TestKey key{number, std::string(below(30), 'k')};
      (void)gcl_test::put(tree_, worker_.session(), compare_, key, gcl_test::tid_of(number % 50'000));
    }
    Sequence sequence(pool_, worker_.session(), *leases_, sequence_);
    (void)sequence.lease({.increment = 1, .min = 1, .max = 1 << 30, .cache = 40, .cycle = false});
  }
  void housekeeping() {
    switch (below(4)) {
      case 0: {
        NoIndexes none;
        (void)heap_.vacuum(none, 20);
        worker_.commit();
        break;
      }
      case 1: {
        static std::mutex one_at_a_time;  // blink's remove_if()
        std::lock_guard hold(one_at_a_time);
        OddRows odd;
        OwnHorizon horizon(worker_.txns());
        (void)tree_.remove_if(worker_.session(), odd);
        (void)tree_.recycle(worker_.session(), horizon);
        break;
      }
      case 2: {
        auto relation = Heap::create(worker_.txns());
        if (!relation) break;
        Heap heap(worker_.txns(), *relation);
        for (int i = 0; i < 40; ++i) (void)heap.insert(row().image(), 0);
        worker_.abort();
        (void)Heap::drop(worker_.txns(), *relation);
        break;
      }
      default:
        (void)heap_.add_counts(1, 2, 3);
    }
  }

  Worker worker_;
  Heap heap_;
  blink::Tree tree_;
  BufferPool& pool_;
  PageId sequence_;
  std::unique_ptr<LeaseTable> leases_ = std::make_unique<LeaseTable>();
  int number_;
  std::mt19937_64 random_;
  gcl_test::TestComparator compare_;
  RowBuffer buffer_;
};

// The word that says so looks like a hint, of which replayed pages may have none (recovery.every-change-logged); but it
// is none: the row's maker may commit.
TEST(EngineReplay, AnAbandonedRowIsNoneByItsRedo) {
  Engine engine({.cluster = {.nodes = 1, .keep_records = true}});
  {
    Worker worker(engine, 0);
    Heap heap(worker.txns(), *Heap::create(worker.txns()));
    const auto tid = heap.insert(TestRow("abandoned").image(), 0);
    ASSERT_TRUE(tid.ok() && heap.insert(TestRow("kept").image(), 0).ok() && heap.abandon(*tid).ok());
    worker.commit();
  }
  Images pages;
  replay(pages, logged(engine.cluster()), Unknown::kFromZeros);
  std::map<engine::RowTxnKind, int> rows;
  for (const auto& [raw, page] : pages) {
    const engine::HeapPage view(page.bytes);
    for (uint16_t i = 1; page.header().type == PageType::kHeap && i <= view.lines(); ++i)
      ++rows[view.row_header(i).creator.kind()];
  }
  EXPECT_EQ(rows,
            (std::map<engine::RowTxnKind, int>{{engine::RowTxnKind::kInserted, 1}, {engine::RowTxnKind::kAborted, 1}}));
}

TEST(EngineReplay, GivesEveryPageAsItIs) {
  Engine engine({.cluster = {.nodes = kNodes, .frames = 128, .lazy_log = true, .keep_records = true}});
  gcl_test::Cluster& cluster = engine.cluster();
  Images old_copies, from_nothing;
  RelationId relation;
  PageId tree, sequence;
  {
    Worker first(engine, 0);
    relation = *Heap::create(first.txns());
    tree = *blink::Tree::create(cluster.pool(0), first.session());
    sequence = *Sequence::create(cluster.pool(0), first.session(), {1, false});
    // A row that two have locked: the second lock lies in a lock page.
    Heap heap(first.txns(), relation);
    const auto row = heap.insert(TestRow("locked twice").image(), 0);
    ASSERT_TRUE(row.ok());
    first.commit();
    Worker second(engine, 1);
    Heap seconds_heap(second.txns(), relation);
    RowBuffer buffer;
    for (Heap* locker : {&heap, &seconds_heap}) {
      const auto locked = locker->lock({.tid = *row, .command = 0, .mode = RowLock::kKeyShare}, buffer.bytes);
      ASSERT_TRUE(locked.ok() && locked->row.result == RowResult::kOk);
    }
    first.commit();
    second.commit();
  }
  std::atomic<int> running{kWriters};
  std::vector<std::thread> threads;
  for (int t = 0; t < kWriters; ++t) {
    threads.emplace_back([&, t] {
      Writer writer(engine, t, relation, tree, sequence);
      const auto until = std::chrono::steady_clock::now() + gcl_test::longer(std::chrono::seconds(2));
      for (int i = 0; i < 40 || std::chrono::steady_clock::now() < until; ++i) writer.transaction();
      running.fetch_sub(1);
    });
  }
  // Copies of all pages, each as of some moment: what a checkpoint under way would hold.
  auto session = cluster.session(1);
  std::mt19937_64 random(gcl_test::seed(7));
  while (running.load() > 0) {
    const PageId id = PageId::at({uint8_t(random() % 2)}, random() % 1000);
    copy_to(cluster.pool(1), *session, id, &old_copies[id.raw]);
  }
  for (auto& thread : threads) thread.join();
  for (int n = 0; n < kNodes; ++n) engine.pause_ticker(n);

  const std::vector<Record> records = logged(cluster);
  replay(from_nothing, records, Unknown::kFromZeros);
  replay(old_copies, records);
  std::map<PageType, int> seen;
  for (const auto& [raw, replayed] : from_nothing) {
    expect_replayed(cluster.pool(1), *session, PageId{raw}, replayed);
    ++seen[replayed.header().type];
  }
  for (const auto& [raw, replayed] : old_copies) expect_replayed(cluster.pool(1), *session, PageId{raw}, replayed);
  for (const PageType type :
       {PageType::kSpaceMap, PageType::kRelation, PageType::kExtentMap, PageType::kHeap, PageType::kBlinkMeta,
        PageType::kBlinkInner, PageType::kBlinkLeaf, PageType::kLockCells, PageType::kSequence})
    EXPECT_GT(seen[type], 0) << "no page of type " << int(type);

  // All caches are lost: what is left is the pool's pages, and the rings.
  Images of_the_pool;
  std::vector<Record> in_rings;
  for (int n = 0; n < kNodes; ++n) cluster.stop_workers(n);
  for (const auto& [raw, replayed] : from_nothing)
    memcpy(of_the_pool[raw].bytes, gcl_test::pool_bytes(cluster.pool(1).coherence_pool(), PageId{raw}),
           coherence::kPageSize);
  for (int n = 0; n < kNodes; ++n)
    for (Record& record : ring_of(cluster.pool(n), *session, {uint8_t(n)})) in_rings.push_back(std::move(record));
  replay(of_the_pool, in_rings);
  for (const auto& [raw, replayed] : from_nothing) expect_equal(PageId{raw}, of_the_pool[raw], replayed);
}

}  // namespace
}  // namespace recovery_test
