// History: what each user was told and did, in its own order, and nothing else: no clock, no oracle.
//
// Values are unique, so the data itself says which write a read saw.  Every write is preceded in its section by a read,
// so the writes of a page form a chain.  The history is sequentially consistent if one order of all operations explains
// it: the graph of program order, reads-from, write chain and from-reads (a read comes before the write that replaces
// what it saw) has no cycle.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace sim {

class History {
 public:
  void read(int fiber, int page, uint64_t value) { record(fiber, {page, value, false}); }
  // REQUIRES: `fiber` has just read the page, and no other fiber can write it meanwhile.
  void write(int fiber, int page, uint64_t value) { record(fiber, {page, value, true}); }
  // The fiber's last operation was a write that has not taken place: its node died first.
  void forget_write(int fiber, int page, uint64_t value);
  // The same of a write that others, which died, too, may have read.
  void forget_value(int page, uint64_t value);
  uint64_t size() const;

  // Empty if one order explains everything, else why there is none.
  std::string explain() const;

 private:
  struct Operation {
    int page;
    uint64_t value;
    bool write;
  };
  void record(int fiber, const Operation& o) {
    if (of_.size() <= size_t(fiber)) of_.resize(size_t(fiber) + 1);
    of_[size_t(fiber)].push_back(o);
  }
  std::vector<std::vector<Operation>> of_;  // of each fiber
};

}  // namespace sim
