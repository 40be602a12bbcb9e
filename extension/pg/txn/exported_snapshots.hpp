// Exported snapshots: pg_export_snapshot() and SET TRANSACTION SNAPSHOT, with the cluster's timestamp (snapshots.hpp).
//
// pg_txn.identifier-names-primary: A snapshot is of one primary.  Its identifier is the server's own with the primary's
//     number behind it ("00000003-0000001B-1-2"), so another primary refuses it and never mistakes it for its own.
//     What the server exports by itself (for a replication slot) has the server's identifier.
// pg_txn.time-in-snapshot-file: The timestamp is a line of the snapshot's file, behind those that the server writes and
//     reads: it lives as long as the snapshot.
// pg_txn.exporter-counts: The exporter counts for the horizon until its transaction ends, because the server keeps
//     exported snapshots registered (pg_txn.idle-counts-not).  The importer counts from before the server looks whether
//     the exporter runs (txn.timestamp-handover-counted).
// pg_txn.no-time-no-gcl: A snapshot that was exported where gcl tables could not be read, by a SERIALIZABLE
//     transaction, or for a replication slot, has no timestamp.  It is imported like any other; gcl tables are not read
//     with it (55000).
#pragma once

#include "extension/pg/boundary/pg.hpp"

extern "C" {
#include "nodes/plannodes.h"
}

namespace gcl {

void replace_snapshot_export();  // while shared_preload_libraries are processed

bool imports_snapshot(const Node* statement);

// What `statement` imports.  REQUIRES: imports_snapshot().
struct SnapshotImport {
  PlannedStmt* statement;  // as the server is to run it
  TimestampTz time;        // 0: none
};
// Raises for one of another primary.  From here on this transaction counts for the horizon.
SnapshotImport begin_import(const PlannedStmt* statement);
// The server has run it: the transaction's snapshot is the exporter's.
void end_import(const SnapshotImport& imported);

}  // namespace gcl
