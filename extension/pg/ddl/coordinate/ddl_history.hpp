// The history of a database in the DDL log (ddl.database-by-name).
#pragma once

#include "extension/pg/ddl/base/ddl_port.hpp"
#include "extension/pg/ddl/coordinate/ddl_transaction.hpp"

namespace gcl {

// Its whole text, in the current memory context.  False: it has just been removed.
bool read_entry(const engine::DdlLogEntry& entry, StringInfo to);

// Calls visit(entry, head, body behind the head) for the entries behind `position`, in order, until it returns false.
template <class Visit>
void visit_entries(uint64_t position, Visit visit) {
  MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "gcl ddl log", ALLOCSET_DEFAULT_SIZES);
  MemoryContext caller = CurrentMemoryContext;
  engine::DdlLogEntry entry;
  for (ddl_log_first(&entry); entry.valid(); ddl_log_next(&entry)) {
    if (entry.number <= position) continue;
    CHECK_FOR_INTERRUPTS();
    MemoryContextReset(context);
    MemoryContextSwitchTo(context);
    StringInfoData body;
    if (!read_entry(entry, &body)) continue;
    const DdlLogHead head = read_log_head(&body);
    if (!visit(entry, head, &body)) break;
  }
  MemoryContextSwitchTo(caller);
  MemoryContextDelete(context);
}

// Where the history of this database begins.  One without the extension has none: what the log says until the extension
// was last dropped, or the database, was about another database of this name, or has been undone.
uint64_t beginning(const char* history, uint64_t position);

// Whether another primary has done something in the history behind `position` and behind its beginning.
bool goes_on(const char* history, uint64_t position);

}  // namespace gcl
