// TreeCheck: a B-link tree, page by page, while sessions change it.
//
//   auto* check = new TreeCheck(txns, meta, keys, rows);
//   check->begin(findings);
//   while (*check->next(findings)) use(check->page());
//
// Each page is copied at one moment.  What two pages say of each other counts only if both were so at one moment: the
// first is copied, then the second, and then the first still has the version that it had (check.pairs-of-one-moment).
//
// REQUIRES: the session counts for the horizon from before begin() to the end: so a page whose number was read from the
// tree is a page of the tree (blink.free-when-unreachable), and stays its own.
// KeySeam runs with nothing held, and nothing that owns anything is on the stack meanwhile: the checker may be left by
// longjmp, and is then of no more use.  kInterrupted: call again.
#pragma once

#include "extension/engine/check/heap_check.hpp"
#include "extension/engine/check/node_check.hpp"

namespace engine {

class TreeCheck {
 public:
  struct Counts {
    uint64_t pages = 0;
    uint64_t entries = 0;    // of leaves
    uint64_t half_dead = 0;  // no error: VACUUM was stopped, or works
    uint64_t incomplete = 0;
    uint64_t not_compared = 0;  // pairs of pages that did not stand still to be compared
  };

  // `rows`: of the table; null: entries are not looked up.
  TreeCheck(TxnSystem& txns, PageId meta, KeySeam& keys, HeapCheck* rows)
      : txns_(txns), meta_(meta), keys_(keys), rows_(rows) {}

  // check.meta-names-root, check.bin-holds-deleted.  False: there is no tree to go through.
  Result<bool> begin(Findings& findings);
  // One page: itself, and what it says of its left sibling and its children.  False: there are no more.
  Result<bool> next(Findings& findings);
  // What next() has looked at last.
  const NodeCopy& page() const { return current_; }
  const Counts& counts() const { return counts_; }

 private:
  static constexpr int kTries = 16;  // then the two pages are latched, shared, in their order

  uint32_t relation() const { return uint32_t(meta_.number()); }
  bufmgr::BufferPool& pool() { return txns_.pool(); }
  bufmgr::Session& session() { return txns_.session(); }
  // tree_check.cpp
  Status check_bin(PageId bin, Findings& findings);
  Status check_bin_list(PageId bin, uint64_t version, PageId first, uint64_t* pages, bool* stable, Findings& findings);
  Result<bool> find_first(Findings& findings);
  Result<bool> move_right(Findings& findings);
  Status check_current(Findings& findings);
  Status check_rows(Findings& findings);
  // tree_pairs.cpp
  Status copy(PageId id, const FindingPlace& from, NodeCopy& to, bool* there, Findings& findings);
  Result<uint64_t> version_of(PageId page);
  Result<bool> copy_right(Findings& findings, bool* there);
  Result<bool> latch_right(Findings& findings, bool* there);
  void check_siblings(Findings& findings);
  // tree_children.cpp
  Status check_children(Findings& findings);
  void look_at_child();
  Result<bool> latch_child(uint32_t* i, Findings& findings);
  void check_child(uint32_t i, Findings& findings);
  Status check_next_child(uint32_t i, Findings& findings);

  TxnSystem& txns_;
  PageId meta_;
  KeySeam& keys_;
  HeapCheck* rows_;
  PageId root_;
  int level_ = -1;
  bool on_level_ = false;  // current_ is a page of level_
  bool moved_ = false;     // current_ is still to be looked at
  uint64_t steps_ = 0;     // on this level
  PageId mark_;            // a page of this level that must not come again
  uint64_t mark_at_ = 1;
  Counts counts_;
  NodeCopy current_;
  NodeCopy right_;  // its right sibling
  NodeCopy child_;
};

}  // namespace engine
