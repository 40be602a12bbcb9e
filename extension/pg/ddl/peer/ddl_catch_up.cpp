#include "extension/pg/ddl/peer/ddl_catch_up.hpp"

#include "extension/pg/catalog/shared_relations.hpp"
#include "extension/pg/ddl/base/ddl_port.hpp"
#include "extension/pg/ddl/base/user_lock.hpp"
#include "extension/pg/ddl/coordinate/ddl_history.hpp"
#include "extension/pg/ddl/coordinate/ddl_transaction.hpp"
#include "extension/pg/ddl/node/ddl_node_state.hpp"
#include "extension/pg/ddl/node/ddl_position.hpp"
#include "extension/pg/ddl/objects/databases.hpp"
#include "extension/pg/ddl/replay/ddl_replay.hpp"

namespace gcl {
namespace {

// `of_roles`: only statements on roles and databases, because the others were about a database that has gone.
void apply_entry(const char* history, const engine::DdlLogEntry& entry, StringInfo body, int records, bool of_roles) {
  static DdlReplay replay;
  MemoryContext context = CurrentMemoryContext;
  replay.begin();
  for (int i = 0; i < records; ++i) {
    MemoryContextSwitchTo(context);
    const DdlRecord* record = read_record(body);
    if (of_roles && (!record->shared || record->owned)) continue;
    if (concerns_this_connection(record)) leave_home();
    // Savepoints in the log were all released; they are opened again so that replay takes the coordinator's ways.
    replay.go_to(record->path, NIL);
    MemoryContextSwitchTo(context);
    replay.run(record);
  }
  replay.go_to(NIL, NIL);
  write_position(position_of(history), {entry.number, OidIsValid(gcl_access_method())});
  replay.commit();
  MemoryContextSwitchTo(context);
}

}  // namespace

// Up to `begins` the history is of a database that has gone; statements on roles and databases there are applied all
// the same (ddl.roles-in-log-order).
static void apply_behind(uint64_t position, uint64_t begins, const char* history, uint64_t until) {
  visit_entries(position, [=](const engine::DdlLogEntry& entry, const DdlLogHead& head, StringInfo body) {
    if (until != 0 && entry.number > until) return false;
    const bool has_gone = entry.number <= begins;
    if (strcmp(head.database, history) != 0 || (has_gone && !head.shared)) return true;
    ddl_node_state().entry = entry.number - 1;
    // Own entries are in the catalogs if they committed (ddl.member-has-applied-log).
    if (head.coordinator == ddl_node()) return true;
    const DdlOutcome status = ddl_outcome(entry.txn);
    if (status == DdlOutcome::kCommitted) apply_entry(history, entry, body, head.records, has_gone);
    return status != DdlOutcome::kUndecided;
  });
}

static void apply_what_is_new(const char* history, uint64_t until) {
  MemoryContext caller = CurrentMemoryContext;
  StartTransactionCommand();
  const uint64_t position = load_position(position_of(history)).applied;
  const bool has_history = *history == '\0' || OidIsValid(gcl_access_method());
  CommitTransactionCommand();
  MemoryContextSwitchTo(caller);
  if (!is_up_to_date(position_of(history), history)) {
    const uint64_t begins = has_history ? position : beginning(history, position);
    apply_behind(position, begins, history, until);
    if (until == 0) note_up_to_date(position_of(history), history);
  }
}

void apply_log(const char* history, uint64_t until) {
  // One process at a time catches up in a database.
  const LOCKTAG tag = user_lock_tag(UserLock::kCatchingUp, position_of(history));
  MemoryContext caller = CurrentMemoryContext;
  StartTransactionCommand();
  (void)LockAcquire(&tag, ExclusiveLock, true, false);
  CommitTransactionCommand();
  MemoryContextSwitchTo(caller);
  PG_TRY();
  { apply_what_is_new(history, until); }
  PG_FINALLY();
  { (void)LockRelease(&tag, ExclusiveLock, true); }
  PG_END_TRY();
}

static DdlStep* new_step(char* database, uint64_t until) {
  auto* step = static_cast<DdlStep*>(palloc(sizeof(DdlStep)));
  *step = {database, until};
  return step;
}

List* steps_to_catch_up() {
  List *steps = NIL, *left = NIL;  // of every database: its newest entry that no step is for
  engine::DdlLogEntry entry;
  for (ddl_log_first(&entry); entry.valid(); ddl_log_next(&entry)) {
    StringInfoData body;
    if (!read_entry(entry, &body)) continue;
    const DdlLogHead head = read_log_head(&body);
    pfree(body.data);
    if (head.coordinator == ddl_node()) continue;
    DdlStep* mine = nullptr;
    ListCell* cell;
    foreach (cell, left) {
      auto* other = static_cast<DdlStep*>(lfirst(cell));
      if (strcmp(other->database, head.database) == 0) {
        mine = other;
      } else if (head.shared && other->until != 0) {
        steps = lappend(steps, new_step(other->database, other->until));
        other->until = 0;
      }
    }
    if (!mine) left = lappend(left, mine = new_step(head.database, 0));
    mine->until = entry.number;
    if (!head.shared || list_length(left) == 1) continue;
    steps = lappend(steps, new_step(mine->database, mine->until));
    mine->until = 0;
  }
  ListCell* cell;
  foreach (cell, left) steps = lappend(steps, new_step(static_cast<DdlStep*>(lfirst(cell))->database, 0));
  return steps;
}

}  // namespace gcl
