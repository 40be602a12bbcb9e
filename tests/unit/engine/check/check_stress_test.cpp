// Three nodes change a table and its index while others check both: what works is never taken for damage.
#include <map>
#include <random>

#include "extension/engine/check/find_entry.hpp"
#include "extension/engine/check/tree_check.hpp"
#include "tests/support/longer.hpp"
#include "tests/unit/engine/blink/keys.hpp"
#include "tests/unit/engine/check/check_keys.hpp"
#include "tests/unit/engine/check/damage.hpp"
#include "tests/unit/engine/engine_fixture.hpp"

namespace engine_test {

namespace {

constexpr int kWriters = 4, kCheckers = 2, kOwn = 300;  // keys of each writer
constexpr uint32_t kRange = 40;                         // that one transaction changes, or deletes
constexpr int kChecksMin = 6, kDeletedMin = 10;

// The horizon of the transactions, as VACUUM of an index asks for it.
class TxnHorizon final : public engine::blink::Horizon {
 public:
  explicit TxnHorizon(TxnSystem& txns) : txns_(txns) {}
  Result<uint64_t> pass_moment() override { return value(txns_.pass_moment()); }
  Result<uint64_t> now(uint64_t wanted) override { return value(txns_.refresh_horizon(Cts{wanted})); }

 private:
  static Result<uint64_t> value(const Result<Cts>& cts) {
    if (!cts) return cts.error();
    return cts->value;
  }
  TxnSystem& txns_;
};

class TreeCleaner final : public IndexCleaner {
 public:
  TreeCleaner(TxnSystem& txns, engine::blink::Tree tree) : txns_(txns), tree_(tree) {}
  coherence::Status remove(std::span<const Tid> dead) override {
    struct Those final : engine::blink::TidPredicate {
      std::span<const Tid> dead;
      bool operator()(Tid tid) override { return std::binary_search(dead.begin(), dead.end(), tid); }
    } those;
    those.dead = dead;
    auto removed = tree_.remove_if(txns_.session(), those);
    if (!removed) return removed.error();
    deleted += removed->deleted;
    TxnHorizon horizon(txns_);
    auto recycled = tree_.recycle(txns_.session(), horizon);
    return recycled ? coherence::Status{} : coherence::Status{recycled.error()};
  }
  uint64_t deleted = 0;

 private:
  TxnSystem& txns_;
  engine::blink::Tree tree_;
};

}  // namespace

class CheckStress : public ::testing::Test {
 protected:
  CheckStress() : engine_({.cluster = {.nodes = kNodes, .frames = 96, .ring_bytes = 256 << 10}, .slots_max = 4096}) {
    Worker worker(engine_, 0);
    relation_ = *Heap::create(worker.txns());
    meta_ = *engine::blink::Tree::create(worker->pool(), worker.session());
  }
  engine::blink::Tree tree(Worker& worker) {
    return *engine::blink::Tree::open(worker->pool(), worker.session(), meta_);
  }
  static gcl_test::TestKey key_of(uint64_t number) { return {number, std::string(number % 250, 'k')}; }
  bool goes_on() const { return !failed_.load() && !stop_.load(); }

