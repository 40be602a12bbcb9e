// Pages leave the tree and come back to the pool: one node.
#include <algorithm>
#include <random>

#include "bufmgr/space/space_map.hpp"
#include "extension/engine/blink/build.hpp"
#include "extension/engine/blink/image.hpp"
#include "extension/engine/blink/page_deletion.hpp"
#include "tests/support/longer.hpp"
#include "tests/unit/engine/blink/crowd.hpp"
#include "tests/unit/engine/blink/tree_fixture.hpp"

namespace engine::blink {
namespace {

class Shrink : public BlinkTree {
 protected:
  Shrink() : BlinkTree(512) {}
  PageId root() {
    auto page = pool().fix_shared(*session_, meta_);
    PageId root;  // the meta page's third word
    std::memcpy(&root, page->bytes() + kPageBody + 16, sizeof root);
    return root;
  }
  Ground ground() { return {&pool(), session_.get(), meta_, root()}; }

  // Removes what `goes` says, from the tree and from the model.
  template <class Goes>
  RemoveResult remove(const Goes& goes) {
    class Condemned final : public TidPredicate {
     public:
      std::set<engine::Tid> dead;
      bool operator()(engine::Tid tid) override { return dead.contains(tid); }
    } condemned;
    for (auto it = model_.begin(); it != model_.end();) {
      if (!goes(it->first)) {
        ++it;
        continue;
      }
      condemned.dead.insert(it->second);
      it = model_.erase(it);
    }
    auto removed = tree().remove_if(*session_, condemned);
    EXPECT_TRUE(removed.ok());
    EXPECT_EQ(removed->removed, condemned.dead.size());
    return *removed;
  }
  CheckReport check() {
    const CheckReport report = sound(tree(), *session_);
    EXPECT_EQ(report.entries, model_.size());
    EXPECT_EQ(session_->guards_held(), 0);
    return report;
  }
  void expect_all_there() {
    EXPECT_EQ(read({}, true), std::vector<Pair>(model_.begin(), model_.end()));
    EXPECT_EQ(read({}, false), std::vector<Pair>(model_.rbegin(), model_.rend()));
  }
  // The leaf of a key, and its head.
  PageId leaf_of(uint64_t number, Head& head) {
    const TestKey key{number, ""};
    const Search search{&key};
    auto look = std::make_unique<PageReader>();
    EXPECT_TRUE(
        descend(pool(), *session_, compare_, Seek::before(&search, true), root(), 0, nullptr, nullptr, *look, head)
            .ok());
    return look->id();
  }
  // The leaf of a key as a VACUUM leaves it that was stopped in the middle: empty, and half-dead.
  bool leave_half_dead(uint64_t number) {
    Head head;
    const PageId leaf = leaf_of(number, head);
    const Ground here = ground();  // it reads the meta page: not under a guard
    {
      bufmgr::MiniTransaction change(pool(), *session_);
      EXPECT_TRUE(change.reserve(log_space(1)).ok());
      auto page = pool().fix_exclusive(*session_, leaf);
      head = head_of(*page);
      PageImage empty;
      empty.begin(head);
      if (head.special.has_right()) empty.set_high(high_of(page->bytes(), head));
      for (uint32_t i = 0; i < head.count; ++i) {
        const auto bytes = key_at(page->bytes(), head, i);
        model_.erase({gcl_test::KeyView(bytes).key(), load_tid(bytes.data())});
      }
      change.join(*page);
      empty.write_to(change, *page, here.relation(), false);
      change.commit();
    }
    Path none;
    bool done;
    EXPECT_TRUE(detach_leaf(here, leaf, none, done).ok());
    return done;
  }
  RecycleResult recycle() { return *tree().recycle(*session_, crowd_); }

