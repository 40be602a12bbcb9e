// What ddl/ needs of the rest of the module, in one place: the pool's channel and log, and transactions of the cluster.
// All of it raises a PostgreSQL ERROR when it cannot answer (55000 not attached, 57P02 fenced).
#pragma once

#include <atomic>
#include <cstdint>

#include "coherence/member/sweeping.hpp"
#include "extension/engine/ddl/ddl_channel.hpp"
#include "extension/engine/ddl/ddl_log.hpp"
#include "extension/engine/ddl/ddl_repair.hpp"
#include "extension/pg/runtime/node.hpp"

namespace gcl {

using engine::DdlOutcome;

bool ddl_pool_attached() noexcept;  // whether this server takes part in a pool
bool ddl_pool_fenced() noexcept;
bool ddl_postmaster_gone() noexcept;  // extension.orphans-end-server
void ddl_require_unfenced();          // after a word of the channel that decides (ddl_log.lost-says-no)
const char* ddl_fence_reason();
int ddl_pool_encoding();
bool ddl_local_administration() noexcept;  // gcl.local_administration
// In a database of another locale than the pool's a process may do what concerns no gcl table.
void ddl_attach_for_any_locale();
void ddl_require_locale();
uint8_t ddl_node();
inline coherence::NodeId ddl_node_id() { return coherence::NodeId{ddl_node()}; }
uint64_t ddl_incarnation();         // of this node
engine::DdlChannel& ddl_channel();  // of this process
engine::DdlLocks& ddl_locks();
engine::DdlSlot ddl_slot(int number);
uint32_t ddl_session();             // slot number of this process
bool ddl_sessions_left() noexcept;  // of this server: others than the launcher's and the apply workers'

// The event that this node's launcher sleeps on (ddl_wakeup.hpp).
std::atomic<uint32_t>& ddl_wakeup_event() noexcept;
void ddl_wake_node(uint8_t node) noexcept;
void ddl_wake_others(coherence::NodeSet nodes = {~uint64_t{0}}) noexcept;

// A slot's event here: moved with every message of its coordinator; the apply worker that serves the slot sleeps on it.
std::atomic<uint32_t>& ddl_slot_wakeup_event(int slot) noexcept;
// Whether this process looks at the slot at each of its wakeups.  May be called when the session has been detached.
void ddl_attend(int slot, bool here) noexcept;
// Wakes the apply workers that serve the slot; of `asked` that have no worker for it, the launcher.
void ddl_wake_slot(int slot, coherence::NodeSet asked) noexcept;

void ddl_statement_begins();  // its time, in REPEATABLE READ

// The id of this transaction in the cluster's status log; assigned now if it has none.
uint64_t ddl_raw_txn_id();
DdlOutcome ddl_outcome(uint64_t transaction);
// The same, but raises nothing and waits for no page; kUnknown: not known now.
DdlOutcome ddl_outcome_now(uint64_t transaction) noexcept;

coherence::NodeInfo ddl_primary(coherence::NodeId node) noexcept;
// How many transactions of a primary that is away only its own server can decide (txn.in-doubt-until-back).
size_t ddl_in_doubt(coherence::NodeId node);
bool ddl_is_in_doubt(engine::TxnId id);
// Of all primaries that are not there; what can be decided of dead ones is, before they are counted.  *node: of one.
size_t ddl_undecided(coherence::NodeId* node);
// What it is then; kUndecided: it is not in doubt, or its primary is there.
DdlOutcome ddl_decide_in_doubt(engine::TxnId id, bool commit);
// For the pool's journal: that this is the number of the node's life, in a moment.  ERROR: it cannot be written.
void ddl_note_life(coherence::NodeId, uint64_t life);
// Dead primaries whose words may be taken over (repair.*).
coherence::NodeSet ddl_dead_primaries() noexcept;
// `change` runs while none of them joins again (coherence::Sweeping); not at all if there is none.
template <class Change>
void ddl_while_dead(Change change) {
  const coherence::Sweeping section(node_pool()->coherence_node());
  if (const coherence::NodeSet dead = ddl_dead_primaries(); !dead.empty()) change(dead);
}

// Waits that no lock manager sees, told for the sake of deadlocks across primaries (runtime/own_wait.hpp).  A wait that
// is to give way ends in ddl_check_wait(), by 40P01.
void ddl_waits_for_replies();
void ddl_waits_for_lock(engine::DdlHolder holder);
void ddl_still_waits() noexcept;  // after ddl_waits_no_more(): for what it did before
void ddl_waits_no_more() noexcept;
void ddl_check_wait();
void ddl_in_transaction(uint64_t transaction) noexcept;  // as its coordinator; 0: in none any more
void ddl_works_for(uint64_t transaction, uint8_t coordinator, uint32_t pid) noexcept;  // as apply worker

uint64_t ddl_log_append(const char* record, uint32_t bytes, uint64_t transaction);
void ddl_log_first(engine::DdlLogEntry* entry);
void ddl_log_next(engine::DdlLogEntry* entry);
bool ddl_log_read(const engine::DdlLogEntry& entry, char* to);  // false: it has been removed
engine::DdlLogExtent ddl_log_extent();
uint64_t ddl_log_pages_max();            // how long it may get
void ddl_log_remove_applied();           // what all known primaries have applied
void ddl_flush_log();                    // this server's, to its end
int ddl_announced_primaries() noexcept;  // gcl.primaries

}  // namespace gcl
