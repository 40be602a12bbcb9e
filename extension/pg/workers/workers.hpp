// The node's background workers, by the names in their process titles.  All but the flusher attach a session of their
// own; all stop in order at a shutdown:
//
//   member      joins the node to the transaction system, publishes its horizon and a sample for views, holds tags of
//               remote transactions; stops when no backend is left
//   provider    keeps free frames at hand; stops when no backend is left
//   statistics  tells other primaries what changed in tables (runtime/table_changes.hpp); stops when no backend is left
//   reclaim     frees what transactions made and did not keep, and what they dropped; stops when no backend is left,
//               also in the middle: the pool remembers the rest
//   flusher     flushes the WAL up to the position that is wanted; stops when none of the above is left
//   fabric      the message worker: answers other nodes; stops last, gives every page back and leaves the pool (the
//   last
//               node saves it)
//
// An error ends a worker, and the postmaster starts it again; a crash restarts the server, which fences the pool.
#pragma once

namespace gcl {

void register_workers();  // from _PG_init

}  // namespace gcl
