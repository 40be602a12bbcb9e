// Commits of transactions that changed gcl tables and tables of this server: they appear in PostgreSQL's snapshots when
// the server takes them from its list of running ones, and in the cluster's when their COMMIT callback has published
// them.  The node's shared memory holds what a snapshot of both has to know of the moments between
// (pg_txn.snapshots-of-one-time).
//
//   committer  begin -> [commit record; out of the list] -> count its end -> publish -> end
//   reader     PostgreSQL's snapshot -> wait for those that it sees and that have not ended -> cluster timestamp -> ask
//              whether any has counted since
//
// runtime.entered-before-visible: A transaction that has changed both is entered before the server takes it from its
//     list, and stays until it is published or rolled back.  So a transaction that a snapshot sees is published, or
//     found here.
// runtime.ends-counted-before-publishing: Before it publishes, it notes how many transactions the server has seen end.
//     So a transaction that a snapshot does not see, and a later timestamp does, has noted a larger number than the
//     snapshot has in it.
// runtime.one-kind-is-free: A transaction that has changed gcl tables alone, or none, is not entered, and touches
//     nothing that is shared: local changes show in the server's WAL, in records that are not ours, or are noted
//     (unlogged tables).  What only looks like one, a page pruned on the way, costs an entry and nothing else.
// runtime.end-wakes-waiters: A session that waits is woken by the end, can be cancelled, and holds nothing that the
//     committer needs.  A committer that dies takes the server's shared memory with it; one that finds the pool fenced
//     ends like any other.
#pragma once

#include "extension/pg/boundary/pg.hpp"

namespace gcl {

size_t mixed_commits_bytes(uint32_t slots);
void mixed_commits_init(void* memory, uint32_t slots);  // before the first process is forked

// --- the transaction itself ------------------------------------------------------------------------------------------
void count_own_record() noexcept;      // it writes one of our records to the WAL
void note_unlogged_change() noexcept;  // it may change an unlogged table of this server
// The server's number of the transaction, with its epoch, if it has changed this server, too; else 0.
uint64_t mixed_commit_xid();  // REQUIRES: as mixed_commit_begins()
void mixed_commit_begins();   // REQUIRES: it has changed gcl tables, and has an xid
void mixed_commit_publishes() noexcept;
void mixed_commit_ends() noexcept;     // both: nothing to do if it was not entered
void forget_local_changes() noexcept;  // at every end of a transaction, behind its record

// --- snapshots -------------------------------------------------------------------------------------------------------
bool mixed_commits_seen() noexcept;  // since the server started
// Waits until all that `snapshot` sees are published.
void wait_until_published(Snapshot snapshot);

enum class Ended : uint8_t { kAny, kMixed };
// Whether a transaction of this server, of whatever kind or of both, ended after `snapshot` was taken.
bool ended_since(Snapshot snapshot, Ended what) noexcept;

}  // namespace gcl
