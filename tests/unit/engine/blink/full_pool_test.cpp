// The tree in a pool that has no page left.
#include <random>
#include <set>

#include "tests/support/longer.hpp"
#include "tests/unit/engine/blink/tree_fixture.hpp"

namespace engine::blink {
namespace {

using gcl_test::by_one_thread;

class BlinkFullPool : public BlinkTree {};

// Takes every page of the pool.
std::vector<PageId> take_all(bufmgr::BufferPool& pool, bufmgr::Session& session) {
  std::vector<PageId> all;
  for (const uint32_t count : {64u, 1u})
    for (;;) {
      auto page = pool.allocate(session, count);
      if (!page) break;
      for (uint32_t i = 0; i < count; ++i) all.push_back(*page + i);
    }
  return all;
}

// Whatever a split lacked a page for, the leaf's or one of a page above, the tree answers as before, and goes on when
// there is room.
TEST_F(BlinkFullPool, ASplitWithoutRoomHarmsNothing) {
  std::vector<PageId> taken = take_all(pool(), *session_);
  uint64_t n = 0;
  int refused = 0;
  std::mt19937 random(5);
  while (refused < by_one_thread(60)) {
    const TestKey key{random() % 100000, std::string(300, 'x')};  // few to a page: splits reach up soon
    auto done = put(tree(), *session_, compare_, key, tid_of(n));
    if (done.ok()) {
      model_.emplace(key, tid_of(n++));
      continue;
    }
    ASSERT_EQ(done.error(), Errc::kNoSpace);
    ++refused;
    const CheckReport report = sound(tree(), *session_);
    ASSERT_EQ(report.entries, model_.size());
    ASSERT_EQ(read({}, true), std::vector<Pair>(model_.begin(), model_.end()));
    ASSERT_EQ(read({}, false), std::vector<Pair>(model_.rbegin(), model_.rend()));
    ASSERT_EQ(*pool().free_pages(*session_), 0u) << "a page taken in vain was not given back";
    if (refused % 3 == 0) continue;  // one page at a time: a leaf gets it, and the page above has none
    ASSERT_TRUE(pool().free(*session_, taken.back(), 1).ok());
    taken.pop_back();
  }
  for (PageId page : taken) ASSERT_TRUE(pool().free(*session_, page, 1).ok());
  for (uint64_t i = 0; i < 500; ++i) insert({random() % 100000, "later"}, tid_of(n++));
  for (const Pair& pair : Model(model_)) insert({pair.first.number, "again"}, tid_of(n++));  // passes every split
  expect_sound();
}

// The page above one that was split lacked a page: what fits goes in all the same, on both sides, and what does not is
// refused as everywhere else.
TEST_F(BlinkFullPool, WhereASplitCannotBeCompletedWhatFitsGoesIn) {
  std::vector<PageId> taken = take_all(pool(), *session_);
  gcl_test::TestOrder order;
  uint64_t n = 0;
  auto incomplete = [&] {
    auto report = std::make_unique<Checker>(tree(), *session_, order)->run();
    EXPECT_TRUE(report.ok() && report->sound);
    return report->incomplete;
  };
  std::mt19937 random(6);
  for (;;) {
    const TestKey key{random() % 100000, std::string(300, 'x')};
    auto done = put(tree(), *session_, compare_, key, tid_of(n));
    if (done.ok()) {
      model_.emplace(key, tid_of(n++));
      continue;
    }
    ASSERT_EQ(done.error(), Errc::kNoSpace);
    if (incomplete() != 0) break;
    ASSERT_TRUE(pool().free(*session_, taken.back(), 1).ok());
    taken.pop_back();
  }
  ASSERT_EQ(*pool().free_pages(*session_), 0u);
  // Each entry leaves and comes again, one at a time in each leaf: so many in order are more than a leaf has.
  constexpr size_t kApart = 32;
  static_assert(kApart * (16 + 300) > coherence::kPageSize);
  class Some final : public TidPredicate {
   public:
    std::set<engine::Tid> dead;
    bool operator()(engine::Tid tid) override { return dead.contains(tid); }
  } some;
  const std::vector<Pair> all(model_.begin(), model_.end());
  for (size_t first = 0; first < kApart; ++first) {
    some.dead.clear();
    for (size_t i = first; i < all.size(); i += kApart) some.dead.insert(all[i].second);
    ASSERT_EQ(tree().remove_if(*session_, some)->removed, some.dead.size());
    for (size_t i = first; i < all.size(); i += kApart) {
      auto again = put(tree(), *session_, compare_, all[i].first, all[i].second);
      ASSERT_TRUE(again.ok()) << all[i].first.number << ": " << errc_name(again.error());
    }
  }
  uint64_t refused = 0;
  for (const Pair& pair : Model(model_))
    for (int i = 0; i < 3; ++i, ++n) {
      const TestKey key{pair.first.number, std::string(400, 'y')};
      auto more = put(tree(), *session_, compare_, key, tid_of(n));
      if (more.ok()) {
        model_.emplace(key, tid_of(n));
        continue;
      }
      ASSERT_EQ(more.error(), Errc::kNoSpace);
      ++refused;
    }
  EXPECT_GT(refused, model_.size());
  EXPECT_GE(incomplete(), 1u);
  EXPECT_EQ(read({}, true), std::vector<Pair>(model_.begin(), model_.end()));
  for (PageId page : taken) ASSERT_TRUE(pool().free(*session_, page, 1).ok());
  for (const Pair& pair : Model(model_)) insert({pair.first.number, "later"}, tid_of(n++));
  expect_sound();
}

}  // namespace
}  // namespace engine::blink
