// The author's side: one DDL transaction, from its first captured statement until every other primary has ended it.
#pragma once

#include "extension/engine/ddl/ddl_words.hpp"
#include "extension/pg/ddl/ddl_record.hpp"

namespace gcl {

void install_exchange_hooks();  // savepoint callback

// Takes the cluster's DDL lock, unless this transaction has it.  May wait: cancelable, obeys lock_timeout, and is an
// edge of the local deadlock check (every process of this server that wants it waits for one lock tag, which the apply
// worker holds while another primary is the author).
// `nowait`: raises 55P03 instead of waiting.  `of_cluster`: for a statement that belongs to no database (P18).
void open_exchange(bool nowait = false, bool of_cluster = false);

// In a reply's text, before its hint.
inline constexpr char kReplyHint = '\f';

// Others lock these relations; returns when all have them.
void send_locks(List* targets, bool nowait = false);
// Others run the statement; ERROR names the primary that could not.  Keeps a copy for the log.
void send_statement(DdlRecord* record);

// The open savepoints of this transaction, outermost first.
List* savepoint_path();

// The lock tag; shared with the launcher and the apply worker.
void lock_ddl_tag();
void unlock_ddl_tag();
engine::DdlHolder ddl_me();
// A transaction's DDL is in the log under a head.  A database is known by its name; the transaction that takes the
// extension out of it, or drops it, ends its history: another database may then be made under the name.
struct DdlLogHead {
  char* database;  // "": of no database, all is about roles and databases (P18)
  char* dropped;   // the database that is dropped; "": none
  int author;
  bool ends;    // the extension was not in the database any more
  bool shared;  // roles, which all databases have, are among it
  int records;  // follow
};
DdlLogHead read_log_head(StringInfo from);

}  // namespace gcl
