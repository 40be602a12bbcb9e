// PartKeeper: has the file of one memory node that is not number 0, for the process that serves it to a pool over a
// network.
//
// The steps of a copy are memory node 0's to order (PoolKeeper); no node is in the pool meanwhile.
#pragma once

#include <cstdint>

#include "coherence/base/problem.hpp"
#include "coherence/base/result.hpp"

namespace coherence {

struct PoolHeader;

class PartKeeper {
 public:
  virtual ~PartKeeper() = default;
  virtual const PoolHeader& part_header() const = 0;
  // This memory node's part of that save lies beside the copy there is (pool.saved-beside).  kNotFound: it has no place
  // for copies; kCorrupt: pages are owned still; kNoSpace, kSystem.
  virtual Status write_copy(uint64_t saves, Problem*) = 0;
  virtual Status place_copy(Problem*) = 0;  // it takes that one's place
};

}  // namespace coherence
