// Where full pages are split: how full leaves are in the end, and how short the keys between them.
#include <algorithm>
#include <optional>
#include <random>

#include "extension/engine/blink/build.hpp"
#include "extension/engine/blink/search.hpp"
#include "tests/support/cluster_fixture.hpp"
#include "tests/unit/engine/blink/keys.hpp"
#include "tests/unit/engine/blink/sound.hpp"

namespace {

using namespace engine::blink;  // NOLINT

using gcl_test::TestKey;
using gcl_test::tid_of;

class BlinkSplitLocation : public ::testing::Test {
 protected:
  BlinkSplitLocation() : cluster_({.nodes = 1, .frames = 512}), session_(cluster_.session(0)) {
    tree_.emplace(*Tree::open(cluster_.pool(0), *session_, *Tree::create(cluster_.pool(0), *session_)));
  }
  Tree& tree() { return *tree_; }
  bufmgr::BufferPool& pool() { return cluster_.pool(0); }

  void insert(const TestKey& key, engine::Tid tid) {
    auto done = gcl_test::put(tree(), *session_, compare_, key, tid);
    ASSERT_TRUE(done.ok() && done->inserted);
    bytes_ += space_of(uint32_t(key.image().size()));
  }
  void insert(const TestKey& key) { insert(key, tid_of(serial_++)); }

  // Percent of the leaves' space that entries and their links take.
  double fill() {
    (void)sound(tree(), *session_);
    return 100.0 * double(bytes_) / (double(leaves()) * kNodeSpace);
  }
  // Calls `see` for the head and bytes of each leaf, from left to right.
  template <class See>
  void each_leaf(const See& see) {
    alignas(8) std::byte bytes[kPageSize];
    PageId page;
    ASSERT_TRUE(leftmost(pool(), *session_, tree().root(), 0, page).ok());
    while (page.valid()) {
      ASSERT_TRUE(pool().copy_page(*session_, page, bytes).ok());
      Head head;
      ASSERT_TRUE(read_head(Source::plain(bytes), head));
      see(head, bytes);
      page = head.special.right;
    }
  }
  uint64_t leaves() {
    uint64_t count = 0;
    each_leaf([&](const Head&, const std::byte*) { ++count; });
    return count;
  }

  gcl_test::Cluster cluster_;
  std::unique_ptr<bufmgr::Session> session_;
  std::optional<Tree> tree_;
  gcl_test::TestComparator compare_;
  uint64_t bytes_ = 0, serial_ = 0;
};

TEST_F(BlinkSplitLocation, AscendingAndDescendingKeysLeaveFullLeaves) {
  for (uint64_t i = 0; i < 20000; ++i) insert({1000000 + i, "x"});
  EXPECT_GT(fill(), 88);
  for (uint64_t i = 0; i < 20000; ++i) insert({999999 - i, "x"});
  EXPECT_GT(fill(), 88);
}

TEST_F(BlinkSplitLocation, RandomKeysDoNoWorseThanHalves) {
  std::mt19937 random(1);
  for (uint64_t i = 0; i < 40000; ++i) insert({random(), "x"});
  EXPECT_GT(fill(), 58);
}

// Three primaries with keys of their own from one sequence, each in leases.  A page where leases end that are neither
// much shorter nor much longer than itself gets less than it could hold: nothing says where they will end.
TEST_F(BlinkSplitLocation, LeasesOfASequenceLeaveFullLeaves) {
  for (const uint64_t lease : {1, 8, 32, 100, 500, 3000}) {
    uint64_t next[3] = {}, left[3] = {}, taken = 0;
    tree_.emplace(*Tree::open(pool(), *session_, *Tree::create(pool(), *session_)));
    bytes_ = 0;
    std::mt19937 random(2);
    for (uint64_t i = 0; i < 30000; ++i) {
      const uint64_t node = random() % 3;
      if (left[node] == 0) {
        next[node] = taken;
        taken += left[node] = lease;
      }
      --left[node];
      insert({next[node]++, "x"});
    }
    const double full = fill();
    printf("leases of %lu: %.0f percent\n", lease, full);
    EXPECT_GT(full, lease == 100 || lease == 500 ? 58 : 80) << "leases of " << lease;
  }
}

// The same where several sessions of each primary take numbers and are not equally fast.
TEST_F(BlinkSplitLocation, NumbersThatComeAlmostInOrderLeaveFullLeaves) {
  constexpr uint64_t kLease = 2000, kEach = 10000;
  constexpr int kSessions = 6;
  std::mt19937 random(3);
  std::vector<TestKey> waiting[3];
  uint64_t next[3] = {}, left[3] = {}, taken = 0;
  for (uint64_t i = 0; i < 3 * kEach; ++i) {
    const uint64_t node = random() % 3;
    while (waiting[node].size() < kSessions) {
      if (left[node] == 0) {
        next[node] = taken;
        taken += left[node] = kLease;
      }
      --left[node];
      waiting[node].push_back({next[node]++, "x"});
    }
    const auto at = waiting[node].begin() + int64_t(random() % kSessions);
    insert(*at);
    waiting[node].erase(at);
  }
  EXPECT_GT(fill(), 80);
}

TEST_F(BlinkSplitLocation, GroupsThatGrowAtTheirEndsLeaveFullLeaves) {
  constexpr uint64_t kGroups = 10;
  for (uint64_t i = 0; i < 40000; ++i) {
    std::string text = std::to_string(1000000 + i);
    insert({i % kGroups, text});
  }
  EXPECT_GT(fill(), 80);
}

// Many entries of few keys, in the order of the table (so of their tids) or not.
TEST_F(BlinkSplitLocation, DuplicatesInTheTablesOrderLeaveFullLeaves) {
  for (uint64_t i = 0; i < 2000; ++i) insert({i % 2 == 0 ? i : 3000 - i, "x"});
  for (uint64_t i = 0; i < 40000; ++i) insert({1000, "x"});
  EXPECT_GT(fill(), 90);
}

TEST_F(BlinkSplitLocation, FewKeysWithManyDuplicatesLeaveFullLeaves) {
  std::mt19937 random(4);
  for (uint64_t i = 0; i < 60000; ++i) insert({random() % 30, "x"});
  EXPECT_GT(fill(), 80);
}

TEST_F(BlinkSplitLocation, DuplicatesInNoOrderDoNoWorseThanHalves) {
  std::mt19937 random(5);
  std::vector<uint64_t> serials(30000);
  for (uint64_t i = 0; i < serials.size(); ++i) serials[i] = i;
  std::shuffle(serials.begin(), serials.end(), random);
  for (uint64_t serial : serials) insert({7, "x"}, tid_of(serial));
  EXPECT_GT(fill(), 64);
}

// Leaves are split where the number changes, if it does nearby: then the text is not needed above them.
TEST_F(BlinkSplitLocation, LeavesAreSplitWhereSeparatorsAreShort) {
  std::mt19937 random(6);
  for (uint64_t i = 0; i < 20000; ++i)
    insert({random() % 4000, std::string(60, 'x') + std::to_string(random() % 100000)});
  uint64_t all = 0, shortened = 0;
  each_leaf([&](const Head& head, const std::byte* bytes) {
    if (!head.special.has_right()) return;
    ++all;
    shortened += gcl_test::KeyView(high_of(bytes, head)).attributes == 1;
  });
  EXPECT_GT(all, 100u);
  EXPECT_GE(shortened * 100, all * 98);
}

}  // namespace
