// The checker of trees: silent about what the engine makes, and a message for each way in which a tree can be wrong.
#include "extension/engine/check/tree_check.hpp"
#include "extension/engine/blink/meta.hpp"
#include "extension/engine/blink/page_deletion.hpp"
#include "extension/engine/blink/search.hpp"
#include "extension/engine/blink/split.hpp"
#include "extension/engine/check/find_entry.hpp"
#include "tests/unit/engine/blink/keys.hpp"
#include "tests/unit/engine/check/check_keys.hpp"
#include "tests/unit/engine/check/damage.hpp"
#include "tests/unit/engine/engine_fixture.hpp"

namespace engine_test {

using namespace engine::blink;  // NOLINT: a test's own namespace
using gcl_test::put;
using gcl_test::Search;
using gcl_test::TestKey;
using gcl_test::tid_of;

class TreeCheckTest : public ::testing::Test {
 protected:
  TreeCheckTest() : engine_({.cluster = {.nodes = 1}}), a_(engine_, 0) {
    meta_ = *Tree::create(a_->pool(), a_.session());
    tree_.emplace(*Tree::open(a_->pool(), a_.session(), meta_));
  }
  // Even numbers; pads make a few of them fill a leaf.
  void fill(uint64_t count) {
    for (uint64_t i = 0; i < count; ++i) insert(2 * i);
  }
  void insert(uint64_t number) {
    const TestKey key{number, std::string(300, 'x')};
    ASSERT_TRUE(put(*tree_, a_.session(), compare_, key, tid_of(number)).ok());
  }
  std::string check() {
    auto check = std::make_unique<TreeCheck>(a_.txns(), meta_, keys_, nullptr);
    auto findings = std::make_unique<Findings>();
    auto more = check->begin(*findings);
    EXPECT_TRUE(more.ok());
    while (more.ok() && *more) {
      more = check->next(*findings);
      EXPECT_TRUE(more.ok()) << errc_name(more.error());
    }
    counts_ = check->counts();
    return told(*findings);
  }
  void copy(PageId page, engine::NodeCopy& to) {
    to.id = page;
    ASSERT_TRUE(a_->pool().copy_page(a_.session(), page, to.bytes).ok());
    ASSERT_TRUE(read_head(Source::plain(to.bytes), to.head));
  }
  // The n-th page of a level, from the left.
  PageId nth(uint16_t level, int n) {
    PageId page;
    EXPECT_TRUE(first_of_level(a_->pool(), a_.session(), tree_->root(), level, page).ok());
    for (engine::NodeCopy node; n > 0; --n) {
      copy(page, node);
      page = node.head.special.right;
    }
    return page;
  }
  PageId leaf(int n) { return nth(0, n); }
  Special special(PageId page) {
    engine::NodeCopy node;
    copy(page, node);
    return node.head.special;
  }
  template <class T>
  void write(PageId page, size_t offset, const T& value) {
    damage(a_->pool(), a_.session(), page, offset, value);
  }
  void write_special(PageId page, const Special& special) { write(page, kSpecialAt, special); }
  // What is written in the n-th entry's bytes.
  template <class T>
  void write_entry(PageId page, uint32_t n, size_t offset, const T& value) {
    engine::NodeCopy node;
    copy(page, node);
    Link link;
    ASSERT_TRUE(read_link(Source::plain(node.bytes), node.head, n, link));
    write(page, link.offset + offset, value);
  }
  uint32_t count(PageId page) {
    engine::NodeCopy node;
    copy(page, node);
    return node.head.count;
  }
  Ground ground() { return {&a_->pool(), &a_.session(), meta_, tree_->root()}; }
  // Makes the leaf empty.
  void empty(PageId page) {
    engine::NodeCopy node;
    copy(page, node);
    struct Those final : TidPredicate {
      std::vector<Tid> tids;
      bool operator()(Tid tid) override { return std::ranges::find(tids, tid) != tids.end(); }
    } dead;
    for (uint32_t i = 0; i < node.head.count; ++i) dead.tids.push_back(load_tid(node.key(i).data()));
    ASSERT_TRUE(tree_->remove_if(a_.session(), dead).ok());
  }

