// Pages whose life hangs on the running transaction: made by it (freed if it, or its savepoint, rolls back) or dropped
// by it (freed when it commits).  On a primary that replays another's statement nothing is noted: the author frees.
#pragma once

#include "coherence/base/ids.hpp"
#include "coherence/base/result.hpp"
#include "extension/pg/relation_record.hpp"

namespace engine {
class TxnSystem;
}

namespace gcl {

void pages_made(RelationFile kind, coherence::PageId header);
void pages_dropped(RelationFile kind, coherence::PageId header);
// They were not dropped after all: another relation of this transaction has them now.
void pages_kept(RelationFile kind, coherence::PageId header);

// Gives pages back; after kInterrupted, call again.  REQUIRES: nobody can name them any more.
coherence::Status free_relation_pages(engine::TxnSystem& txns, RelationFile kind, coherence::PageId header) noexcept;

// For the transaction's callbacks.
bool pending_any() noexcept;
void pending_commit() noexcept;
void pending_abort() noexcept;
void pending_sub_commit(int level) noexcept;
void pending_sub_abort(int level) noexcept;

}  // namespace gcl
