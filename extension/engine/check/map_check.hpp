// MapCheck: the pages that lead from a relation to its blocks, while sessions add to them.
//
// Maps only grow (heap.map-only-grows), so a copy of a map page stays true as far as it goes; each page is copied
// whole, at one moment, and judged alone.
#pragma once

#include <vector>

#include "extension/engine/check/finding.hpp"
#include "extension/engine/check/txn_limits.hpp"
#include "extension/engine/heap/heap.hpp"

namespace engine {

class MapCheck {
 public:
  struct Extent {
    PageId page;  // of its map
    uint32_t number;
    PageId locks;  // lock directory; invalid: none
  };

  MapCheck(TxnSystem& txns, RelationId relation) : txns_(txns), relation_(relation) {}

  // check.map-shape, check.pages-named-once, check.pages-are-allocated: of the header page and all maps.  What it finds
  // is what blocks() and page_of() know of.
  Status check(Findings& findings);
  // The blocks in use, ascending.
  const std::vector<uint32_t>& blocks() const { return blocks_; }
  // Invalid: the table has no such block, as far as is known here.
  PageId page_of(uint32_t block) const;

  // (check.lock-pages) the lock pages of extent `i`, which have them or not.
  uint32_t extents() const { return uint32_t(extents_.size()); }
  Status check_locks(uint32_t i, TxnLimits& limits, Findings& findings);

 private:
  struct Pages {  // side by side, from a block on
    uint32_t block;
    PageId first;
    uint32_t count;
  };
  uint32_t number() const { return uint32_t(relation_.header.number()); }
  Status check_map(uint32_t m, uint64_t entry, Findings& findings);
  Status check_extent(uint32_t m, uint32_t e, const ExtentMapPage& map, Findings& findings);
  Status check_singles(uint32_t m, const ExtentMapPage& map, Findings& findings);
  Status add_pages(const Pages& pages, const FindingPlace& at, Findings& findings);
  void check_named_once(Findings& findings) const;
  Status check_lock_page(PageId page, uint32_t block, TxnLimits& limits, PageId* next, Findings& findings);

  TxnSystem& txns_;
  RelationId relation_;
  std::vector<Pages> pages_;  // ascending by block
  std::vector<uint32_t> blocks_;
  std::vector<Extent> extents_;
};

// check.pages-are-allocated.  Errors are those of reading the allocator's map.
Status check_allocated(TxnSystem& txns, PageId page, const FindingPlace& at, Findings& findings);

// Copies a page whose number was read from another page; `there`: the pool has such a page.
Status copy_named(TxnSystem& txns, PageId page, const FindingPlace& at, std::byte* to, bool* there, Findings& findings);

}  // namespace engine
