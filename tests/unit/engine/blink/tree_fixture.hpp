// One node, one tree, and a std::set that says what is in it.
#pragma once

#include <optional>
#include <set>

#include "extension/engine/blink/check.hpp"
#include "extension/engine/blink/scan.hpp"
#include "extension/engine/blink/tree.hpp"
#include "tests/support/cluster_fixture.hpp"
#include "tests/unit/engine/blink/keys.hpp"
#include "tests/unit/engine/blink/sound.hpp"

namespace engine::blink {

using gcl_test::put;
using gcl_test::Search;
using gcl_test::TestKey;
using gcl_test::tid_of;

using Pair = std::pair<TestKey, engine::Tid>;
using Model = std::set<Pair>;

class BlinkTree : public ::testing::Test {
 protected:
  explicit BlinkTree(uint32_t frames = 256) : cluster_({.nodes = 1, .frames = frames}), session_(cluster_.session(0)) {
    before_ = *pool().free_pages(*session_);
    auto meta = Tree::create(pool(), *session_);
    EXPECT_TRUE(meta.ok());
    meta_ = *meta;
    tree_.emplace(*Tree::open(pool(), *session_, meta_));
  }
  bufmgr::BufferPool& pool() { return cluster_.pool(0); }
  Tree& tree() { return *tree_; }
  uint64_t pages_used() { return before_ - *pool().free_pages(*session_); }

  void insert(const TestKey& key, engine::Tid tid) {
    auto done = put(tree(), *session_, compare_, key, tid);
    ASSERT_TRUE(done.ok()) << errc_name(done.error());
    ASSERT_TRUE(done->inserted);
    model_.emplace(key, tid);
  }
  void expect_sound() {
    const CheckReport report = sound(tree(), *session_);
    EXPECT_EQ(report.entries, model_.size());
    EXPECT_EQ(report.incomplete, 0u);
    EXPECT_EQ(session_->guards_held(), 0);
    auto counted = tree().count(*session_);
    ASSERT_TRUE(counted.ok());
    EXPECT_EQ(*counted, model_.size());
    EXPECT_EQ(*tree().pages(*session_), report.pages + 1);  // the meta page
  }
  std::vector<Pair> read(const Range& range, bool forward) {
    auto scan = std::make_unique<Scan>(tree(), *session_, compare_);
    scan->reset(range);
    std::vector<Pair> seen;
    Entry entry;
    for (;;) {
      auto more = forward ? scan->next(entry) : scan->prev(entry);
      EXPECT_TRUE(more.ok());
      if (!more.ok() || !*more) return seen;
      seen.emplace_back(gcl_test::KeyView(entry.key).key(), entry.tid);
    }
  }

  gcl_test::Cluster cluster_;
  std::unique_ptr<bufmgr::Session> session_;
  uint64_t before_ = 0;  // free pages, without the tree
  PageId meta_;
  std::optional<Tree> tree_;
  gcl_test::TestComparator compare_;
  Model model_;
};

}  // namespace engine::blink
