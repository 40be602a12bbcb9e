// Snapshots: a statement's cluster timestamp travels in SnapshotData.whenTaken (unused by the server while
// old_snapshot_threshold is -1; kept when snapshots are copied or sent to parallel workers).
//
// pg_txn.executor-takes-timestamp: ExecutorStart gives the query's snapshot a timestamp if a gcl table is in its range
//     table: in REPEATABLE READ the transaction's, otherwise a fresh one.  Never a catalog's snapshot, never in a
//     parallel worker.
// pg_txn.insert-reads-nothing: The table of an INSERT does not count for that if nothing reads it: without ON CONFLICT,
//     functions of users, triggers, checks, policies and partitions.  Its unique keys are checked against the newest
//     state.
// pg_txn.late-timestamp: An MVCC snapshot that reaches a gcl table without a timestamp (COPY TO, ALTER TABLE's scans)
//     gets one there.
// pg_txn.writers-without-parallel: A query of a transaction that has changed gcl tables runs without parallel workers:
//     they would not know its ids.
// pg_txn.repeatable-read-once: A REPEATABLE READ transaction takes its timestamp with its first query or utility
//     statement that has a snapshot, whatever that reads.  So its gcl rows and its other rows are of one time, and a
//     snapshot without a timestamp is known to be a later one (GetLatestSnapshot() of ADD FOREIGN KEY), which gets a
//     time of its own.
// pg_txn.workers-see-query-time: A query that runs workers gets a timestamp whatever its plan reads.  So does one that
//     calls functions that are not the server's own, in a session that has used gcl tables before, or in a server where
//     others change them together with its own: such functions may read gcl tables.  In a worker, and if they are
//     stable, they see the query's time.  A worker takes a timestamp of its own only for a statement of its own in READ
//     COMMITTED; where the leader has none (a parallel index build) it raises an error.
// pg_txn.idle-counts-not: Between statements of READ COMMITTED, when no cursor is open, a transaction has no snapshot
//     and stops counting for the horizon, as PostgreSQL's xmin does.  What it holds across statements are TIDs of rows
//     it has itself made, ended or locked: those stay while it runs.
// pg_txn.snapshots-of-one-time: PostgreSQL's snapshot and the timestamp beside it are of one time.  The server takes
//     the snapshot first, so what may come between is looked for when the timestamp is taken: a transaction that the
//     snapshot sees has published before that (runtime.entered-before-visible), and if a transaction of this server has
//     ended since, which the timestamp may show and the snapshot does not, the snapshot is taken again, in place
//     (snapshot_renewal.hpp), and with it the timestamp.  So both show what was committed in this server when the last
//     transaction before the timestamp had ended.  A query of READ COMMITTED that names gcl tables alone, and calls no
//     functions but the server's, asks for transactions that changed both kinds only
//     (runtime.ends-counted-before-publishing): others cannot show.  What a remote transaction changes is in gcl tables
//     alone.
// pg_txn.used-snapshot-stays: A snapshot that has been used (by a query without gcl tables, which the stable function
//     it calls brings to some) is not taken again.  It gets a timestamp if none that changed both has ended since; else
//     the statement fails with 40001, and from then on the session gives all queries timestamps.
// pg_txn.import-brings-time: A transaction that imports a snapshot has its exporter's timestamp
//     (exported_snapshots.hpp), or none at all.
#pragma once

#include "extension/engine/txn/snapshot.hpp"
#include "extension/pg/boundary/pg.hpp"

namespace gcl {

void install_snapshot_hooks();  // from _PG_init
void set_transaction_time();    // when a statement begins (pg_txn.repeatable-read-once)

// 0: none (pg_txn.import-brings-time).
TimestampTz time_to_export(Snapshot snapshot);
void set_imported_time(TimestampTz time);

// What the engine is to see for `snapshot`.
engine::Snapshot engine_snapshot(Snapshot snapshot);

}  // namespace gcl
