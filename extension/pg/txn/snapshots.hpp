// Snapshots: a statement's cluster timestamp travels in SnapshotData.whenTaken (unused by the server while
// old_snapshot_threshold is -1; kept when snapshots are copied or sent to parallel workers).
//
// S1. ExecutorStart stamps the query's snapshot if a gcl table is in its range table: in REPEATABLE READ with the
//     transaction's timestamp, otherwise with a fresh one.  Never a catalog's snapshot, never in a parallel worker.
// S2. An MVCC snapshot that reaches a gcl table unstamped (COPY TO, ALTER TABLE's scans) is stamped there.
// S3. A query of a transaction that has changed gcl tables runs without parallel workers: they would not know its ids.
// S4. A REPEATABLE READ transaction takes its timestamp with its first query, whatever that reads, so that its gcl rows
//     and its others are of one time.
#pragma once

#include "extension/engine/txn/snapshot.hpp"
#include "extension/pg/boundary/pg.hpp"

namespace gcl {

void install_snapshot_hooks();  // from _PG_init

// What the engine is to see for `snapshot`.
engine::Snapshot engine_snapshot(Snapshot snapshot);

}  // namespace gcl
