#include "bench/txn/workload.hpp"

#include <algorithm>
#include <cstdlib>

namespace txn {

namespace {

constexpr int kDistricts = 10;
constexpr uint64_t kSibenchRows = 100;

uint64_t pages_for(uint64_t rows, uint64_t each) { return (rows + each - 1) / each; }

}  // namespace

Layout::Layout(const WorkloadSpec& spec)
    : spec_(spec),
      customer_pages_(pages_for(uint64_t(kDistricts * spec.customers), kCustomersOfPage)),
      stock_pages_(pages_for(uint64_t(spec.items), kStocksOfPage)) {
  if (spec.kind == "ycsb") {
    news_ = pages_ = spec.pages;
    return;
  }
  const uint64_t new_pages = uint64_t(spec.nodes * spec.threads) * kNewPages;
  if (spec.kind != "tpcc") {
    news_ = spec.kind == "hot-insert" ? kKeyPages : pages_for(std::max(kSibenchRows, 2 * pairs()), kRowsOfPage);
    pages_ = news_ + new_pages;
    return;
  }
  const auto warehouses = uint64_t(spec.warehouses);
  districts_ = warehouses_ + warehouses;
  items_ = districts_ + warehouses;
  customers_ = items_ + pages_for(uint64_t(spec.items), kItemsOfPage);
  stocks_ = customers_ + warehouses * customer_pages_;
  news_ = stocks_ + warehouses * stock_pages_;
  pages_ = news_ + new_pages;
}

// Warehouses go round the nodes; new rows are their thread's.
int Layout::owner(const Row& row) const {
  const auto nodes = uint64_t(spec_.nodes);
  const auto of = [&](uint64_t warehouse) { return int(warehouse % nodes); };
  if (row.page >= news_) return int((row.page - news_) / kNewPages / uint64_t(spec_.threads));
  if (row.page >= stocks_) return of((row.page - stocks_) / stock_pages_);
  if (row.page >= customers_) return of((row.page - customers_) / customer_pages_);
  return of(row.page >= districts_ ? row.page - districts_ : row.page);
}

Client::Client(const WorkloadSpec& spec, Layout& layout, const paper::Zipf* zipf, int node, int thread)
    : spec_(spec),
      layout_(layout),
      zipf_(zipf),
      node_(node),
      thread_(thread),
      random_(sim::Random::mix(spec.seed * 1'000'003 + uint64_t(node) * 1'009 + uint64_t(thread))) {}

const std::vector<Step>& Client::next() {
  steps_.clear();
  if (spec_.kind == "ycsb") {
    ycsb();
  } else if (spec_.kind == "hot-insert") {
    hot_insert();
  } else if (spec_.kind == "sibench") {
    sibench();
  } else if (spec_.kind == "skew") {
    skew();
  } else if (const int w = home(); int(below(100)) < spec_.payments) {
    payment(w);
  } else {
    new_order(w);
  }
  return steps_;
}

// A row once, however often it is wanted.
void Client::add(const Row& row, Access access) {
  for (Step& step : steps_) {
    if (step.row == row) {
      if (access == Access::kUpdate) step.access = access;
      return;
    }
  }
  steps_.push_back({row, access});
}

void Client::ycsb() {
  for (int i = 0; i < spec_.steps; i++) {
    const uint64_t page = zipf_ != nullptr ? zipf_->draw(random_) : below(spec_.pages);
    add({page, uint32_t(below(16))}, int(below(100)) < spec_.reads ? Access::kRead : Access::kUpdate);
  }
}

// A row, and its entry in the right-most leaf.
void Client::hot_insert() {
  add(layout_.next(node_, thread_, made_++), Access::kUpdate);
  add(layout_.place(layout_.next_key()), Access::kUpdate);
}

void Client::sibench() {
  if (below(2) == 0) return add(layout_.place(below(kSibenchRows)), Access::kUpdate);
  for (uint64_t i = 0; i < kSibenchRows; i++) add(layout_.place(i), Access::kRead);
}

// Two rows are read, then one of them is changed.  Pairs of all nodes lie on each page.
void Client::skew() {
  const uint64_t pairs = layout_.pairs();
  const uint64_t pair = spec_.apart ? uint64_t(thread_ * spec_.nodes + node_) : below(pairs);
  const uint64_t from = spec_.scans ? 0 : 2 * pair, to = spec_.scans ? 2 * pairs : from + 2;
  for (uint64_t i = from; i < to; i++) steps_.push_back({layout_.place(i), Access::kRead});
  steps_.push_back({layout_.place(2 * pair + below(2)), Access::kUpdate});
}

int Client::home() {
  if (!spec_.own_warehouses) return int(below(uint64_t(spec_.warehouses)));
  return node_ + spec_.nodes * int(below(uint64_t(spec_.warehouses / spec_.nodes)));
}

// A warehouse of another node, or, where there is one node alone, any.
int Client::other_node() {
  if (spec_.nodes == 1) return int(below(uint64_t(spec_.warehouses)));
  for (;;)
    if (const int w = int(below(uint64_t(spec_.warehouses))); w % spec_.nodes != node_) return w;
}

// TPC-C's NURand: some are drawn more often.
int Client::skewed(int mask, int bound) {
  return int((below(uint64_t(mask) + 1) | below(uint64_t(bound))) % uint64_t(bound));
}

void Client::payment(int w) {
  const int d = int(below(kDistricts));
  add(layout_.warehouse(w), Access::kUpdate);
  add(layout_.district(w, d), Access::kUpdate);
  const bool elsewhere = spec_.remote < 0 && below(100) < 15;
  add(layout_.customer(elsewhere ? other_node() : w, int(below(kDistricts)), skewed(255, spec_.customers)),
      Access::kUpdate);
  add(layout_.next(node_, thread_, made_++), Access::kUpdate);  // of the history
}

void Client::new_order(int w) {
  const int d = int(below(kDistricts));
  add(layout_.warehouse(w), Access::kRead);
  add(layout_.district(w, d), Access::kUpdate);
  add(layout_.customer(w, d, skewed(255, spec_.customers)), Access::kRead);
  const int lines = int(random_.between(5, 15));
  const bool distributed = spec_.remote >= 0 && int(below(100)) < spec_.remote;
  for (int i = 0; i < lines; i++) {
    const int item = skewed(511, spec_.items);
    const bool elsewhere = spec_.remote < 0 ? below(100) == 0 : distributed && i == 0;
    add(layout_.item(item), Access::kImmutable);
    add(layout_.stock(elsewhere ? other_node() : w, item), Access::kUpdate);
  }
  // The order and its entry among the new ones, and its lines, which lie side by side.
  for (int i = 0; i < 2; i++) add(layout_.next(node_, thread_, made_++), Access::kUpdate);
}

}  // namespace txn
