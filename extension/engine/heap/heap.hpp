// Heap: tables of row versions on pages found through a relation's map.  Semantics are those of PostgreSQL's heapam
// (the codes below mirror TM_Result); ids, clock and row locks are the cluster's.
//
// H1. A Tid names one version until no snapshot can see it and VACUUM (or an in-page prune) removed it.
// H2. An update that changes no indexed column and fits the page of the old version is `chained`: no index entry.
// H3. Nothing is undone: versions of aborted ids are garbage for prune and VACUUM.
// H4. Every method may return kInterrupted or kFenced before it changed anything; none after.
// H5. No guard is held when a method returns.
#pragma once

#include <cstdint>
#include <span>

#include "extension/engine/heap/row.hpp"
#include "extension/engine/host.hpp"
#include "extension/engine/txn/transaction.hpp"

namespace engine {

// A relation of the pool is named by its header page; the low 32 bits of the page number stand in every page of it.
struct RelationId {
  PageId header;
  constexpr bool valid() const { return header.valid(); }
  constexpr auto operator<=>(const RelationId&) const = default;
};
using coherence::PageId;

enum class RowResult : uint8_t {
  kOk,
  kInvisible,        // the snapshot (or a command later than it) does not see it
  kSelfModified,     // own transaction changed it at `cmax` >= the command
  kUpdated,          // another transaction replaced it and committed; see `next`
  kDeleted,          // another transaction deleted it and committed
  kBeingModified,    // a running transaction holds it and the caller asked not to wait
  kWouldBlock,       // same, NOWAIT / SKIP LOCKED
};

struct RowConflict {
  Tid next;          // kUpdated: the newer version; else the row itself
  TxnId by;          // who changed or holds it
  uint32_t cmax = 0; // kSelfModified
  bool key_changed = false;
};

struct RowOutcome {
  RowResult result;
  RowConflict conflict;
};

enum class WaitPolicy : uint8_t { kBlock, kSkip, kError };

class Heap;  // a process's handle on one relation: caches the block map; cheap to make, not shared

}  // namespace engine
