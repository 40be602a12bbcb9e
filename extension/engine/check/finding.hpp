// Findings: what a check has found wrong, in words for an administrator.  Plain data: a check that runs user code
// (comparators) may be left by longjmp.
//
//   findings.add({.page = id, .block = 7, .item = 3}, "line pointer leads to offset %u, where no row can be", offset);
#pragma once

#include <cstdint>

#include "coherence/base/ids.hpp"

namespace engine {

// Where something is wrong.
struct FindingPlace {
  static constexpr uint32_t kNoBlock = ~uint32_t{0};
  coherence::PageId page;
  uint32_t block = kNoBlock;  // of a table
  uint16_t item = 0;          // line pointer of a row, or number of an index entry, from 1 on; 0: the page as a whole
};

struct Finding {
  FindingPlace at;
  char text[200];
};

class Findings {
 public:
  // A page that is damaged throughout needs no more lines to say so.
  static constexpr int kMax = 32;

  [[gnu::format(printf, 3, 4)]] void add(const FindingPlace& at, const char* format, ...);
  void clear() { count_ = dropped_ = 0; }
  int count() const { return count_; }
  int dropped() const { return dropped_; }  // found beyond kMax
  bool any() const { return count_ != 0; }
  const Finding& operator[](int i) const { return finding_[i]; }

 private:
  int count_ = 0;
  int dropped_ = 0;
  Finding finding_[kMax];
};

}  // namespace engine
