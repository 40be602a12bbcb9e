// As HoldsTest, and a tree whose keys begin with an integer.
#pragma once

#include "extension/engine/blink/scan.hpp"
#include "extension/engine/blink/tree.hpp"
#include "tests/unit/engine/blink/keys.hpp"
#include "tests/unit/engine/serializable/holds_fixture.hpp"

namespace engine_test {

struct AllEntries final : blink::TidPredicate {
  bool operator()(Tid) override { return true; }
};

class LeavesTest : public HoldsTest {
 protected:
  struct Session : Actor {
    Session(LeavesTest& test, int node)
        : Actor(test, node),
          tree(*blink::Tree::open(test.engine_.cluster().pool(node), worker.session(), test.meta_)) {}
    coherence::Errc put(uint64_t number) {
      auto done =
          gcl_test::put(tree, worker.session(), compare, gcl_test::TestKey{number}, gcl_test::tid_of(number + 1));
      return done ? coherence::Errc::kOk : done.error();
    }
    // How many entries the range has; or an error.
    coherence::Result<int> count(uint64_t low, uint64_t high, bool forward = true) {
      const gcl_test::TestKey from{low}, to{high};
      const gcl_test::Search first{&from}, last{&to};
      auto scan = std::make_unique<blink::Scan>(tree, worker.session(), compare);
      scan->hold_leaves();
      scan->reset({.low = {.search = &first, .complete = true}, .high = {.search = &last, .complete = true}});
      for (int found = 0;; ++found) {
        blink::Entry entry;
        auto more = forward ? scan->next(entry) : scan->prev(entry);
        if (!more) return more.error();
        if (!*more) return found;
      }
    }
    blink::Tree tree;
    gcl_test::TestComparator compare;
  };

  LeavesTest() {
    Worker maker(engine_, 0);
    meta_ = *blink::Tree::create(engine_.cluster().pool(0), maker.session());
  }
  PageId meta_;
};

}  // namespace engine_test
