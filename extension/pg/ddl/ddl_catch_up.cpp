#include "extension/pg/ddl/ddl_catch_up.hpp"

#include "extension/pg/ddl/ddl_exchange.hpp"
#include "extension/pg/ddl/ddl_port.hpp"
#include "extension/pg/ddl/ddl_position.hpp"
#include "extension/pg/ddl/ddl_replay.hpp"

extern "C" {
#include "commands/dbcommands.h"
}

namespace gcl {
namespace {

void read_entry(const engine::DdlLogEntry& entry, StringInfo to) {
  initStringInfo(to);
  enlargeStringInfo(to, int(entry.bytes));
  ddl_log_read(entry, to->data);
  to->len = int(entry.bytes);
}

void apply_entry(const engine::DdlLogEntry& entry, StringInfo body, int records) {
  static DdlReplay replay;
  MemoryContext context = CurrentMemoryContext;
  replay.begin();
  for (int i = 0; i < records; ++i) {
    MemoryContextSwitchTo(context);
    const DdlRecord* record = read_record(body);
    // Savepoints in the log were all released; they are opened again so that replay takes the author's ways.
    replay.go_to(record->path, NIL);
    MemoryContextSwitchTo(context);
    replay.run(record);
  }
  replay.go_to(NIL, NIL);
  save_position(MyDatabaseId, entry.number);
  replay.commit();
  MemoryContextSwitchTo(context);
}

}  // namespace

void apply_log() {
  MemoryContext context = AllocSetContextCreate(TopMemoryContext, "gcl ddl catch up", ALLOCSET_DEFAULT_SIZES);
  MemoryContext caller = MemoryContextSwitchTo(context);
  StartTransactionCommand();
  const uint64_t position = load_position(MyDatabaseId);
  char* mine = MemoryContextStrdup(TopMemoryContext, get_database_name(MyDatabaseId));
  CommitTransactionCommand();
  engine::DdlLogEntry entry;
  for (ddl_log_first(&entry); entry.valid(); ddl_log_next(&entry)) {
    if (entry.number <= position) continue;
    CHECK_FOR_INTERRUPTS();
    MemoryContextReset(context);
    MemoryContextSwitchTo(context);
    StringInfoData body;
    read_entry(entry, &body);
    char* database;
    int author, records;
    read_log_head(&body, &database, &author, &records);
    // Our own are in our catalogs if they committed at all.
    if (author == ddl_node() || strcmp(database, mine) != 0) continue;
    const DdlFate fate = ddl_fate(entry.txn);
    if (fate == DdlFate::kRunning) break;
    if (fate == DdlFate::kCommitted) apply_entry(entry, &body, records);
  }
  pfree(mine);
  MemoryContextSwitchTo(caller);
  MemoryContextDelete(context);
}

List* databases_in_log() {
  List* names = NIL;
  engine::DdlLogEntry entry;
  for (ddl_log_first(&entry); entry.valid(); ddl_log_next(&entry)) {
    StringInfoData body;
    read_entry(entry, &body);
    char* database;
    int author, records;
    read_log_head(&body, &database, &author, &records);
    pfree(body.data);
    bool known = author == ddl_node();
    ListCell* cell;
    foreach (cell, names) known |= strcmp(static_cast<char*>(lfirst(cell)), database) == 0;
    if (!known) names = lappend(names, database);
  }
  return names;
}

}  // namespace gcl