  gcl_test::Crowd crowd_;
};

TEST_F(Shrink, EmptyLeavesLeaveAndTheirPagesComeBack) {
  for (uint64_t i = 0; i < 20000; ++i) insert({i, "x"}, tid_of(i));
  const uint64_t full = pages_used();
  const RemoveResult removed = remove([](const TestKey& key) { return key.number < 19000; });
  EXPECT_GT(removed.deleted, full / 2);
  EXPECT_EQ(*tree().pages(*session_), pages_used()) << "those that wait are the tree's, too";
  EXPECT_EQ(check().half_dead, 0u);
  expect_all_there();
  EXPECT_EQ(recycle().freed, removed.deleted);
  EXPECT_EQ(recycle().freed, 0u);
  EXPECT_LT(pages_used(), full / 5);
  EXPECT_EQ(*tree().pages(*session_), pages_used());
  EXPECT_EQ(check().pages + 2, pages_used());  // meta page and bin
  for (uint64_t i = 0; i < 5000; ++i) insert({i * 3, "again"}, tid_of(30000 + i));
  check();
  expect_all_there();
}

TEST_F(Shrink, InAFullPoolToo) {
  for (uint64_t i = 0; i < 5000; ++i) insert({i, "x"}, tid_of(i));
  for (uint32_t count : {bufmgr::kExtentPages, 1u}) {
    auto page = pool().allocate(*session_, count);
    while (page.ok()) page = pool().allocate(*session_, count);
    ASSERT_EQ(page.error(), Errc::kNoSpace);
  }
  EXPECT_GT(remove([](const TestKey& key) { return key.number < 4000; }).deleted, 5u);
  check();
  expect_all_there();
  EXPECT_GT(recycle().freed, 5u);
}

TEST_F(Shrink, AnEmptiedTreeKeepsOnePageALevelAndWorksOn) {
  for (const uint32_t text : {0u, 1500u}) {
    const uint64_t count = text == 0 ? 20000 : 600;
    for (uint64_t i = 0; i < count; ++i) insert({i * 7919 % count, std::string(text, 'x')}, tid_of(i));
    remove([](const TestKey&) { return true; });
    recycle();
    const CheckReport report = check();
    EXPECT_EQ(report.pages, report.height + 1);
    expect_all_there();
    for (uint64_t i = 0; i < count; ++i) insert({i * 31 % count, "y"}, tid_of(50000 + i));
    check();
    expect_all_there();
    remove([](const TestKey&) { return true; });
  }
}

// What an autovacuumed queue does; long keys make many levels, so that inner pages have to leave as well.
TEST_F(Shrink, AQueueDoesNotGrow) {
  for (const uint32_t text : {0u, 900u, 2600u}) {
    const uint64_t step = text == 0 ? 3000 : 150;
    uint64_t most = 0, at_first = 0;
    std::mt19937 random(9);
    for (uint64_t round = 0; round < gcl_test::by_one_thread(uint64_t{24}); ++round) {
      for (uint64_t i = 0; i < step; ++i)
        insert({round * step + i, std::string(text == 0 ? 0 : text - random() % 100, 'q')}, tid_of(round * step + i));
      const uint64_t gone_below = round * step + step / 2;
      remove([&](const TestKey& key) { return key.number < gone_below; });
      recycle();
      most = std::max(most, pages_used());
      if (round == 4) at_first = most;
    }
    EXPECT_LE(most, at_first + 3) << "keys of " << text;
    check();
    expect_all_there();
    remove([](const TestKey&) { return true; });
    recycle();
  }
}

TEST_F(Shrink, RandomRemovalsOfRangesAgreeWithASet) {
  uint64_t deleted = 0;
  for (uint32_t seed = 0; seed < 4; ++seed) {
    std::mt19937 random(gcl_test::seed(seed));
    uint64_t serial = seed * 1000000;
    for (int round = 0; round < gcl_test::by_one_thread(12); ++round) {
      const uint64_t from = random() % 3000;
      const bool local = random() % 2 == 0;
      for (int i = 0; i < 3000; ++i) {
        const uint64_t number = local ? from + random() % 300 : random() % 3000;
        insert({number, std::string(random() % (seed % 2 == 0 ? 20 : 500), char('a' + random() % 3))},
               tid_of(serial++));
      }
      const uint64_t low = random() % 3000, high = low + random() % 2500;
      deleted += remove([&](const TestKey& key) { return key.number >= low && key.number < high; }).deleted;
      if (random() % 2 == 0) recycle();
      check();
      expect_all_there();
    }
    remove([](const TestKey&) { return true; });
  }
  EXPECT_GT(deleted, gcl_test::by_one_thread(1000u));
}

TEST_F(Shrink, APageWaitsForSessionsThatMayStillComeToIt) {
  for (uint64_t i = 0; i < 5000; ++i) insert({i, ""}, tid_of(i));
  crowd_.count_in(0);
  const uint64_t deleted = remove([](const TestKey& key) { return key.number < 3000; }).deleted;
  ASSERT_GT(deleted, 0u);
  EXPECT_EQ(recycle().waiting, deleted);
  crowd_.count_in(1);  // too late to have seen a link to them
  const uint64_t more = remove([](const TestKey& key) { return key.number < 4000; }).deleted;
  EXPECT_EQ(recycle().freed, 0u);
  crowd_.leave(0);
  EXPECT_EQ(recycle().freed, deleted);
  EXPECT_EQ(recycle().waiting, more);
  crowd_.leave(1);
  EXPECT_EQ(recycle().freed, more);
}

TEST_F(Shrink, WhatAStoppedVacuumLeftHidesNothingAndIsFinishedByTheNext) {
  for (const uint32_t text : {0u, 2600u}) {  // long keys: several levels at once
    const uint64_t count = text == 0 ? 9000 : 120;
    for (uint64_t i = 0; i < count; ++i) insert({i, std::string(text, 'x')}, tid_of(i));
    uint32_t half_dead = 0;
    for (const uint64_t at : {0, 1, 5, 6, 7, 8, 9}) half_dead += leave_half_dead(count * at / 10);
    EXPECT_GT(half_dead, 2u);
    EXPECT_GE(check().half_dead, half_dead);
    expect_all_there();
    for (uint64_t i = 0; i < count; ++i) {  // the ranges of pages that are half-dead, too
      insert({i, std::string(text + 1 - text / 2600, 'y')}, tid_of(20000 + i));
      const TestKey key{i, std::string(text + 1 - text / 2600, 'y')};
      const Search search{&key};
      const Range one{.low = {&search, true, true}, .high = {&search, true, true}};
      ASSERT_EQ(read(one, true).size(), 1u);
      ASSERT_EQ(read(one, false).size(), 1u);
    }
    EXPECT_GE(check().half_dead, half_dead);
    expect_all_there();
    EXPECT_GE(remove([](const TestKey&) { return false; }).deleted, half_dead);
    EXPECT_EQ(check().half_dead, 0u);
    expect_all_there();
    remove([](const TestKey&) { return true; });
  }
}

// A session is about to complete a split, and comes when others have done so, emptied the page, and deleted it.
TEST_F(Shrink, ASplitOfAPageThatHasLeftIsComplete) {
  for (uint64_t i = 0; i < 3000; ++i) insert({i, ""}, tid_of(i));
  Head seen;
  const PageId leaf = leaf_of(1500, seen);
  bool done = false;
  ASSERT_TRUE(split_in_two(ground(), leaf, seen.version, 0, &compare_, done).ok());
  ASSERT_TRUE(done);
  (void)leaf_of(1500, seen);  // the left half
  ASSERT_TRUE(seen.incomplete());
  const Path nowhere;
  PageId parent;
  ASSERT_TRUE(parent_of_incomplete(ground(), leaf, seen, nowhere, parent).ok());
  EXPECT_TRUE(parent.valid());
  ASSERT_TRUE(complete_split(ground(), leaf, nowhere).ok());
  ASSERT_TRUE(parent_of_incomplete(ground(), leaf, seen, nowhere, parent).ok());
  EXPECT_TRUE(parent.valid()) << "no harm: it is looked at again";
  EXPECT_GT(remove([](const TestKey& key) { return key.number > 500; }).deleted, 0u);
  ASSERT_TRUE(parent_of_incomplete(ground(), leaf, seen, nowhere, parent).ok());
  EXPECT_FALSE(parent.valid());
  EXPECT_TRUE(complete_split(ground(), leaf, nowhere).ok());
  EXPECT_EQ(check().incomplete, 0u);
}

TEST_F(Shrink, ADroppedTreeGivesBackWhatWaitsToo) {
  for (uint64_t i = 0; i < 9000; ++i) insert({i, ""}, tid_of(i));
  crowd_.count_in(0);
  remove([](const TestKey& key) { return key.number < 3000; });
  recycle();
  remove([](const TestKey& key) { return key.number < 6000; });
  EXPECT_TRUE(leave_half_dead(8000));
  EXPECT_TRUE(leave_half_dead(0)) << "the first of all";
  EXPECT_EQ(check().half_dead, 2u);
  ASSERT_TRUE(Tree::drop(pool(), *session_, meta_).ok());
  EXPECT_EQ(pages_used(), 0u);
}

// A scan that stands on a leaf while those around it leave, in every arrangement of five neighbours.
TEST_F(Shrink, AStandingScanFindsItsWayInBothDirections) {
  constexpr uint64_t kPerLeaf = 4, kLeaves = 7;
  const std::string text(1500, 't');
  for (uint32_t gone = 1; gone < 32; ++gone) {
    for (uint64_t stand = 1; stand <= 5; ++stand) {
      for (const bool forward : {true, false}) {
        meta_ = *Tree::create(pool(), *session_);
        tree_.emplace(*Tree::open(pool(), *session_, meta_));
        model_.clear();
        auto builder = std::make_unique<Builder>(tree(), *session_, compare_);
        for (uint64_t i = 0; i < kPerLeaf * kLeaves; ++i) {
          model_.emplace(TestKey{i * 10, text}, tid_of(i));
          ASSERT_TRUE(builder->add(TestKey{i * 10, text}.image(), tid_of(i)).ok());
        }
        ASSERT_TRUE(builder->finish().ok());
        auto scan = std::make_unique<Scan>(tree(), *session_, compare_);
        scan->reset({});
        Entry entry;
        const uint64_t steps = stand * kPerLeaf + 1;
        for (uint64_t i = 0; i < steps; ++i) ASSERT_TRUE(*(forward ? scan->next(entry) : scan->prev(entry)));
        const uint64_t at = gcl_test::KeyView(entry.key).number;
        // Some leave one by one from the left, some from the right; the rest of the tree gets new entries.
        for (int pass = 0; pass < 2; ++pass)
          remove([&](const TestKey& key) {
            const uint64_t leaf = key.number / 10 / kPerLeaf;
            return leaf >= 1 && leaf <= 5 && (gone >> (leaf - 1) & 1) != 0 && (pass == 1 || leaf > 3);
          });
        std::vector<uint64_t> expected, seen;
        for (const auto& [key, tid] : model_)
          if (forward ? key.number > at : key.number < at) expected.push_back(key.number);
        if (!forward) std::reverse(expected.begin(), expected.end());
        for (uint64_t i = 0; i < 20; ++i) insert({i * 13 % 280 / 10 * 10 + 5, text}, tid_of(1000 + i));
        while (*(forward ? scan->next(entry) : scan->prev(entry))) {
          const uint64_t number = gcl_test::KeyView(entry.key).number;
          // What stood in the copy of the present leaf may have gone meanwhile.
          if (number % 10 == 0 && model_.contains({TestKey{number, text}, entry.tid})) seen.push_back(number);
        }
        ASSERT_EQ(seen, expected) << "gone " << gone << " stand " << stand << " forward " << forward;
        check();
        ASSERT_TRUE(Tree::drop(pool(), *session_, meta_).ok());
      }
    }
  }
}

TEST_F(Shrink, AScanTurnsRoundWhereAllOnItsLeftHasLeft) {
  const std::string text(1500, 't');
  for (uint64_t i = 0; i < 40; ++i) insert({i, text}, tid_of(i));
  auto scan = std::make_unique<Scan>(tree(), *session_, compare_);
  const TestKey twenty{20, text};
  const Search from{&twenty};
  scan->reset({.high = {.search = &from, .complete = true}});
  Entry entry;
  ASSERT_TRUE(*scan->prev(entry));
  EXPECT_EQ(gcl_test::KeyView(entry.key).number, 20u);
  remove([](const TestKey& key) { return key.number < 18; });
  insert({3, text}, tid_of(100));
  std::vector<uint64_t> back, forth;
  while (*scan->prev(entry)) back.push_back(gcl_test::KeyView(entry.key).number);
  EXPECT_FALSE(*scan->prev(entry));
  while (*scan->next(entry)) forth.push_back(gcl_test::KeyView(entry.key).number);
  for (const uint64_t number : {18, 19}) {
    EXPECT_EQ(std::count(back.begin(), back.end(), number), 1) << number;
    EXPECT_EQ(std::count(forth.begin(), forth.end(), number), 1) << number;
  }
  EXPECT_EQ(std::count(forth.begin(), forth.end(), 20), 1);
  EXPECT_EQ(std::count(forth.begin(), forth.end(), 21), 0);
}

}  // namespace
}  // namespace engine::blink
