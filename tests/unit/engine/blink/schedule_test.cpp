// Schedules of three nodes on one tree: one stands between two steps, the others come to what it has left half done.
#include <optional>
#include <thread>

#include "tests/support/cluster_fixture.hpp"
#include "tests/unit/engine/blink/keys.hpp"
#include "tests/unit/engine/blink/sound.hpp"
#include "tests/unit/engine/stops.hpp"

namespace engine_test {

using namespace engine::blink;  // NOLINT
using engine::StopPoint;
using gcl_test::put;
using gcl_test::tid_of;

class BlinkSchedule : public ::testing::Test {
 protected:
  BlinkSchedule() {
    for (int n = 0; n < 3; ++n) session_[n] = cluster_.session(n);
    meta_ = *Tree::create(cluster_.pool(0), *session_[0]);
    for (int n = 0; n < 3; ++n) tree_[n].emplace(*Tree::open(cluster_.pool(n), *session_[n], meta_));
  }
  void insert(int node, uint64_t number) {
    auto done = put(*tree_[node], *session_[node], compare_[node], {number, ""}, tid_of(number));
    ASSERT_TRUE(done.ok()) << errc_name(done.error());
  }
  std::vector<uint64_t> read(int node, bool forward) {
    auto scan = std::make_unique<Scan>(*tree_[node], *session_[node], compare_[node]);
    scan->reset({});
    std::vector<uint64_t> seen;
    Entry entry;
    for (;;) {
      auto more = forward ? scan->next(entry) : scan->prev(entry);
      EXPECT_TRUE(more.ok());
      if (!more.ok() || !*more) break;
      seen.push_back(gcl_test::KeyView(entry.key).number);
    }
    if (!forward) std::reverse(seen.begin(), seen.end());
    return seen;
  }
  CheckReport look(int node) { return sound(*tree_[node], *session_[node]); }

  Stops stops_;
  gcl_test::Cluster cluster_{{.nodes = 3}};
  std::unique_ptr<bufmgr::Session> session_[3];
  PageId meta_;
  std::optional<Tree> tree_[3];
  gcl_test::TestComparator compare_[3];
};

// The split page's right half is reached by its left half's link alone.
TEST_F(BlinkSchedule, ASplitThatStandsIsReadByOneAndCompletedByAnother) {
  constexpr uint64_t kKeys = 4000;
  auto split = stops_.attach(StopPoint::kBlinkSplitUnlinked, *session_[0], 3);
  std::atomic<uint64_t> inserted{0};
  std::thread splitter([&] {
    for (uint64_t i = 0; i < kKeys; ++i, ++inserted) insert(0, 2 * i);
  });
  split.reached();
  const uint64_t there = inserted;
  ASSERT_LT(there, kKeys);
  EXPECT_EQ(look(1).incomplete, 1u);
  std::vector<uint64_t> expected(there);
  for (uint64_t i = 0; i < there; ++i) expected[i] = 2 * i;
  EXPECT_EQ(read(1, true), expected);
  EXPECT_EQ(read(1, false), expected);
  for (uint64_t i = 0; i < there; ++i) insert(2, 2 * i + 1);
  EXPECT_EQ(look(1).incomplete, 0u);
  split.go_on();
  splitter.join();
  const CheckReport report = look(1);
  EXPECT_EQ(report.entries, kKeys + there);
  EXPECT_EQ(report.incomplete, 0u);
}

// The page has left its parent, and is still between its neighbours: its range is the right neighbour's.
TEST_F(BlinkSchedule, AHalfDeadPageHidesNothingOfWhatComesIntoItsRange) {
  constexpr uint64_t kKeys = 4000, kDead = 3000;
  for (uint64_t i = 0; i < kKeys; ++i) insert(0, 2 * i);
  class Old final : public TidPredicate {
   public:
    bool operator()(engine::Tid tid) override {
      const uint64_t number = gcl_test::number_of(tid);
      return number < 2 * kDead && number % 2 == 0;
    }
  } old;
  auto leaves = stops_.attach(StopPoint::kBlinkPageHalfDead, *session_[0], 3);
  std::thread vacuum([&] {
    auto done = tree_[0]->remove_if(*session_[0], old);
    EXPECT_TRUE(done.ok());
    EXPECT_EQ(done->removed, kDead);
    EXPECT_GE(done->deleted, 3u);
  });
  leaves.reached();
  EXPECT_EQ(look(1).half_dead, 1u);
  for (uint64_t i = 0; i < kDead; i += 3) insert(2, 2 * i + 1);
  std::vector<uint64_t> odd, expected;
  for (uint64_t i = 0; i < kDead; i += 3) expected.push_back(2 * i + 1);
  for (bool forward : {true, false}) {
    const std::vector<uint64_t> seen = read(1, forward);
    EXPECT_TRUE(std::is_sorted(seen.begin(), seen.end()));
    odd.clear();
    std::copy_if(seen.begin(), seen.end(), std::back_inserter(odd), [](uint64_t number) { return number % 2 == 1; });
    EXPECT_EQ(odd, expected);
  }
  leaves.go_on();
  vacuum.join();
  const CheckReport report = look(1);
  EXPECT_EQ(report.entries, kKeys - kDead + expected.size());
  EXPECT_EQ(report.half_dead, 0u);
}

}  // namespace engine_test
