// Oracle: what is true of the pages at this moment of virtual time, whatever the product believes.  There is such a
// moment because one thread runs everything.  What a user is told is compared at once (checkers 1 and 2), and recorded
// for the histories (checker 3).
//
// A section begins after the latch was got and ends before it is given up: sections that overlap prove overlapping
// latches.  A crashed node's sections never end, unless its peers repair: then they end when the death is certain.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "history.hpp"

namespace sim {

class Oracle {
 public:
  explicit Oracle(int pages) : pages_(size_t(pages)) {}

  void enter(int page, bool exclusive);
  void leave(int page, bool exclusive);
  void downgrade(int page);  // an exclusive section becomes a shared one
  // The bytes say `value` now, as read in a section or found valid by an optimistic reader.
  void read(int page, uint64_t value);
  // A copy says `value`: the page did at some moment since it said `before`.
  void read_copy(int page, uint64_t before, uint64_t value);
  // A new value for the page, about to be written in an exclusive section.
  uint64_t write(int page);
  // The redo of the page's last write is complete.
  void logged(int page);
  // The node died: its sections are over, and a write whose redo is not complete has not taken place.
  void died(int node);
  // The page's last write has not taken place, nor has what its dead node has read of it: it says `before`.
  void take_back(int page, uint64_t before);
  // Several words of one page must say the same.
  void torn(int page, uint64_t one, uint64_t other);

  uint64_t value(int page) const { return pages_[size_t(page)].value; }
  const History& history() const { return history_; }
  uint64_t sections() const { return sections_; }

 private:
  struct Page {
    int writer = -1;           // node
    std::vector<int> readers;  // nodes, one for each section
    uint64_t value = 0;
    int fiber = -1;                                         // of a write whose redo is not complete
    uint64_t before = 0;                                    // that write
    std::vector<std::pair<uint64_t, uint64_t>> taken_back;  // writes that have not taken place, and what was before
  };
  std::vector<Page> pages_;
  History history_;
  uint64_t sections_ = 0, values_ = 0;
};

}  // namespace sim
