// One node: the tree against a std::set.
#include <setjmp.h>

#include <random>

#include "extension/engine/blink/build.hpp"
#include "extension/engine/blink/split.hpp"
#include "tests/support/longer.hpp"
#include "tests/unit/engine/blink/tree_fixture.hpp"

namespace engine::blink {
namespace {

class DeadTids final : public TidPredicate {
 public:
  explicit DeadTids(std::set<engine::Tid> dead) : dead_(std::move(dead)) {}
  bool operator()(engine::Tid tid) override { return dead_.contains(tid); }

 private:
  std::set<engine::Tid> dead_;
};

TestKey random_key(std::mt19937& random, uint32_t numbers, uint32_t text_max) {
  return {random() % numbers, std::string(text_max ? random() % text_max : 0, char('a' + random() % 3))};
}

TEST_F(BlinkTree, EmptyTreeHasNothing) {
  expect_sound();
  EXPECT_TRUE(read({}, true).empty());
  EXPECT_TRUE(read({}, false).empty());
}

TEST_F(BlinkTree, RandomInsertsAndRemovalsAgreeWithASet) {
  std::mt19937 random(1);
  uint64_t serial = 0;
  for (int round = 0; round < 6; ++round) {
    for (int i = 0; i < 3000; ++i) insert(random_key(random, 500, 40), tid_of(serial++));
    expect_sound();
    std::set<engine::Tid> dead;
    for (auto it = model_.begin(); it != model_.end();) {
      if (random() % 3 != 0) {
        ++it;
        continue;
      }
      dead.insert(it->second);
      it = model_.erase(it);
    }
    DeadTids predicate(dead);
    auto removed = tree().remove_if(*session_, predicate);
    ASSERT_TRUE(removed.ok());
    EXPECT_EQ(removed->removed, dead.size());
    EXPECT_EQ(removed->kept, model_.size());
    expect_sound();
  }
  EXPECT_EQ(read({}, true), std::vector<Pair>(model_.begin(), model_.end()));
  EXPECT_EQ(read({}, false), std::vector<Pair>(model_.rbegin(), model_.rend()));
}

TEST_F(BlinkTree, AscendingAndDescendingInserts) {
  for (uint64_t i = 0; i < 5000; ++i) insert({1000000 + i, "x"}, tid_of(i));
  for (uint64_t i = 0; i < 5000; ++i) insert({1000000 - 1 - i, "x"}, tid_of(5000 + i));
  expect_sound();
  auto shape = tree().shape(*session_);
  ASSERT_TRUE(shape.ok());
  EXPECT_GE(shape->height, 1u);
  EXPECT_GT(shape->pages, 30u);
}

TEST_F(BlinkTree, WithoutSuffixTruncationToo) {
  compare_ = gcl_test::TestComparator(false);
  std::mt19937 random(2);
  for (uint64_t i = 0; i < 5000; ++i) insert(random_key(random, 50, 100), tid_of(i));
  expect_sound();
  EXPECT_EQ(read({}, true), std::vector<Pair>(model_.begin(), model_.end()));
}

// Judges a key by its first bytes as TestComparator does, and counts how often it had to compare all of it.
class CountingComparator final : public gcl_test::TestComparator {
 public:
  int compare(const void* search, std::span<const std::byte> key) override {
    ++whole;
    return TestComparator::compare(search, key);
  }
  IntegerOrder integer_order(const void* search) noexcept override {
    return heads ? TestComparator::integer_order(search) : IntegerOrder{};
  }
  bool heads = true;
  int whole = 0;
};

TEST_F(BlinkTree, KeysAreFoundByTheirFirstBytesAsByAllOfThem) {
  std::mt19937 random(11);
  for (uint64_t i = 0; i < 5000; ++i) insert(random_key(random, 300, 30), tid_of(i));
  CountingComparator compare;
  auto scan = std::make_unique<Scan>(tree(), *session_, compare);
  int whole[2] = {};
  for (int i = 0; i < 2000; ++i) {
    const TestKey low = random_key(random, 310, 30), high = random_key(random, 310, 30);
    const bool by_number = random() % 2 == 0;
    const Search from{&low, by_number}, to{&high, random() % 2 == 0};
    const Range range{.low = {&from, random() % 2 == 0, !by_number}, .high = {&to, random() % 2 == 0}};
    std::vector<engine::Tid> seen[2];
    for (const bool heads : {false, true}) {
      compare.heads = heads;
      compare.whole = 0;
      scan->reset(range);
      Entry entry;
      for (int n = 0; n < 3; ++n) {
        auto more = scan->next(entry);
        ASSERT_TRUE(more.ok());
        if (!*more) break;
        seen[heads].push_back(entry.tid);
      }
      whole[heads] += compare.whole;
    }
    ASSERT_EQ(seen[0], seen[1]);
  }
  EXPECT_LT(whole[1] * 3, whole[0]);
}

TEST_F(BlinkTree, ManyEntriesWithOneKeyAreOrderedByTid) {
  std::mt19937 random(3);
  std::vector<uint64_t> serials(4000);
  for (uint64_t i = 0; i < serials.size(); ++i) serials[i] = i;
  std::shuffle(serials.begin(), serials.end(), random);
  for (uint64_t s : serials) insert({7, "same"}, tid_of(s));
  expect_sound();
  EXPECT_EQ(read({}, true), std::vector<Pair>(model_.begin(), model_.end()));
}

TEST_F(BlinkTree, LongKeysUpToTheLimitAndNotBeyond) {
  std::mt19937 random(4);
  for (uint64_t i = 0; i < 400; ++i) {
    const uint32_t length = random() % 4 == 0 ? random() % 100 : kKeyMax - 16 - random() % 60;
    insert({random() % 20, std::string(length, char('a' + random() % 26))}, tid_of(i));
  }
  insert({5, std::string(kKeyMax - 16, 'q')}, tid_of(9999));
  expect_sound();
  EXPECT_GE(tree().shape(*session_)->height, 3u);
  EXPECT_EQ(read({}, true), std::vector<Pair>(model_.begin(), model_.end()));
  auto refused = put(tree(), *session_, compare_, {5, std::string(kKeyMax - 15, 'q')}, tid_of(10000));
  EXPECT_EQ(refused.error(), Errc::kTooLarge);
}

TEST_F(BlinkTree, RangesInBothDirectionsAgreeWithASet) {
  std::mt19937 random(5);
  for (uint64_t i = 0; i < 6000; ++i) insert(random_key(random, 300, 8), tid_of(i));
  for (int round = 0; round < gcl_test::by_one_thread(600); ++round) {
    const TestKey low = random_key(random, 310, 8), high = random_key(random, 310, 8);
    Search search[2] = {{&low, random() % 2 == 0}, {&high, random() % 2 == 0}};
    Range range;
    if (random() % 8 != 0) range.low = {&search[0], random() % 2 == 0, !search[0].number_only && random() % 2 == 0};
    if (random() % 8 != 0) range.high = {&search[1], random() % 2 == 0, !search[1].number_only && random() % 2 == 0};
    if (random() % 4 == 0) range.high = {&search[0], true, range.low.complete};  // equality
    std::vector<Pair> expected;
    for (const Pair& pair : model_) {
      const auto bytes = pair.first.image();
      if (range.low.search) {
        const int c = compare_.compare(range.low.search, bytes);
        if (range.low.inclusive ? c > 0 : c >= 0) continue;
      }
      if (range.high.search) {
        const int c = compare_.compare(range.high.search, bytes);
        if (range.high.inclusive ? c < 0 : c <= 0) continue;
      }
      expected.push_back(pair);
    }
    ASSERT_EQ(read(range, true), expected);
    std::reverse(expected.begin(), expected.end());
    ASSERT_EQ(read(range, false), expected);
  }
}

TEST_F(BlinkTree, ScansTurnAroundAndRememberMarks) {
  std::mt19937 random(6);
  for (uint64_t i = 0; i < 3000; ++i) insert(random_key(random, 1000, 30), tid_of(i));
  const std::vector<Pair> all(model_.begin(), model_.end());
  auto scan = std::make_unique<Scan>(tree(), *session_, compare_);
  scan->reset({});
  auto mark = std::make_unique<Scan>(*scan);
  int64_t at = -1, marked = -1;
  bool started = false;
  for (int i = 0; i < 40000; ++i) {
    if (started && random() % 500 == 0) {
      *mark = *scan;
      marked = at;
    } else if (marked >= 0 && random() % 500 == 0) {
      *scan = *mark;
      at = marked;
    }
    const bool forward = random() % 1000 < (i / 8000 % 2 == 0 ? 900u : 100u);
    Entry entry;
    auto more = forward ? scan->next(entry) : scan->prev(entry);
    ASSERT_TRUE(more.ok());
    if (!started) at = forward ? -1 : int64_t(all.size());
    started = true;
    at = std::clamp<int64_t>(at + (forward ? 1 : -1), -1, int64_t(all.size()));
    ASSERT_EQ(*more, at >= 0 && at < int64_t(all.size()));
    if (*more) {
      ASSERT_EQ(Pair(gcl_test::KeyView(entry.key).key(), entry.tid), all[size_t(at)]);
    }
  }
}

TEST_F(BlinkTree, BulkBuildEqualsInserts) {
  for (const uint64_t count : {0, 1, 2, 300, 400, 20000}) {
    for (const uint32_t text_max : {8u, 2600u}) {
      if (text_max > 8 && count > 1000) continue;
      std::mt19937 random(7);
      auto meta = Tree::create(pool(), *session_);
      ASSERT_TRUE(meta.ok());
      tree_.emplace(*Tree::open(pool(), *session_, *meta));
      model_.clear();
      for (uint64_t i = 0; i < count; ++i) model_.emplace(random_key(random, 5000, text_max), tid_of(i));
      auto builder = std::make_unique<Builder>(tree(), *session_, compare_);
      for (const auto& [key, tid] : model_) ASSERT_TRUE(builder->add(key.image(), tid).ok());
      ASSERT_TRUE(builder->finish().ok());
      expect_sound();
      EXPECT_EQ(read({}, true), std::vector<Pair>(model_.begin(), model_.end()));
      for (uint64_t i = 0; i < count / 4; ++i) insert(random_key(random, 5000, text_max), tid_of(count + i));
      expect_sound();
      ASSERT_TRUE(Tree::drop(pool(), *session_, *meta).ok());
    }
  }
}

TEST_F(BlinkTree, ADropGivesEveryPageBackOfABuildThatWasNotFinishedToo) {
  const auto before = pool().free_pages(*session_);
  ASSERT_TRUE(before.ok());
  for (int round = 0; round < 4; ++round) {
    auto meta = Tree::create(pool(), *session_);
    ASSERT_TRUE(meta.ok());
    Tree tree = *Tree::open(pool(), *session_, *meta);
    auto builder = std::make_unique<Builder>(tree, *session_, compare_);
    for (uint64_t i = 0; i < 30000; ++i) ASSERT_TRUE(builder->add(TestKey{i, "abcdefgh"}.image(), tid_of(i)).ok());
    if (round % 2 == 0) {
      ASSERT_TRUE(builder->finish().ok());
      for (uint64_t i = 0; i < 3000; ++i) ASSERT_TRUE(put(tree, *session_, compare_, {i * 7, "z"}, tid_of(i)).ok());
    }
    ASSERT_TRUE(Tree::drop(pool(), *session_, *meta).ok());
    EXPECT_EQ(*pool().free_pages(*session_), *before);
  }
}

TEST_F(BlinkTree, OpeningSomethingElseIsCorrupt) {
  auto page = pool().allocate(*session_, 1);
  ASSERT_TRUE(page.ok());
  EXPECT_EQ(Tree::open(pool(), *session_, *page).error(), Errc::kCorrupt);
}

// What a session that died between the two halves of a split leaves behind.
TEST_F(BlinkTree, AnIncompleteSplitHidesNothingAndTheNextInsertCompletesIt) {
  for (uint64_t i = 0; i < 3000; ++i) insert({i, ""}, tid_of(i));
  auto root = pool().fix_shared(*session_, meta_);  // the root's number, from the meta page's third word
  PageId root_page;
  std::memcpy(&root_page, root->bytes() + kPageBody + 16, sizeof root_page);
  root->release();
  const Ground ground{&pool(), session_.get(), meta_, root_page};
  const uint64_t wanted = 1500;
  const TestKey key{wanted, ""};
  const Search search{&key};
  auto look = std::make_unique<PageReader>();
  Head head;
  ASSERT_TRUE(
      descend(pool(), *session_, compare_, Seek::before(&search, true), root_page, 0, nullptr, nullptr, *look, head)
          .ok());
  bool done = false;
  ASSERT_TRUE(split_in_two(ground, look->id(), head.version, 0, &compare_, done).ok());
  ASSERT_TRUE(done);
  const CheckReport report = sound(tree(), *session_);
  EXPECT_EQ(report.incomplete, 1u);
  EXPECT_EQ(read({}, true), std::vector<Pair>(model_.begin(), model_.end()));
  EXPECT_EQ(read({}, false), std::vector<Pair>(model_.rbegin(), model_.rend()));
  for (uint64_t i = 0; i < 3000; ++i) {
    const TestKey one{i, ""};
    const Search exactly{&one};
    ASSERT_EQ(read({.low = {&exactly, true, true}, .high = {&exactly, true, true}}, true).size(), 1u);
  }
  for (uint64_t i = 0; i < 3000; i += 50) insert({i, "new"}, tid_of(3000 + i));
  expect_sound();
}

// A comparator that leaves by longjmp now and then, as PostgreSQL's ERROR does.
class LeavingComparator final : public gcl_test::TestComparator {
 public:
  int compare(const void* search, std::span<const std::byte> key) override {
    step();
    return TestComparator::compare(search, key);
  }
  IntegerOrder integer_order(const void*) noexcept override { return {}; }
  uint32_t equal_parts(std::span<const std::byte> left, std::span<const std::byte> right) override {
    step();
    return TestComparator::equal_parts(left, right);
  }
  uint32_t shorten(std::span<const std::byte> left, std::span<const std::byte> right, std::byte* to) override {
    step();
    return TestComparator::shorten(left, right, to);
  }
  jmp_buf way_out;
  int until = 0;