  Engine engine_;
  Worker a_;
  PageId meta_;
  std::optional<Tree> tree_;
  gcl_test::TestComparator compare_{false};  // keys of full length: few fit a page, and the tree is high
  TestKeys keys_;
  TreeCheck::Counts counts_;
  static constexpr uint64_t kThreeLevels = 3000;
};

// --- what is sound ---------------------------------------------------------------------------------------------------

TEST_F(TreeCheckTest, SaysNothingOfAnEmptyTree) {
  EXPECT_EQ(check(), "");
  EXPECT_EQ(counts_.pages, 1u);
}

TEST_F(TreeCheckTest, SaysNothingOfATreeOfThreeLevels) {
  fill(kThreeLevels);
  EXPECT_EQ(check(), "");
  EXPECT_EQ(counts_.entries, kThreeLevels);
  EXPECT_EQ(counts_.not_compared, 0u);
  EXPECT_GT(special(tree_->root()).level, 1);
}

TEST_F(TreeCheckTest, SaysNothingOfAnIncompleteSplit) {
  fill(200);
  const PageId page = leaf(2);
  engine::NodeCopy node;
  copy(page, node);
  bool done = false;
  ASSERT_TRUE(split_in_two(ground(), page, node.head.version, node.head.count / 2, &compare_, done).ok());
  ASSERT_TRUE(done);
  EXPECT_EQ(check(), "");
  EXPECT_EQ(counts_.incomplete, 1u);
}

TEST_F(TreeCheckTest, SaysNothingOfPagesThatLeave) {
  fill(kThreeLevels);
  empty(leaf(3));
  EXPECT_EQ(check(), "") << "deleted";
  const PageId page = leaf(5);
  engine::NodeCopy node;
  copy(page, node);
  write(page, offsetof(PageHeader, lower), uint16_t{kPageBody});
  Special bare = node.head.special;
  bare.garbage = uint16_t(kSpecialAt - node.head.upper - engine::blink::align8(bare.high_bytes));
  write_special(page, bare);
  Path hint;
  bool done = false;
  ASSERT_TRUE(detach_leaf(ground(), page, hint, done).ok());
  ASSERT_TRUE(done);
  EXPECT_EQ(check(), "") << "half-dead";
  EXPECT_EQ(counts_.half_dead, 1u);
}

TEST_F(TreeCheckTest, FindEntryFindsEachOneAndNoOther) {
  fill(kThreeLevels);
  for (uint64_t number = 0; number < 2 * kThreeLevels; number += 7) {
    const TestKey key{number, std::string(300, 'x')};
    const Search search{&key};
    auto there = engine::find_entry(a_->pool(), a_.session(), *tree_, compare_, &search, tid_of(number));
    ASSERT_TRUE(there.ok());
    EXPECT_EQ(*there, number % 2 == 0) << number;
    auto other = engine::find_entry(a_->pool(), a_.session(), *tree_, compare_, &search, tid_of(number + 1));
    ASSERT_TRUE(other.ok());
    EXPECT_FALSE(*other) << number;
  }
}

// --- one page --------------------------------------------------------------------------------------------------------

TEST_F(TreeCheckTest, FindsAMetaPageThatIsNone) {
  write(meta_, kPageBody + offsetof(Meta, format), uint32_t{2});
  expect_told(check(), "and format 2");
  write(meta_, offsetof(PageHeader, type), PageType::kHeap);
  expect_told(check(), "page is of type 5 instead of 6");
}

TEST_F(TreeCheckTest, FindsARootThatThePoolDoesNotHave) {
  write(meta_, kPageBody + offsetof(Meta, root), uint64_t{1} << 39);
  expect_told(check(), "which the pool does not have");
}

TEST_F(TreeCheckTest, FindsARootWithASibling) {
  fill(200);
  const PageId root = tree_->root();
  engine::NodeCopy node;
  copy(root, node);
  // The last entry's key becomes a high key.
  const Link last = load_link(node.bytes, node.head.count - 1u);
  Special wrong = node.head.special;
  wrong.right = leaf(1);
  wrong.high_at = uint16_t(last.offset + kChildBytes);
  wrong.high_bytes = uint16_t(last.bytes - kChildBytes);
  wrong.garbage = uint16_t(wrong.garbage + kChildBytes);
  write(root, offsetof(PageHeader, lower), uint16_t(node.head.lower - sizeof(Link)));
  write_special(root, wrong);
  expect_told(check(), "root has a sibling");
}

TEST_F(TreeCheckTest, FindsALevelWithoutAFirstPage) {
  fill(kThreeLevels);
  Special wrong = special(nth(1, 0));
  wrong.left = leaf(0);
  write_special(nth(1, 0), wrong);
  expect_told(check(), "level 1 of the index has no first page");
}

TEST_F(TreeCheckTest, GoesOnBehindDamage) {
  fill(kThreeLevels);
  for (int n : {0, 4, 40}) write_entry(leaf(n), 2, 8, uint64_t{0});
  write_entry(nth(1, 1), 2, kChildBytes + 8, uint64_t{0});
  const std::string said = check();
  size_t times = 0;
  for (size_t at = 0; (at = said.find("item order invariant violated: not", at)) != std::string::npos; ++at) ++times;
  EXPECT_EQ(times, 4u) << said;
}

TEST_F(TreeCheckTest, FindsEntriesOutOfOrder) {
  fill(kThreeLevels);
  write_entry(leaf(4), 1, 8, uint64_t{0});
  expect_told(check(), "item order invariant violated");
}

TEST_F(TreeCheckTest, FindsAnEntryBehindTheHighKey) {
  fill(kThreeLevels);
  const PageId page = leaf(4);
  write_entry(page, count(page) - 1, 8, ~uint64_t{0} >> 1);
  expect_told(check(), "high key invariant violated");
}

TEST_F(TreeCheckTest, FindsAnEntryWithoutARow) {
  fill(10);
  write_entry(tree_->root(), 3, 4, uint16_t{0});
  expect_told(check(), "index entry of a leaf points to no row");
}

TEST_F(TreeCheckTest, FindsAMalformedKey) {
  fill(10);
  engine::NodeCopy node;
  copy(tree_->root(), node);
  Link link = load_link(node.bytes, 3);
  --link.bytes;
  write(tree_->root(), kPageBody + 3 * sizeof link, link);
  expect_told(check(), "index entry is malformed: too odd");
}

TEST_F(TreeCheckTest, FindsLinksThatLeadNowhere) {
  fill(10);
  engine::NodeCopy node;
  copy(tree_->root(), node);
  Link link = load_link(node.bytes, 3);
  write(tree_->root(), kPageBody + 4 * sizeof link, link);
  expect_told(check(), "index entry overlaps another one");
  write(tree_->root(), kPageBody + 4 * sizeof link, Link{8176, 600});
  expect_told(check(), "index entry lies outside its page");
}

TEST_F(TreeCheckTest, FindsBytesThatAreNotAccountedFor) {
  fill(10);
  Special wrong = special(tree_->root());
  wrong.garbage = 16;
  write_special(tree_->root(), wrong);
  expect_told(check(), "bytes of entries are accounted for");
}

TEST_F(TreeCheckTest, FindsAHighKeyThatLiesInAnEntry) {
  fill(200);
  engine::NodeCopy node;
  copy(leaf(2), node);
  Special wrong = node.head.special;
  wrong.high_at = load_link(node.bytes, 0).offset;
  write_special(node.id, wrong);
  expect_told(check(), "high key lies outside its page, or in an entry");
}

TEST_F(TreeCheckTest, FindsUnknownFlagsAndAnotherRelation) {
  fill(200);
  Special wrong = special(leaf(2));
  wrong.flags = 0x40;
  write_special(leaf(2), wrong);
  expect_told(check(), "page has flags 0x40 on level 0");
  write(leaf(1), offsetof(PageHeader, relation), uint32_t{77});
  expect_told(check(), "page says that it belongs to relation 77");
}

TEST_F(TreeCheckTest, FindsAPageOfNoIndex) {
  fill(200);
  write(leaf(2), offsetof(PageHeader, upper), uint16_t{44});
  expect_told(check(), "page is no page of an index");
}

TEST_F(TreeCheckTest, FindsAPageThatIsInUseButFree) {
  fill(200);
  const PageId page = leaf(2);
  std::array<std::byte, kPageSize> bytes;
  ASSERT_TRUE(a_->pool().copy_page(a_.session(), page, bytes.data()).ok());
  ASSERT_TRUE(a_->pool().free(a_.session(), page, 1).ok());
  damage(a_->pool(), a_.session(), page, kPageBody - 16, bytes.data() + kPageBody - 16, kPageSize - kPageBody + 16);
  expect_told(check(), "page is in use, but free in the pool's map of pages");
}

// --- siblings --------------------------------------------------------------------------------------------------------

TEST_F(TreeCheckTest, FindsALeftLinkThatIsWrong) {
  fill(200);
  Special wrong = special(leaf(3));
  wrong.left = leaf(1);
  write_special(leaf(3), wrong);
  expect_told(check(), "left link does not name the page whose right link leads here");
}

TEST_F(TreeCheckTest, FindsARightLinkOverAPage) {
  fill(200);
  Special wrong = special(leaf(2));
  wrong.right = leaf(4);
  write_special(leaf(2), wrong);
  const std::string said = check();
  expect_told(said, "left link does not name the page whose right link leads here");
  expect_told(said, "page has no downlink, between two children");
}

TEST_F(TreeCheckTest, FindsPagesInACircle) {
  fill(200);
  Special wrong = special(leaf(6));
  wrong.right = leaf(1);
  write_special(leaf(6), wrong);
  const std::string said = check();
  expect_told(said, "pages of level 0 are linked in a circle");
  expect_told(said, "high key is not behind that of the left sibling");
}

TEST_F(TreeCheckTest, FindsARightLinkToAnotherLevel) {
  fill(kThreeLevels);
  Special wrong = special(leaf(2));
  wrong.right = nth(1, 1);
  write_special(leaf(2), wrong);
  expect_told(check(), "page is of level 1, but its left sibling of level 0");
}

TEST_F(TreeCheckTest, FindsARightLinkToAPageThatHasLeft) {
  fill(kThreeLevels);
  const PageId gone = leaf(3);
  empty(gone);
  ASSERT_NE(leaf(3), gone);
  Special wrong = special(leaf(2));
  wrong.right = gone;
  write_special(leaf(2), wrong);
  expect_told(check(), "right link leads to a page that has left the tree");
}

TEST_F(TreeCheckTest, FindsAnEntryBelowItsPage) {
  fill(kThreeLevels);
  write_entry(leaf(4), 0, 8, uint64_t{1});
  const std::string said = check();
  expect_told(said, "cross page item order invariant violated");
  expect_told(said, "down-link lower bound invariant violated");
}

TEST_F(TreeCheckTest, FindsALastPageThatHasLeft) {
  fill(200);
  PageId last = leaf(0);
  while (special(last).right.valid()) last = special(last).right;
  Special wrong = special(last);
  wrong.flags = kHalfDead;
  write_special(last, wrong);
  expect_told(check(), "last page of its level has left the tree");
}

TEST_F(TreeCheckTest, FindsAHalfDeadPageWithEntries) {
  fill(200);
  Special wrong = special(leaf(3));
  wrong.flags = kHalfDead;
  write_special(leaf(3), wrong);
  const std::string said = check();
  expect_told(said, "page has left the tree, but has");
  expect_told(said, "downlink leads to a page that has left the tree");
}

// --- parents and children --------------------------------------------------------------------------------------------

TEST_F(TreeCheckTest, FindsADownlinkToAnotherChild) {
  fill(200);
  write_entry(tree_->root(), 3, 0, leaf(5));
  const std::string said = check();
  expect_told(said, "high key is not the key of the next downlink");
  expect_told(said, "page has no downlink, between two children");
}

TEST_F(TreeCheckTest, FindsADownlinkToItsOwnLevel) {
  fill(kThreeLevels);
  write_entry(nth(1, 0), 3, 0, nth(1, 1));
  expect_told(check(), "downlink leads from level 1 to level 1");
}

TEST_F(TreeCheckTest, FindsADownlinkToNoPage) {
  fill(200);
  write_entry(tree_->root(), 3, 0, PageId{});
  expect_told(check(), "downlink names no page");
}

TEST_F(TreeCheckTest, FindsADownlinkThatThePoolDoesNotHave) {
  fill(200);
  write_entry(tree_->root(), 3, 0, uint64_t{1} << 39);
  expect_told(check(), "which the pool does not have");
}

TEST_F(TreeCheckTest, FindsAFirstDownlinkThatLeadsNowhere) {
  fill(kThreeLevels);
  write_entry(tree_->root(), 0, 0, leaf(0));
  expect_told(check(), "downlink leads from level 2 to level 0");
}

TEST_F(TreeCheckTest, FindsAnotherKeyOfADownlink) {
  fill(200);
  engine::NodeCopy root;
  copy(tree_->root(), root);
  const gcl_test::KeyView key(root.key(3));
  write_entry(tree_->root(), 3, kChildBytes + 8, key.number + 1);
  expect_told(check(), "high key is not the key of the next downlink");
}

TEST_F(TreeCheckTest, FindsALevelThatEndsBeforeItsDownlinks) {
  fill(200);
  Special wrong = special(leaf(3));
  wrong.right = {};
  wrong.high_bytes = wrong.high_at = 0;
  write_special(leaf(3), wrong);
  expect_told(check(), "page has no right sibling, but its parent has a downlink behind it");
}

TEST_F(TreeCheckTest, FindsALevelThatGoesOnBehindItsDownlinks) {
  fill(200);
  const uint32_t n = count(tree_->root());
  write(tree_->root(), offsetof(PageHeader, lower), uint16_t(kPageBody + (n - 1) * sizeof(Link)));
  expect_told(check(), "last page by its downlink has a right sibling");
}

TEST_F(TreeCheckTest, FindsAnIncompleteSplitWithoutASibling) {
  fill(5);
  Special wrong = special(tree_->root());
  wrong.flags = kIncompleteSplit;
  write_special(tree_->root(), wrong);
  expect_told(check(), "page's split is incomplete, but it has no right sibling");
}

// --- deleted pages ---------------------------------------------------------------------------------------------------

class BinCheck : public TreeCheckTest {
 protected:
  BinCheck() {
    fill(kThreeLevels);
    empty(leaf(5));
    empty(leaf(3));
    Meta meta;
    EXPECT_TRUE(read_meta(a_->pool(), a_.session(), meta_, meta).ok());
    at_ = meta.bin;
    EXPECT_TRUE(read_bin(a_->pool(), a_.session(), at_, bin_).ok());
    EXPECT_EQ(bin_.pages, 2u);
    EXPECT_EQ(check(), "");
  }
  PageId at_;
  Bin bin_;
};

TEST_F(BinCheck, FindsAnotherCount) {
  write(at_, kPageBody + offsetof(Bin, pages), uint64_t{3});
  expect_told(check(), "lists have 2 deleted pages, but say 3");
}

TEST_F(BinCheck, FindsAListOfWhatIsNotDeleted) {
  write(at_, kPageBody + offsetof(Bin, fresh), leaf(1));
  expect_told(check(), "page is in the list of deleted pages, but not deleted");
}

TEST_F(BinCheck, FindsACircle) {
  Special wrong = special(bin_.fresh);
  wrong.gate = bin_.fresh.raw;
  write_special(bin_.fresh, wrong);
  expect_told(check(), "deleted pages are linked in a circle");
}

TEST_F(BinCheck, FindsAListThatLeadsOutOfThePool) {
  write(at_, kPageBody + offsetof(Bin, waiting), uint64_t{1} << 39);
  expect_told(check(), "list of deleted pages leads to a page that the pool does not have");
}

TEST_F(BinCheck, FindsABinThatIsNone) {
  write(at_, kPageBody + offsetof(Bin, magic), uint64_t{1});
  expect_told(check(), "list of deleted pages has magic number 0x1");
}

}  // namespace engine_test
