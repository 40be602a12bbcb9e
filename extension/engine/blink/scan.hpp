// Scan: entries of a key range in order, forward and backward, from private copies of leaves.
//
// blink.scan-plain-data: Plain data: copy it to mark a position, assign the copy back to restore it; jumping over it is
//     safe. 11 KB.
// blink.scan-sees-once: Entries that are in the tree from reset() to the end of the scan are seen exactly once in each
//     pass, in order; entries that come or go meanwhile are seen or not (and one that came may be seen out of order,
//     where a page has left the tree).
// blink.scan-copies-range: Only the entries in the range are copied from a page; a look-up of one key copies one entry.
// blink.scan-after-error: After an error: the same call again, or reset().
#pragma once

#include "extension/engine/blink/node.hpp"
#include "extension/engine/blink/tree.hpp"

namespace engine::blink {

// One end of a range.  Without `search` it is open.
struct Bound {
  const void* search = nullptr;
  bool inclusive = true;  // the equal ones are in the range
  bool complete = false;  // all key attributes are given (saves a page now and then)
};

// Entries e with low <= e <= high (or <).  first >= k: {.low = {k}}; first > k: {.low = {k, false}}; last <= k:
// {.high = {k}} and prev(); last < k: {.high = {k, false}} and prev(); all: {}.
struct Range {
  Bound low;
  Bound high;
};

struct Seek;

class Scan {
 public:
  Scan(const Tree& tree, Session& session, Comparator& compare) : tree_(tree), session_(&session), compare_(&compare) {}
  // Begins anew.  The search keys must live as long as the scan moves.  Reads nothing yet.  `from`, if valid: a page
  // that once covered the low end, where a forward scan need not descend from the root (blink.entries-move-right).
  void reset(const Range& range, PageId from = {});
  // The next entry in key order (the first of the range at first); false at the end, where the scan stays: prev() then
  // gives the last entry.  `out` points into the scan and holds until it moves to another leaf.
  Result<bool> next(Entry& out);
  // The entry before (the last of the range at first).
  Result<bool> prev(Entry& out);
  // Each leaf is held before it is read, if the transaction holds what it reads (serializable.no-phantoms).
  void hold_leaves() { holds_ = true; }
  const Tree& tree() const { return tree_; }
  // The leaf that the last entry handed out was in, when it was read.
  PageId leaf() const { return leaf_.id; }
  uint64_t leaf_version() const { return leaf_.version; }

 private:
  enum class Way : uint8_t { kSeekFirst, kSeekLow, kSeekLast, kSeekHigh, kRight, kLeft };
  struct Leaf {
    PageId id, left, right;
    uint64_t version;
    bool low_end, high_end;  // the range ends in this page
    uint16_t count;
    uint16_t at[kPerPageMax];  // where the keys are in `bytes`
    uint16_t size[kPerPageMax];
    alignas(8) std::byte bytes[kPageSize];
  };
  struct Ends {
    uint32_t from, to;  // entries of the page that are in the range
    bool low, high;     // the range ends in this page
  };
  Status load(Way way);
  Status step_right();
  Status step_left();
  Status left_of(PageId& base, PageId& left);
  void begin_before(PageId first);
  Status seek(Way way);
  Status hold(PageId leaf, bool* newly);
  bufmgr::Parts parts_of_range() const;
  Errc gather(Way way, PageId id, const Source& page, const Head& head);
  Errc find_ends(Way way, const Source& page, const Head& head, Ends& ends);
  Errc find_low(const Seek& low, bool likely_whole, const Source& page, const Head& head, uint32_t to, uint32_t& from);
  Errc find_high(const Seek& high, const Source& page, const Head& head, uint32_t from, uint32_t& to);
  Errc copy_out(const Source& page, const Head& head, const Ends& ends);
  void hand_out(Entry& out) const;

  Tree tree_;
  Session* session_;
  Comparator* compare_;
  Range range_;
  PageId from_;
  bool started_ = false;
  bool holds_ = false;
  int32_t index_ = 0;  // -1 .. leaf_.count
  Leaf leaf_;
};

}  // namespace engine::blink