 private:
  void step() {
    if (--until == 0) longjmp(way_out, 1);
  }
};

// False: the comparator left before the entry was in.
bool put_or_leave(Tree& tree, bufmgr::Session& session, LeavingComparator& compare, const Search& search,
                  std::span<const std::byte> image, engine::Tid tid) {
  if (setjmp(compare.way_out) != 0) return false;
  auto done = tree.insert(session, compare, &search, image, tid);
  EXPECT_TRUE(done.ok());
  return true;
}

TEST_F(BlinkTree, AComparatorMayLeaveAtAnyComparison) {
  LeavingComparator leaving;
  std::mt19937 random(8);
  uint64_t left = 0;
  for (uint64_t i = 0; i < 6000; ++i) {
    const TestKey key = random_key(random, 400, 60);
    const auto image = key.image();
    leaving.until = 1 + int(random() % 40);
    if (put_or_leave(tree(), *session_, leaving, Search{&key}, image, tid_of(i)))
      model_.emplace(key, tid_of(i));
    else
      ++left;
    ASSERT_EQ(session_->guards_held(), 0);
  }
  EXPECT_GT(left, 500u);
  expect_sound();
}

TEST_F(BlinkTree, AnInterruptedSessionLosesNothing) {
  gcl_test::Switch interrupts;
  auto other = cluster_.session(0, &interrupts);
  interrupts.set(true);
  for (uint64_t i = 0; i < 2000; ++i) {
    const TestKey key{i * 37 % 2000, "k"};
    auto done = put(tree(), *other, compare_, key, tid_of(i));
    for (int again = 0; !done.ok() && again < 3; ++again) {
      ASSERT_EQ(done.error(), Errc::kInterrupted);
      interrupts.set(false);
      done = put(tree(), *other, compare_, key, tid_of(i));
      interrupts.set(true);
    }
    ASSERT_TRUE(done.ok());
    model_.emplace(key, tid_of(i));
  }
  expect_sound();
}

}  // namespace
}  // namespace engine::blink
