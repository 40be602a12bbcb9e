// SERIALIZABLE transactions, as the server runs them: engine/serializable holds pages, this says when.
//
// runtime.serializable-holds: From its first touch of a gcl table on, a SERIALIZABLE transaction that may write holds
//     what it reads and writes.  One that is READ ONLY from the start holds nothing: its snapshot is a moment between
//     commits, and those are in the order of some serial run (serializable.commit-order).
// runtime.given-up-reads-on: A transaction that was idle, and lost its holds to others who waited (HoldGiver), goes on
//     as one that is READ ONLY if it has changed nothing; what it then would change is refused, and its commit if it
//     has (serializable.given-up-reader).  The session meets that at its next query, page or commit.
// runtime.serializable-one-mechanism: gcl tables and permanent local tables are refused in one SERIALIZABLE
// transaction:
//     the server watches the ones, holds guard the others, and each would see half of a cycle.
// runtime.serializable-table-lock: What a transaction has locked on all primaries so that nobody else writes it, it
//     reads without holds; so that nobody else reads it either, it writes without.
#pragma once

#include "coherence/base/result.hpp"
#include "extension/pg/boundary/pg.hpp"

extern "C" {
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
// At every end of a transaction.
void forget_serializable() noexcept;

// Which of a relation's pages (a table's, or an index's) the running transaction has to hold itself.
struct HoldsOf {
  bool reads, writes;
};
HoldsOf holds_of(Relation rel);

// From _PG_init.
void install_serializable();

}  // namespace gcl
