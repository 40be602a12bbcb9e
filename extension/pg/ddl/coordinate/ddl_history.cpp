#include "extension/pg/ddl/coordinate/ddl_history.hpp"

namespace gcl {

bool read_entry(const engine::DdlLogEntry& entry, StringInfo to) {
  initStringInfo(to);
  enlargeStringInfo(to, int(entry.bytes));
  to->len = int(entry.bytes);
  return ddl_log_read(entry, to->data);
}

uint64_t beginning(const char* history, uint64_t position) {
  uint64_t begins = position;
  visit_entries(position, [history, &begins](const engine::DdlLogEntry& entry, const DdlLogHead& head, StringInfo) {
    const bool ends = strcmp(head.dropped, history) == 0 || (head.ends && strcmp(head.database, history) == 0);
    if (ends && ddl_outcome(entry.txn) == DdlOutcome::kCommitted) begins = entry.number;
    return true;
  });
  return begins;
}

bool goes_on(const char* history, uint64_t position) {
  bool found = false;
  visit_entries(beginning(history, position),
                [history, &found](const engine::DdlLogEntry& entry, const DdlLogHead& head, StringInfo) {
                  found = strcmp(head.database, history) == 0 && head.coordinator != ddl_node() &&
                          ddl_outcome(entry.txn) == DdlOutcome::kCommitted;
                  return !found;
                });
  return found;
}

}  // namespace gcl
