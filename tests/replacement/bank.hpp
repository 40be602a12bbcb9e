// pgbench's tables on one node: heaps of rows as wide as pgbench's, and unique trees of their keys.
#pragma once

#include <memory>
#include <optional>
#include <random>
#include <thread>
#include <vector>

#include "extension/engine/blink/scan.hpp"
#include "extension/engine/blink/tree.hpp"
#include "tests/replacement/recorder.hpp"
#include "tests/unit/engine/blink/keys.hpp"
#include "tests/unit/engine/engine_fixture.hpp"

namespace gcl_test {

class Bank {
 public:
  // Per branch: 10 tellers, `accounts` accounts.
  Bank(int branches, int accounts);
  // One transaction each, on random rows.
  void transfer();
  void look_up();
  // One page of a scan of the accounts, which begins again at the end.
  void scan_a_page();
  // CREATE INDEX on the accounts: a column in no order.
  void build_index();
  // As if rows with such keys were inserted.
  void add_to_index(int keys);
  // Records the load's page accesses from now on.
  void record(Trace* to) { trace_ = to; }
  uint64_t page_accesses() const { return page_accesses_; }

 private:
  struct Table {
    std::optional<engine::Heap> heap;
    std::optional<engine::blink::Tree> tree;
    uint64_t rows = 0;
  };
  template <class Load>
  void recorded(const Load& load);
  void create(Table& table, uint64_t rows, size_t width);
  void add_row(Table& table, uint64_t key, size_t width, uint32_t command);
  engine::RowRead find(Table& table, uint64_t key, const engine::Snapshot& snapshot, engine_test::RowBuffer& row,
                       bufmgr::Intent intent);
  void update(Table& table, uint64_t key, uint32_t command);
  void tick();
  bufmgr::BufferPool& pool() { return engine_.cluster().pool(0); }
  bufmgr::Session& session() { return worker_.session(); }

  engine_test::Engine engine_;
  engine_test::Worker worker_;
  TestComparator compare_;
  std::mt19937_64 random_{20260101};
  Table accounts_, tellers_, branches_, history_;
  std::optional<engine::blink::Tree> index_;
  std::vector<std::pair<uint64_t, engine::Tid>> index_entries_;
  std::unique_ptr<engine::HeapScan> scan_;
  uint32_t scanned_ = 0;
  int transactions_ = 0;
  Trace* trace_ = nullptr;
  uint64_t page_accesses_ = 0;
};

}  // namespace gcl_test
