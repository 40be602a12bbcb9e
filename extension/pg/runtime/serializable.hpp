// SERIALIZABLE transactions, as the server runs them: engine/serializable holds pages, this says when.
//
// runtime.serializable-holds: From its first touch of a gcl table on, a SERIALIZABLE transaction that may write holds
//     what it reads and writes.  One that is READ ONLY from the start holds nothing: its snapshot is a moment between
//     commits, and those are in the order of some serial run (serializable.commit-order).  READ ONLY from the start is
//     READ ONLY since the first snapshot: a function may be so for as long as it runs, and the transaction is not.
// runtime.given-up-reads-on: A transaction that was idle, and lost its holds to others that waited (HoldGiver), goes on
//     as one that is READ ONLY if it has changed nothing; what it then would change is refused, and its commit if it
//     has (serializable.given-up-reader).  The session meets that at its next query, page or commit.  One that has
//     only read does the same by itself where it is to hold more pages than it may (gcl.max_page_holds, or what this
//     primary has room for), and where it meets a conflict with its snapshot.  So a transaction that only reads is
//     never refused.
// runtime.no-wait-for-pages: FOR UPDATE and its like with NOWAIT fail (55P03) where they would wait for a page that is
//     held, also to read the table, and SKIP LOCKED leaves out the rows of it.  A SERIALIZABLE transaction waits to
//     read a page that another one has written, also with SKIP LOCKED: it has to know what is there.
// runtime.serializable-one-mechanism: gcl tables and permanent local tables are refused in one SERIALIZABLE
//     transaction: the server watches the ones, holds guard the others, and each would see half of a cycle.
// runtime.serializable-table-lock: What a transaction has locked on all primaries so that nobody else writes it, it
//     reads without holds; so that nobody else reads it either, it writes without.
#pragma once

#include "coherence/base/result.hpp"
#include "extension/pg/boundary/pg.hpp"

extern "C" {
#include "nodes/plannodes.h"
#include "utils/relcache.h"
}

namespace engine {
class TransactionHolds;
class TxnSystem;
}  // namespace engine

namespace gcl {

// The running transaction, which is SERIALIZABLE, touches a gcl table.  ERROR if it has used local ones.
void use_in_serializable(engine::TransactionHolds& holds, engine::TxnSystem& txns, bool may_hold);
// Whether it has; and whether a touch would be refused.
bool serializable_uses_gcl() noexcept;
bool serializable_is_local() noexcept;
// 40001: it was idle for so long, lost its holds, and changes something.
[[noreturn]] void refuse_given_up(uint32_t idle_ms);
// 53400: it gave up its holds itself, and changes something.
[[noreturn]] void refuse_too_many_holds();
[[noreturn]] void refuse_stale();  // 40001: the same, because of a conflict
// A statement begins, in a SERIALIZABLE transaction.
void note_serializable_statement() noexcept;
// A utility statement begins; queries are noted here.  Each statement of a client pays for it.
inline void note_statement() noexcept {
  if (XactIsoLevel == XACT_SERIALIZABLE) note_serializable_statement();
}
// Before a change.  25006: the transaction counted as READ ONLY when it first touched a gcl table, and holds nothing.
void require_holds();
// At every end of a transaction.
void forget_serializable() noexcept;

// Of the query that was started last: which tables it locks rows of with NOWAIT.
void note_row_marks(const PlannedStmt* plan);
// Before it would wait for a page of the relation, a table or an index: 55P03 if it is one of them.
void require_may_wait(Relation rel);

// Which of a relation's pages (a table's, or an index's) the running transaction has to hold itself.
struct HoldsOf {
  bool reads, writes;
};
HoldsOf holds_of(Relation rel);

// From _PG_init.
void install_serializable();

}  // namespace gcl
