// CREATE and DROP DATABASE on all primaries, and what is refused about databases with the extension
// (ddl.database-by-name, ddl.databases-made-everywhere).
#pragma once

#include "extension/pg/ddl/record/ddl_record.hpp"

namespace gcl {

// Raises for ALTER DATABASE ... RENAME of a database with the extension, and for CREATE DATABASE from one; for DROP
// DATABASE if it is to be `here` only.  PostgreSQL lets none of them pass while a session is connected, so no session
// makes the extension meanwhile.
void check_database_statement(const Node* statement, bool here);
// Our own workers are no reason to call the database in use that the statement is about.  REQUIRES: the user has the
// right to the statement: one that has none ends no worker.
void leave_database(const Node* statement);
void install_database_hooks();  // transaction callback

// CREATE DATABASE has made its files, which PostgreSQL leaves behind if the transaction rolls back.
void database_made(const char* name);
// The coordinator's OID.  REQUIRES: in a replay.
void make_database_again(CreatedbStmt* statement, const DdlRecord* record);

// Locks the database, so that no session can connect to it until the transaction ends, and raises what DROP DATABASE
// would raise; with FORCE, connected sessions are thrown out.  InvalidOid: there is none.
Oid lock_database_to_drop(const DropdbStmt* statement);
bool has_extension(Oid database);
// Its gcl relations' pages go when this transaction commits.  REQUIRES: locked to be dropped.
void drop_pages_of_database(Oid database);

// False: this primary has no database of that name, so there is nothing to do.  Of several, those that it has are left
// in the statement.  REQUIRES: in a replay.
bool find_databases(Node* statement, const DdlRecord* record);
// Raises if the pages of a database would be left behind, because its coordinator does not know of them.
void check_coordinator_knows(const DdlRecord* record);
// Whether the record asks for what cannot be done by a process that is connected to the database.
bool concerns_this_connection(const DdlRecord* record);
// Our own workers are no reason to call a database in use.
void end_idle_workers(const char* database);

}  // namespace gcl
