// Where a sequence's state lies: in the server's own file, or in the pool.
//
// A sequence of all primaries has pg_class.relam = gcl (the server never looks at a sequence's), and a dependency on
// that access method.  Its file holds one page: the row that SELECT reads, and in the special area, where the server
// expects its magic number, the relation record.
//
// pg_sequence.bypass-fails: An access to the row past our functions (logical replication into an identity column, a
//     server without gcl) fails ("bad magic number"), and never hands out a value twice.
// pg_sequence.row-is-copy: The row is a copy for readers, made true when a query begins (refresh_sequence_row());
//     nothing is decided by it.
// pg_sequence.server-format-for-alter: A statement of the server that reads or changes the state (ALTER SEQUENCE,
//     TRUNCATE ... RESTART IDENTITY) runs on a file of the server's own format: new with the transaction, made by
//     move_sequence_to_server() before, and taken back to the pool, on a new page, after it.  So it rolls back as it
//     does on one server.
//
// Backends and apply workers, in a transaction; every function may leave by ERROR.
#pragma once

#include "extension/engine/sequence/sequence.hpp"
#include "extension/pg/boundary/pg.hpp"

namespace gcl {

bool is_gcl_sequence(Oid relation);

// The object that does the work; its parts belong to the process.
engine::Sequence sequence_of(Relation sequence);

// What the pool says.  REQUIRES: is_gcl_sequence().
engine::SequenceState state_of_sequence(Oid sequence);

// REQUIRES, both: no other session can use the sequence (made, or locked at least ShareRowExclusive, by this
// transaction).  `page`: where the coordinator put it; invalid: this is the coordinator, make one.
void move_sequence_to_pool(Oid sequence, coherence::PageId page);
// `coordinator`: its page in the pool is freed when the transaction commits.
void move_sequence_to_server(Oid sequence, engine::SequenceState state, bool coordinator);

// (pg_sequence.row-is-copy)
void refresh_sequence_row(Oid sequence);
void install_sequence_refresh();  // from _PG_init: SELECT of a sequence shows what the pool says

}  // namespace gcl
