// The coordinator's side: one transaction that does DDL or LOCK TABLE, from its first captured statement until every
// other primary has ended it.
#pragma once

#include "extension/pg/ddl/coordinate/ddl_lock.hpp"
#include "extension/pg/ddl/record/ddl_record.hpp"

namespace gcl {

void install_ddl_transaction_hooks();
void ddl_pre_commit();  // may raise  // savepoint callback

// Takes what the transaction lacks: the DDL lock that `right` asks for, and a slot.  May wait: cancelable, obeys
// lock_timeout.  `nowait`: raises 53400 rather than wait for a slot.  `of_cluster`: for a statement that belongs to no
// database (ddl.roles-of-no-database).
void open_ddl_transaction(DdlRight right, bool nowait = false, bool of_cluster = false);

// Strong locks on all primaries (ddl.locked-everywhere-first).  The caller takes the coordinator's own locks: before
// ask_others() where this primary is the first, else between ask_first() and ask_others(), or behind both.
bool first_primary_is_this();
void ask_first(List* targets, bool nowait);
void ask_others(List* targets, bool nowait);
// All of it, for DDL.
void lock_everywhere(List* targets);
// Raises if transactions that are in doubt may have what these targets exclude (ddl.locks-of-the-dead).  REQUIRES: the
// targets are locked everywhere.
void require_decided(const List* targets);

// Others run the statement; ERROR names the primary that could not.  Keeps a copy for the log.  `last`: the transaction
// is this statement alone, and its commit comes next: the statement goes with what that has to say
// (ddl.lone-statement-with-commit).
void send_statement(DdlRecord* record, bool last);

// The open savepoints of this transaction, outermost first.
List* savepoint_path();

// A transaction's DDL is in the log under a head.  A database is known by its name; the transaction that takes the
// extension out of it, or drops it, ends its history: another database may then be made under the name.
struct DdlLogHead {
  char* database;  // "": of no database, all is about roles and databases (ddl.roles-of-no-database)
  char* dropped;   // the database that is dropped; "": none
  int coordinator;
  bool ends;    // the extension was not in the database any more
  bool shared;  // roles, which all databases have, are among it
  int records;  // follow
};
DdlLogHead read_log_head(StringInfo from);

}  // namespace gcl
