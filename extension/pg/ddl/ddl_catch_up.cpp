#include "extension/pg/ddl/ddl_catch_up.hpp"

#include "extension/pg/ddl/ddl_exchange.hpp"
#include "extension/pg/ddl/ddl_port.hpp"
#include "extension/pg/ddl/ddl_position.hpp"
#include "extension/pg/ddl/ddl_replay.hpp"
#include "extension/pg/ddl/ddl_scope.hpp"

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
  save_position(MyDatabaseId, {entry.number, OidIsValid(gcl_access_method())});
  replay.commit();
  settle_position(MyDatabaseId);
  MemoryContextSwitchTo(context);
}

// Calls `visit` for the entries of this database behind `position`, in order, until it returns false.
template <class Visit>
void visit_entries(const char* mine, uint64_t position, Visit visit) {
  MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "gcl ddl log", ALLOCSET_DEFAULT_SIZES);
  MemoryContext caller = CurrentMemoryContext;
  engine::DdlLogEntry entry;
  for (ddl_log_first(&entry); entry.valid(); ddl_log_next(&entry)) {
    if (entry.number <= position) continue;
    CHECK_FOR_INTERRUPTS();
    MemoryContextReset(context);
    MemoryContextSwitchTo(context);
    StringInfoData body;
    read_entry(entry, &body);
    const DdlLogHead head = read_log_head(&body);
    if (strcmp(head.database, mine) == 0 && !visit(entry, head, &body)) break;
  }
  MemoryContextSwitchTo(caller);
  MemoryContextDelete(context);
}

// Where the history of this database begins.  One without the extension has none: what the log says until the extension
// was last dropped was about another database of this name, or has been undone.
uint64_t beginning(const char* mine, uint64_t position) {
  uint64_t begins = position;
  visit_entries(mine, position, [&begins](const engine::DdlLogEntry& entry, const DdlLogHead& head, StringInfo) {
    if (head.ends && ddl_fate(entry.txn) == DdlFate::kCommitted) begins = entry.number;
    return true;
  });
  return begins;
}

}  // namespace

void apply_log() {
  MemoryContext caller = CurrentMemoryContext;
  StartTransactionCommand();
  uint64_t position = load_position(MyDatabaseId).applied;
  char* mine = MemoryContextStrdup(caller, get_database_name(MyDatabaseId));
  const bool has_history = OidIsValid(gcl_access_method());
  CommitTransactionCommand();
  MemoryContextSwitchTo(caller);
  if (!has_history) position = beginning(mine, position);
  visit_entries(mine, position, [](const engine::DdlLogEntry& entry, const DdlLogHead& head, StringInfo body) {
    // Our own are in our catalogs if they committed at all.
    if (head.author == ddl_node()) return true;
    const DdlFate fate = ddl_fate(entry.txn);
    if (fate == DdlFate::kCommitted) apply_entry(entry, body, head.records);
    return fate != DdlFate::kRunning;
  });
  pfree(mine);
}

List* databases_in_log() {
  List* names = NIL;
  engine::DdlLogEntry entry;
  for (ddl_log_first(&entry); entry.valid(); ddl_log_next(&entry)) {
    StringInfoData body;
    read_entry(entry, &body);
    const DdlLogHead head = read_log_head(&body);
    pfree(body.data);
    bool known = head.author == ddl_node();
    ListCell* cell;
    foreach (cell, names) known |= strcmp(static_cast<char*>(lfirst(cell)), head.database) == 0;
    if (!known) names = lappend(names, head.database);
  }
  return names;
}

}  // namespace gcl