  // Keys of its own, so that nobody waits; pages are everybody's.
  void write(int writer) {
    Worker worker(engine_, writer % kNodes);
    Heap heap(worker.txns(), relation_);
    gcl_test::TestComparator compare;
    std::mt19937 random(gcl_test::seed(writer));
    std::map<uint64_t, Tid> there;
    while (goes_on()) {
      std::map<uint64_t, Tid> now = there;
      ASSERT_TRUE(worker->take_snapshot().ok());  // TIDs are held
      const uint64_t from = random() % kOwn;
      const bool deletes = random() % 2 == 0;
      for (uint32_t command = 0; command < kRange; ++command) {
        const uint64_t number = (from + command) % kOwn + uint64_t(writer) * kOwn;
        const TestRow row(std::to_string(number) + ":" + std::string(random() % 300, 'p'));
        const auto at = now.find(number);
        std::optional<Tid> entry;
        if (at == now.end()) {
          if (deletes) continue;
          entry = *heap.insert(row.image(), command);
          now[number] = *entry;
        } else if (deletes) {
          ASSERT_EQ(heap.remove(at->second, command)->result, RowResult::kOk);
          now.erase(at);
        } else {
          const bool indexed = random() % 4 == 0;
          auto done =
              heap.update({.tid = at->second, .row = row.image(), .command = command, .indexed_changed = indexed});
          ASSERT_TRUE(done.ok());
          ASSERT_EQ(done->row.result, RowResult::kOk);
          at->second = done->tid;
          if (!done->chained) entry = done->tid;
        }
        if (!entry) continue;
        auto put = gcl_test::put(*std::make_unique<engine::blink::Tree>(tree(worker)), worker.session(), compare,
                                 key_of(number), *entry);
        ASSERT_TRUE(put.ok()) << errc_name(put.error());
      }
      if (random() % 5 == 0) {
        worker.abort();
      } else {
        worker.commit();
        there = std::move(now);
      }
    }
  }
  void vacuum() {
    Worker worker(engine_, 1);
    Heap heap(worker.txns(), relation_);
    while (goes_on()) {
      TreeCleaner cleaner(worker.txns(), tree(worker));
      ASSERT_TRUE(heap.vacuum(cleaner, 100).ok());
      deleted_.fetch_add(cleaner.deleted);
    }
  }
  // One check of everything.
  void check(Worker& worker) {
    const Snapshot snapshot = worker.snapshot();
    Heap heap(worker.txns(), relation_);
    auto findings = std::make_unique<Findings>();
    auto rows = std::make_unique<HeapCheck>(worker.txns(), relation_, snapshot, 1);
    const auto done = [&](const coherence::Status& status) {
      ASSERT_TRUE(status.ok()) << errc_name(status.error());
      ASSERT_EQ(told(*findings), "");
    };
    ASSERT_NO_FATAL_FAILURE(done(rows->maps().check(*findings)));
    for (uint32_t i = 0; i < rows->maps().blocks().size(); ++i)
      ASSERT_NO_FATAL_FAILURE(done(rows->check_block(i, *findings)));
    TestKeys keys;
    auto trees = std::make_unique<TreeCheck>(worker.txns(), meta_, keys, rows.get());
    auto more = trees->begin(*findings);
    ASSERT_TRUE(more.ok() && *more);
    while (more.ok() && *more) {
      more = trees->next(*findings);
      ASSERT_NO_FATAL_FAILURE(done(more ? coherence::Status{} : coherence::Status{more.error()}));
    }
    gcl_test::TestComparator compare;
    HeapScan scan(heap, snapshot);
    ASSERT_TRUE(scan.start().ok());
    auto page = std::make_unique<PageRows>();
    uint16_t roots[kLinesMax + 1];
    for (uint32_t i = 0; i < scan.pages(); ++i) {
      ASSERT_TRUE(scan.read(i, *page).ok());
      ASSERT_TRUE(heap.roots_of(*page, roots).ok());
      for (int r = 0; r < page->count; ++r) {
        const uint16_t line = page->offset[r];
        const gcl_test::TestKey key = key_of(uint64_t(std::stol(text_of(*page, line))));
        const gcl_test::Search search{&key};
        auto there =
            find_entry(worker->pool(), worker.session(), tree(worker), compare, &search, {page->block, roots[line]});
        ASSERT_TRUE(there.ok());
        ASSERT_TRUE(*there) << "row " << page->block << "," << line << " of key " << key.number;
      }
    }
    worker->set_oldest(std::nullopt);
    checks_.fetch_add(1);
  }

  Engine engine_;
  RelationId relation_;
  PageId meta_;
  std::atomic<bool> stop_{false}, failed_{false};
  std::atomic<int> checks_{0};
  std::atomic<uint64_t> deleted_{0};
};

TEST_F(CheckStress, WhatWorksIsNotTakenForDamage) {
  std::vector<std::thread> threads;
  const auto start = [&](auto body) {
    threads.emplace_back([this, body] {
      body();
      if (HasFatalFailure()) failed_.store(true);
    });
  };
  for (int w = 0; w < kWriters; ++w) start([this, w] { write(w); });
  for (int c = 0; c < kCheckers; ++c)
    start([this, c] {
      Worker worker(engine_, c + 1);
      while (goes_on() && !HasFatalFailure()) check(worker);
      worker->set_oldest(std::nullopt);
    });
  start([this] { vacuum(); });
  const auto begin = std::chrono::steady_clock::now();
  const auto enough = [&] { return checks_.load() >= kChecksMin && deleted_.load() >= kDeletedMin; };
  for (auto now = begin; !failed_.load() && now < begin + std::chrono::seconds(100);
       now = std::chrono::steady_clock::now()) {
    if (now > begin + gcl_test::longer(std::chrono::seconds(3)) && enough()) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  stop_.store(true);
  for (auto& thread : threads) thread.join();
  EXPECT_GE(checks_.load(), kChecksMin);
  EXPECT_GE(deleted_.load(), uint64_t{kDeletedMin});
  Worker last(engine_, 0);
  check(last);
  printf("%d checks, %lu pages deleted\n", checks_.load(), (unsigned long)deleted_.load());
}

}  // namespace engine_test
