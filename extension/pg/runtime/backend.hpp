// The backend's session: its way to the pool, attached at first use and kept until the process exits.
//
// runtime.attach-or-error: Attaching fails with 55000 if this server has no pool, has not caught up with the others'
//     DDL, or the database has another locale than the pool; with 57P02 if the pool is fenced.
// runtime.detached-before-exit: Detaching happens in before_shmem_exit, after the transaction was aborted: FATAL runs
//     no destructor.
#pragma once

#include <memory>

#include "bufmgr/buffer_pool.hpp"
#include "extension/engine/heap/heap.hpp"
#include "extension/engine/txn/transaction.hpp"
#include "extension/pg/runtime/node.hpp"
#include "extension/pg/runtime/raise.hpp"
#include "extension/pg/runtime/until_done.hpp"

namespace gcl {

bufmgr::BufferPool& pool();
bufmgr::Session& session();
engine::TxnSystem& txns();
engine::Waiter& waiter();
engine::Heap& heap_of(Relation table);

// For what concerns no gcl table: also in a database of another locale than the pool's.
void attach_for_any_locale();

// Whether gcl tables can be used just now, here and in this transaction.  A server that cannot serve them still serves
// its own: a session that has asked for none is not told what is missing.
bool serves() noexcept;

// The session, if this process has one; null otherwise.  Never attaches.
engine::TxnSystem* attached_txns() noexcept;

// Before the first change of a transaction, and of each savepoint in it: they have local xids, and commit will flush.
void prepare_to_write();
void savepoint_ended(int level) noexcept;  // released or rolled back
bool transaction_writes() noexcept;
// Before a TID is held or a row is changed: this transaction counts for the horizon, so no line it knows of is given to
// another row.  Mostly it does already, by its query's snapshot; COPY and rows routed to partitions come without one.
void count_in();
bool counts_in() noexcept;  // whether it counts
// At every end of a transaction.
void forget_transaction() noexcept;
// Whether the running transaction's holds were given up, because it was idle.  If so: it reads on, or is refused
// (40001) if it has changed rows.
bool holds_given_up() noexcept;
void meet_given_up();
// It is to hold more than it may (kNoHolds), or meets what was changed since its snapshot (kConflict): it gives up all
// that it has, and reads on.  False: it cannot, as it has changed rows.
bool give_up_holds(coherence::Errc why);
// Before it commits: they are not given up any more; refused if they were, and it has changed anything.
void keep_holds(bool changes);
// When it has ended for all nodes: what it has held is let go (serializable.strict).
void end_holds() noexcept;
// After Errc::kHeld: as engine::TransactionHolds::wait().
coherence::Status wait_for_holder();

// From _PG_init: `callback` is called once in each process that attaches; sessions without gcl do not pay for it.
void call_at_first_attach(void (*callback)());

// For a worker that has something else to do then: a wait for a page ends (kInterrupted), in this process from now on,
// when the condition holds.
void end_waits_when(bool (*condition)() noexcept) noexcept;
// For workers: attaches under the workers' count instead of the backends'.  `is_last`: also where no session begins any
// more (runtime.workers-outlive-backends).
void attach_worker(bool is_last);
// Ends the session.  Idempotent.
void detach_session() noexcept;

// The WAL as the pool's log.
bufmgr::LogSink& wal_sink();
void register_wal_records();     // from _PG_init
void flush_log();                // all that this server has written so far
XLogRecPtr flush_with_record();  // the same, with a record of ours, whose end is returned

}  // namespace gcl
