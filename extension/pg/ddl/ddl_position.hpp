// How far this primary has applied the cluster's DDL log, per database: a file beside the data, which names the local
// transaction that brings the position, so that file and catalogs are of one mind after any crash.
//
//   <data>/gcl_ddl/<database OID>:  position before, position after, xid of the transaction that makes it so
#pragma once

#include "extension/pg/ddl/pg.hpp"

namespace gcl {

uint64_t load_position(Oid database);
// Durable when it returns; counts once the running transaction has committed.
void save_position(Oid database, uint64_t position);

}  // namespace gcl
