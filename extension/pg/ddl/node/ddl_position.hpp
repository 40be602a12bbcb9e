// What this primary knows of a database beside its catalogs: how far it has applied the cluster's DDL log, and whether
// the extension is in it (so that DROP DATABASE, which cannot look into it, can ask).
//
// Positions are on pages of PostgreSQL's own buffer pool, in a file of pg_global that no catalog knows, changed under
// the server's WAL: they need no fsync of their own, and a base backup has them.  An entry names the local transaction
// that makes it count, so that positions and catalogs agree after any crash: in the WAL, the position comes before that
// commit.  (Replication origins would be that, too; but a transaction has one at most, which is the subscription's
// where TRUNCATE is replicated, and max_replication_slots would bound the number of databases.)
//
// 0 in place of a database's OID: of what belongs to no database.  REQUIRES, of all: the DDL lock of that database, or
// that no other process writes its position.
#pragma once

#include "extension/pg/ddl/base/pg.hpp"

namespace gcl {

struct DdlPosition {
  uint64_t applied;    // number of the last entry of the log; 0: none
  uint64_t extension;  // 1: gcl is in this database
};

DdlPosition load_position(Oid database);
// Counts once the running transaction has committed.
void write_position(Oid database, DdlPosition position);
// Counts at once, and is durable.
void set_position(Oid database, DdlPosition position);
// The database is no more, or not yet: counts once the running transaction has committed.
void forget_position(Oid database);
// All of them, durably; what they were about is another pool's.
void forget_all_positions();
// Entries whose transactions have ended say what counts, or their xids would be asked for when the server has forgotten
// them.  False: some have not.  Outside of transactions.
bool resolve_positions();

}  // namespace gcl
