// What this primary knows of a database beside its catalogs: how far it has applied the cluster's DDL log, and whether
// the extension is in it (so that DROP DATABASE, which cannot look into it, can ask).  A file beside the data, which
// names the local transaction that brings the position, so that file and catalogs are of one mind after any crash.
//
// 0 in place of a database's OID: of what belongs to no database.
//
//   <data>/gcl_ddl/<database OID>:  position before, position after, xid of the transaction that makes it so; 0: it has
#pragma once

#include "extension/pg/ddl/pg.hpp"

namespace gcl {

struct DdlPosition {
  uint64_t applied;    // number of the last entry of the log; 0: none
  uint64_t extension;  // 1: gcl is in this database
};

// Small files in <data>/gcl_ddl, written whole.  False: there is none.
bool read_ddl_file(const char* name, void* to, size_t bytes);
void replace_ddl_file(const char* name, const void* from, size_t bytes);  // durable when it returns
void forget_ddl_file(const char* name) noexcept;

DdlPosition load_position(Oid database);
// Counts once the running transaction has committed, which it may do when the position is durable.
void write_position(Oid database, DdlPosition position);
bool sync_position(Oid database) noexcept;               // false: see errno
void save_position(Oid database, DdlPosition position);  // both
// If that transaction has committed, says so in the file, when the commit is durable.  Otherwise its xid would be asked
// for when nobody knows it any more.  May come late: whoever writes the next position asks.
void settle_position(Oid database) noexcept;
// Counts at once, and is durable.  REQUIRES: the whole cluster's DDL lock.
void set_position(Oid database, DdlPosition position);
// The database is no more, or not yet.
void forget_position(Oid database) noexcept;

}  // namespace gcl
