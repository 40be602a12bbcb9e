#include "bank.hpp"

#include <algorithm>

#include "extension/engine/blink/build.hpp"

namespace gcl_test {

using engine::Tid;

namespace {

// Bodies of pgbench's rows.
constexpr size_t kAccountBytes = 97, kTellerBytes = 97, kBranchBytes = 93, kHistoryBytes = 43;
constexpr int kTickEvery = 50;  // transactions

template <class T>
T must(coherence::Result<T> result) {
  VERIFY(result.ok());
  return result.take();
}
void must(coherence::Status status) { VERIFY(status.ok()); }

uint64_t shuffled(uint64_t n) { return n * 0x9e3779b97f4a7c15u >> 20; }

}  // namespace

// All pages stay in the cache: the trace does not depend on replacement.
Bank::Bank(int branches, int accounts)
    : engine_({.cluster = {.nodes = 1, .frames = 8192, .pool_bytes = 96 << 20, .memory_nodes = 1}, .tickers = false}),
      worker_(engine_, 0) {
  create(branches_, uint64_t(branches), kBranchBytes);
  create(tellers_, uint64_t(branches) * 10, kTellerBytes);
  create(accounts_, uint64_t(branches) * uint64_t(accounts), kAccountBytes);
  history_.heap.emplace(worker_.txns(), must(engine::Heap::create(worker_.txns())));
  index_entries_.reserve(accounts_.rows);
}

void Bank::create(Table& table, uint64_t rows, size_t width) {
  table.heap.emplace(worker_.txns(), must(engine::Heap::create(worker_.txns())));
  table.tree.emplace(
      must(engine::blink::Tree::open(pool(), session(), must(engine::blink::Tree::create(pool(), session())))));
  for (uint64_t key = 0; key < rows; ++key) add_row(table, key, width, 0);
  worker_.commit();
  table.rows = rows;
}

void Bank::add_row(Table& table, uint64_t key, size_t width, uint32_t command) {
  const engine_test::TestRow row(std::string(width, 'r'));
  const Tid tid = must(table.heap->insert(row.image(), command));
  if (table.tree) VERIFY(must(put(*table.tree, session(), compare_, {key, ""}, tid)).inserted);
}

template <class Load>
void Bank::recorded(const Load& load) {
  if (trace_ == nullptr) return load();
  const uint64_t before = session().page_accesses();
  {
    Recording recording(*trace_);
    load();
  }
  page_accesses_ += session().page_accesses() - before;
}

// The member worker's part, which is not recorded.
void Bank::tick() {
  if (++transactions_ % kTickEvery == 0) must(worker_->tick());
}

engine::RowRead Bank::find(Table& table, uint64_t key, const engine::Snapshot& snapshot, engine_test::RowBuffer& row,
                           bufmgr::Intent intent) {
  const TestKey wanted{key, ""};
  const Search search{&wanted};
  auto scan = std::make_unique<engine::blink::Scan>(*table.tree, session(), compare_);
  scan->reset({.low = {.search = &search, .complete = true}, .high = {.search = &search, .complete = true}});
  engine::blink::Entry entry;
  while (must(scan->next(entry))) {
    const auto read = must(table.heap->fetch_chain(entry.tid, snapshot, row.bytes, intent));
    if (read.found) return read;
  }
  VERIFY(!"the row is there");
}

void Bank::update(Table& table, uint64_t key, uint32_t command) {
  engine_test::RowBuffer row;
  const auto found = find(table, key, worker_.snapshot(command), row, bufmgr::Intent::kWrite);
  const engine_test::TestRow changed(row.text(found.bytes));
  const auto done = must(
      table.heap->update({.tid = found.tid, .row = changed.image(), .command = command, .indexed_changed = false}));
  VERIFY(done.row.result == engine::RowResult::kOk);
  if (!done.chained) (void)must(put(*table.tree, session(), compare_, {key, ""}, done.tid));
}

void Bank::transfer() {
  recorded([&] {
    const uint64_t account = random_() % accounts_.rows;
    update(accounts_, account, 0);
    engine_test::RowBuffer row;
    (void)find(accounts_, account, worker_.snapshot(1), row, bufmgr::Intent::kRead);
    update(tellers_, random_() % tellers_.rows, 2);
    update(branches_, random_() % branches_.rows, 3);
    add_row(history_, 0, kHistoryBytes, 4);
    worker_.commit();
  });
  tick();
}

void Bank::look_up() {
  recorded([&] {
    engine_test::RowBuffer row;
    (void)find(accounts_, random_() % accounts_.rows, worker_.snapshot(), row, bufmgr::Intent::kRead);
    worker_->set_oldest(std::nullopt);
  });
  tick();
}

void Bank::scan_a_page() {
  recorded([&] {
    if (!scan_ || scanned_ == scan_->pages()) {
      scan_ = std::make_unique<engine::HeapScan>(*accounts_.heap, worker_.snapshot());
      must(scan_->start());
      scanned_ = 0;
    }
    auto rows = std::make_unique<engine::PageRows>();
    must(scan_->read(scanned_++, *rows));
    worker_->set_oldest(std::nullopt);
  });
}

void Bank::build_index() {
  recorded([&] {
    engine::HeapScan scan(*accounts_.heap, worker_.snapshot());
    must(scan.start());
    auto rows = std::make_unique<engine::PageRows>();
    for (uint32_t i = 0; i < scan.pages(); ++i) {
      must(scan.read(i, *rows));
      for (int r = 0; r < rows->count; ++r) {
        const Tid tid{rows->block, rows->offset[r]};
        index_entries_.emplace_back(shuffled(index_entries_.size()), tid);
      }
    }
    std::sort(index_entries_.begin(), index_entries_.end());
    index_.emplace(
        must(engine::blink::Tree::open(pool(), session(), must(engine::blink::Tree::create(pool(), session())))));
    auto builder = std::make_unique<engine::blink::Builder>(*index_, session(), compare_);
    for (const auto& [key, tid] : index_entries_) must(builder->add(TestKey{key, ""}.image(), tid));
    must(builder->finish());
    worker_->set_oldest(std::nullopt);
  });
}

void Bank::add_to_index(int keys) {
  recorded([&] {
    for (int i = 0; i < keys; ++i) {
      const uint64_t key = shuffled(accounts_.rows + uint64_t(i));
      VERIFY(must(put(*index_, session(), compare_, {key, ""}, tid_of(uint64_t{1} << 24 | uint64_t(i)))).inserted);
    }
  });
}

}  // namespace gcl_test
