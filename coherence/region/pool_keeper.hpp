// PoolKeeper: has memory node 0's file, for the process that lets nodes in and out of the pool.
//
// REQUIRES, of all: no other process changes members meanwhile.
//
// Behind the last node the pool is closed: its parts are written beside the durable copy, that of memory node 0 counts
// when all are, and all take their places (pool.saved-beside).  A pool without a durable copy is clean after the first
// step, and the others do nothing.
#pragma once

#include <cstdint>

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
  // kUnreached: a copy counts, and is not in its place at other memory nodes (pool.placed-before-used).
  virtual Status mark_in_use(Problem*) = 0;
  // The pool is clean, as of a save more.  Memory node 0's part of the copy lies beside, and does not count yet.  After
  // an error nothing does.
  virtual bool has_copy() const = 0;
  virtual Status write_copy(Problem*) = 0;
  virtual Status count_copy(Problem*) = 0;  // REQUIRES: those of the other memory nodes lie beside
  virtual bool is_unplaced() const = 0;     // a copy counts, and is not in its place
  // The copy that counts is of the clean pool as it is: no node has used it since, and no save has failed behind one
  // that did.
  virtual bool is_copy_current() const = 0;
  virtual Status place_copy(Problem*) = 0;  // REQUIRES: those of the other memory nodes are in their places
  virtual void drop_copy() noexcept = 0;    // what lies beside, in place of count_copy()
  // The pool has one more memory node, whose file is so long (pool.counted-last).  Waits for nobody: kBusy, while
  // another process writes the journal; kUnreached, as mark_in_use().
  virtual Status count_memory_node(uint32_t number, uint64_t bytes, uint64_t pages_bytes, Problem*) = 0;
};

}  // namespace coherence
