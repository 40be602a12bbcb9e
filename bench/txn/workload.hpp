// What transactions do: YCSB, and TPC-C's new-order and payment, as rows that they read and change.  The layout of rows
// in pages is the paper's: heaps, of which each row has one place.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "bench/paper/workload.hpp"
#include "bench/txn/rows.hpp"

namespace txn {

struct WorkloadSpec {
  std::string kind = "tpcc";  // ycsb; as bench/conflicts.py: hot-insert, sibench, skew
  int nodes = 8, threads = 8;
  uint64_t seed = 1;
  // TPC-C
  int warehouses = 64;
  int payments = 50;  // percent; the others are new-order
  int remote = -1;    // percent of new-orders with a line of a warehouse of another node; -1: as TPC-C, 1 % of lines
  bool own_warehouses = true;  // a node's threads work for its own warehouses; else for any
  int items = 2'000;           // and stocks of each warehouse; TPC-C has 100,000
  int customers = 300;         // of each district; TPC-C has 3,000
  // YCSB
  uint64_t pages = 20'000;
  int reads = 50;    // percent; the others are updates
  int steps = 10;    // of a transaction
  double theta = 0;  // of Zipf; 0: uniform
  // skew
  bool apart = false;  // each thread has a pair of its own
  bool scans = false;  // the pair is found by reading all pairs
};

class Layout {
 public:
  explicit Layout(const WorkloadSpec&);
  uint64_t pages() const { return pages_; }
  int owner(const Row&) const;  // of partitions

  Row warehouse(int w) const { return {warehouses_ + uint64_t(w), 0}; }
  Row district(int w, int d) const { return {districts_ + uint64_t(w), uint32_t(d)}; }
  Row item(int i) const { return in(items_, uint64_t(i), kItemsOfPage); }
  Row customer(int w, int d, int c) const {
    return in(customers_ + uint64_t(w) * customer_pages_, uint64_t(d * spec_.customers + c), kCustomersOfPage);
  }
  // Of hot-insert, sibench and skew: rows side by side.
  Row place(uint64_t number) const { return in(0, number, kRowsOfPage); }
  uint64_t next_key() { return keys_++ % (kKeyPages * kRowsOfPage); }
  uint64_t pairs() const { return uint64_t(spec_.nodes * spec_.threads); }
  Row stock(int w, int i) const { return in(stocks_ + uint64_t(w) * stock_pages_, uint64_t(i), kStocksOfPage); }
  // The next place for a new row: each thread fills pages of its own, and begins again at the end of them.
  Row next(int node, int thread, uint64_t number) const {
    const uint64_t pages = kNewPages;
    return {news_ + uint64_t(node * spec_.threads + thread) * pages + number / kRowsOfPage % pages,
            uint32_t(number % kRowsOfPage)};
  }

 private:
  static constexpr uint64_t kItemsOfPage = 16, kCustomersOfPage = 3, kStocksOfPage = 6;  // of 2 KB
  static constexpr uint64_t kRowsOfPage = 16, kNewPages = 16, kKeyPages = 4'096;
  static Row in(uint64_t from, uint64_t number, uint64_t each) {
    return {from + number / each, uint32_t(number % each)};
  }
  const WorkloadSpec spec_;
  uint64_t customer_pages_, stock_pages_;
  uint64_t warehouses_ = 0, districts_, items_, customers_, stocks_, news_, pages_, keys_ = 0;
};

// What one thread does next.
class Client {
 public:
  Client(const WorkloadSpec&, Layout&, const paper::Zipf*, int node, int thread);
  const std::vector<Step>& next();

 private:
  void ycsb();
  void hot_insert();
  void sibench();
  void skew();
  void payment(int w);
  void new_order(int w);
  int home();
  int other_node();
  int skewed(int mask, int below);
  void add(const Row& row, Access access);
  uint64_t below(uint64_t bound) { return random_.below(bound); }
  const WorkloadSpec& spec_;
  Layout& layout_;
  const paper::Zipf* const zipf_;
  const int node_, thread_;
  sim::Random random_;
  std::vector<Step> steps_;
  uint64_t made_ = 0;  // new rows
};

}  // namespace txn
