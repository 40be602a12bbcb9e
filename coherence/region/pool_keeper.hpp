// PoolKeeper: who has the files of a pool, for who lets nodes in and out of it.
//
// REQUIRES, of all: no other process changes members meanwhile.
#pragma once

#include "coherence/base/problem.hpp"
#include "coherence/base/result.hpp"

namespace coherence {

struct NodeTable;
struct PoolHeader;

class PoolKeeper {
 public:
  virtual ~PoolKeeper() = default;
  virtual NodeTable& table() const = 0;
  virtual PoolHeader& first_header() const = 0;  // memory node 0's
  // Before the first node is in the pool: its durable copy is no longer the truth (pool.copy-marked-in-use).
  virtual Status mark_in_use(Problem*) = 0;
  // Behind the last one: the pool is clean, and saved if it has a durable copy.
  virtual Status close(Problem*) = 0;
};

}  // namespace coherence
