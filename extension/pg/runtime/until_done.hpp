// What the index access method asks of the rest of the module.
#pragma once

extern "C" {
#include "postgres.h"

#include "utils/relcache.h"
}

#include "bufmgr/buffer_pool.hpp"
#include "coherence/base/result.hpp"
#include "extension/pg/runtime/page_usage.hpp"

namespace engine {
class Heap;
class TxnSystem;
class Waiter;
}  // namespace engine

namespace gcl {

// This backend's way to the pool; attached at first use.  ERROR if this server has none open, or it is fenced.
bufmgr::BufferPool& pool();
bufmgr::Session& session();
engine::TxnSystem& txns();
engine::Waiter& waiter();

// Before an index is looked into: this transaction counts for the horizon, so no page it may come to is used for
// something else.
void count_in();

// Before a transaction's first change: a local xid exists, and commit will flush.
void prepare_to_write();

// The backend's handle on a gcl table.
engine::Heap& heap_of(Relation table);

// Raises the user's error for an outcome of the engine.  kInterrupted: raises what is pending, or returns if nothing
// is: call the operation again.
void raise_unless_interrupted(coherence::Errc outcome, Relation rel);

// ERROR if the pool is fenced; costs a load.
void require_unfenced();

// Calls an engine operation until it ends otherwise than by an interrupt that turned out to be harmless.  What it needs
// may all be in this node's cache: the fence is looked at here, so that no statement goes on behind it.
template <class Operation>
auto until_done(Relation rel, Operation operation) {
  for (;;) {
    require_unfenced();
    auto result = operation();
    count_page_accesses(rel);
    if (result.ok()) return result;
    raise_unless_interrupted(result.error(), rel);
  }
}

// The same for operations that only succeed or fail.
template <class Operation>
void until_ok(Relation rel, Operation operation) {
  (void)until_done(rel, operation);
}

}  // namespace gcl
