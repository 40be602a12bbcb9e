// The bar for a hit, in real time and in one run: a cached shared access costs at most twice what a look-up in a hash
// table and an uncontended std::shared_mutex cost, and an optimistic one writes no cache line that is shared.
//
// The two costs are measured in turn, in slices so short that few are disturbed, and each slice is compared with its
// neighbour.  A neighbour on the same core slows the two differently, for seconds: the best of some attempts counts.
#include <algorithm>
#include <chrono>
#include <shared_mutex>
#include <unordered_map>

#include "tests/support/cluster_fixture.hpp"
#include "tests/support/stores.hpp"

namespace bufmgr {
namespace {

constexpr double kRatioMax = 2;
constexpr int kAttempts = 8;
constexpr int kRounds = 401, kAccesses = 2000;  // some tens of microseconds each
constexpr uint32_t kPages = 64;

template <class Act>
double seconds_of(const Act& act) {
  const auto began = std::chrono::steady_clock::now();
  for (int i = 0; i < kAccesses; ++i) act();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

uint64_t word_of(const std::byte* page) {
  return *reinterpret_cast<const volatile uint64_t*>(page + 256);  // volatile: the load is part of the access
}

// The obvious way: pages in a hash table, each under a latch.
class HashTable {
 public:
  HashTable() : bytes_(kPages * size_t{kPageSize}) {
    for (uint64_t page = 0; page < kPages; ++page) frames_[page].bytes = &bytes_[page * kPageSize];
  }
  uint64_t read(uint64_t page) {
    Frame& frame = frames_.find(page)->second;
    std::shared_lock hold(frame.latch);
    return word_of(frame.bytes);
  }

 private:
  struct Frame {
    std::shared_mutex latch;
    const std::byte* bytes = nullptr;
  };
  std::vector<std::byte> bytes_;
  std::unordered_map<uint64_t, Frame> frames_;
};

class HitCost : public ::testing::Test {
 protected:
  HitCost() : cluster_({.nodes = 2}), session_(cluster_.session(0)), first_(*pool().allocate(*session_, kPages)) {
    for (uint32_t i = 0; i < kPages; ++i) (void)pool().fix_exclusive(*session_, first_ + i);
  }
  BufferPool& pool() { return cluster_.pool(0); }
  PageId next() { return first_ + turn_++ % kPages; }
  uint64_t next_of_table() { return table_turn_++ % kPages; }
  void read_shared() {
    auto guard = pool().fix_shared(*session_, next());
    sum_ += word_of(guard->bytes());
  }
  void read_optimistic() {
    const OptimisticGuard look = pool().peek(*session_, next());
    sum_ += look.get<uint64_t>(256);
    valid_ += look.validate();
  }
  // Of the dearer of the two hits.
  double ratio_to_table() {
    std::vector<double> shared, optimistic, table;
    const uint64_t valid = valid_;
    for (int round = 0; round < kRounds; ++round) {
      const double with_table = seconds_of([&] { sum_ += table_.read(next_of_table()); });
      shared.push_back(seconds_of([&] { read_shared(); }) / with_table);
      optimistic.push_back(seconds_of([&] { read_optimistic(); }) / with_table);
      table.push_back(with_table);
    }
    EXPECT_EQ(valid_ - valid, uint64_t(kRounds) * kAccesses);
    printf("hash table and shared_mutex: %.1f ns; shared hit: %.2f of it, optimistic: %.2f\n",
           median(table) / kAccesses * 1e9, median(shared), median(optimistic));
    return std::max(median(shared), median(optimistic));
  }

  gcl_test::Cluster cluster_;
  std::unique_ptr<Session> session_;
  PageId first_;
  HashTable table_;
  uint64_t turn_ = 0, table_turn_ = 0, sum_ = 0, valid_ = 0;
};

TEST_F(HitCost, ASharedHitIsAtMostTwiceAHashLookUpAndASharedMutexAndAnOptimisticOneWritesNothing) {
  double best = kRatioMax + 1;  // of the dearer one
  for (int attempt = 0; attempt < kAttempts && best > kRatioMax; ++attempt) best = std::min(best, ratio_to_table());
  EXPECT_LE(best, kRatioMax);
  EXPECT_EQ(sum_, 0u);

  // With no one else at work (the message worker renews its lease).
  cluster_.stop_workers(0);
  const uint64_t valid = valid_;
  gcl_test::Stores stores(pool().find(first_));
  stores.ignore(&pool().counts(session_->id()), sizeof(BufferCounts));
  stores.watch([&] { (void)seconds_of([&] { read_optimistic(); }); });
  EXPECT_FALSE(stores.elsewhere_than(nullptr, 0));
  EXPECT_TRUE(stores.changed().empty());
  EXPECT_EQ(valid_ - valid, uint64_t(kAccesses));
}

}  // namespace
}  // namespace bufmgr
