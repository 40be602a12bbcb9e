// What follows when the holds of a transaction were marked as given up (Holder::take), whichever process did that.
#pragma once

#include "coherence/message/slots.hpp"
#include "extension/engine/serializable/hold_table.hpp"
#include "extension/engine/txn/transaction.hpp"

namespace engine {

// What coherence tells other nodes of a transaction that holds a page (coherence::Holder::by).
inline constexpr uint64_t kByMask = (uint64_t{1} << coherence::kHolderBits) - 1;
constexpr uint64_t by_word(TxnId id) { return id.sequence() & kByMask; }

// Lets go of all pages that the table has of a transaction of this node.
void leave_all_entered(TxnSystem& txns, HoldTable& table, TxnId by);

// Lets go of the pages of a transaction of this node, and wakes the nodes that wait for them.  May be called again,
// and by several at once.  REQUIRES: they are marked.
Status let_go_given_up(TxnSystem& txns, HoldTable& table, SessionId session, TxnId by);

}  // namespace engine
