// The WAL that a start out of all primaries' WALs reads (recovery/design.md, "When memory has lost the pool"): this
// primary's, from its first join after the pool's last save on, or from where the last
// checkpoint needs it.  The server itself keeps it, for a physical replication
// slot named `gcl` that nobody connects to.  max_slot_wal_keep_size bounds it, as for any slot.
//
// runtime.wal-kept-since-save: A node is not ready, so writes no record of ours, before its slot is on disk and its
//     join is in the journal, with the position from which on the slot keeps WAL.  The slot moves forward only at the
//     first join since the pool was last saved: the save has all that was written before, and the journal what of it
//     was in doubt (journal.doubts-before-join).  So all records of ours that a save lacks are behind the slot's
//     position.
#pragma once

#include <cstdint>

namespace gcl {

// Keeps this node's WAL, and notes its join.  By the member worker, before the node is ready; nothing happens to a pool
// without a durable copy.  May be done again, in whole, after any part of it.  ERROR: 53400, no slot is free; 55006,
// the slot is in use; 42710, a logical one has its name; of the journal 53100, XX001, 58030.
void keep_wal();

// WAL before that position is not needed for a restart any more.  ERROR: 55006, the slot is in use.
void release_wal_before(uint64_t position);
// How much is kept, as far as it is written; 0: none.
uint64_t kept_wal_bytes();

}  // namespace gcl
