// Pages whose life hangs on the running transaction: made by it (given back if it, or its savepoint, rolls back) or
// dropped by it (given back when it commits).  The pool remembers them (engine/reclaim), the status log decides, and
// the reclaim worker frees: nothing is freed here, and nothing is lost with this process.  On a primary that replays
// another's statement nothing is noted: the coordinator does it.
#pragma once

#include "coherence/base/ids.hpp"
#include "extension/pg/runtime/relation_record.hpp"

namespace gcl {

// A fresh page, the first of a relation that this transaction makes.
coherence::PageId new_pages(RelationFile kind);
// May be called for thousands of relations in one transaction.
void pages_dropped(RelationFile kind, coherence::PageId header);
// They were not dropped after all: another relation of this transaction has them now.
void pages_kept(RelationFile kind, coherence::PageId header);

// For the transaction's callbacks.
bool any_deferred_free() noexcept;
void record_deferred_frees();          // records what was dropped; may raise
void deferred_frees_ended() noexcept;  // the transaction, either way
void deferred_frees_sub_commit(int level) noexcept;
void deferred_frees_sub_abort(int level) noexcept;

}  // namespace gcl
