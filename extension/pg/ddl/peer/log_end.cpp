#include "extension/pg/ddl/peer/log_end.hpp"
#include "extension/pg/boundary/monotonic.hpp"

#include "extension/pg/ddl/base/ddl_port.hpp"
#include "extension/pg/ddl/coordinate/ddl_history.hpp"
#include "extension/pg/ddl/coordinate/ddl_transaction.hpp"
#include "extension/pg/ddl/node/database_list.hpp"
#include "extension/pg/ddl/node/ddl_node_state.hpp"
#include "extension/pg/ddl/node/ddl_position.hpp"
#include "extension/pg/ddl/peer/ddl_catch_up.hpp"

extern "C" {
#include "pgstat.h"
#include "storage/latch.h"
#include "utils/timestamp.h"
}

namespace gcl {
namespace {

constexpr TimestampTz kPauseUs = 1'000'000;
constexpr TimestampTz kPatienceUs = 10'000'000;  // of DDL that finds the log full, while all are here
constexpr long kRoomMs = 50;
constexpr TimestampTz kResolvePauseUs = 60'000'000;  // xids may be some hundred million old before they are forgotten
constexpr TimestampTz kLongPauseUs = 10'000'000;     // a history waits for an administrator

// A history with entries that are not applied here.
struct Open {
  char* database;
  uint64_t first;  // of these
};

int64_t again_at = 0;
int64_t resolve_at = 0;
uint64_t removed = 0;             // entries that are known to have been removed
engine::DdlLogEntry looked_at{};  // the newest entry up to which nothing is open

void step(engine::DdlLogEntry* at) {
  if (at->number == 0)
    ddl_log_first(at);
  else
    ddl_log_next(at);
}

bool is_applied(const char* history, uint64_t number) {
  if (*history == '\0') return load_position(InvalidOid).applied >= number;
  const Oid database = find_database(history);
  return OidIsValid(database) && load_position(database).applied >= number;
}

List* with_open(List* open, const char* database, uint64_t number) {
  ListCell* cell;
  foreach (cell, open)
    if (strcmp(static_cast<Open*>(lfirst(cell))->database, database) == 0) return open;
  auto* fresh = static_cast<Open*>(palloc(sizeof(Open)));
  *fresh = {pstrdup(database), number};
  return lappend(open, fresh);
}

List* without(List* open, const char* database) {
  ListCell* cell;
  foreach (cell, open)
    if (strcmp(static_cast<Open*>(lfirst(cell))->database, database) == 0) open = foreach_delete_current(open, cell);
  return open;
}

[[noreturn]] void refuse_for_room(const engine::DdlLogExtent& log, engine::DdlApplied least, coherence::NodeId behind) {
  ereport(
      ERROR,
      (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED), errmsg("the DDL log is full"),
       errdetail("It has %llu pages, and is kept until primary %d has applied all of its %llu entries; that has %llu.",
                 (unsigned long long)log.pages, behind.value, (unsigned long long)log.count,
                 (unsigned long long)(least.known() ? least.number() : 0)),
       errhint("Start that primary; if it runs, its log says why it is behind. If it is not to come back: SELECT "
               "gcl_forget_primary(%d).",
               behind.value)));
  pg_unreachable();
}

bool is_of_the_history(const char* database) {
  const Oid oid = find_database(database);
  return OidIsValid(oid) && load_position(oid).extension != 0;
}

// A history that has ended does not hold the log for a primary that has no part of it.  A primary that has applied a
// part, and not the end, has the end to come.
List* after_entry(List* open, const engine::DdlLogEntry& entry, const DdlLogHead& head) {
  MemoryContext context = CurrentMemoryContext;
  const bool applied = head.coordinator == ddl_node() || is_applied(head.database, entry.number);
  MemoryContextSwitchTo(context);
  if (!applied) open = with_open(open, head.database, entry.number);
  if (applied && *head.dropped != '\0') open = without(open, head.dropped);
  if (head.ends && (applied || !is_of_the_history(head.database))) open = without(open, head.database);
  MemoryContextSwitchTo(context);
  return open;
}

uint64_t first_of(const List* open, uint64_t otherwise) {
  uint64_t first = otherwise;
  ListCell* cell;
  foreach (cell, open) first = Min(first, static_cast<Open*>(lfirst(cell))->first);
  return first;
}

// The entries before the first that is not applied here, or not decided.  A database that is kept out or is not here
// yet may have some; its position says so, and counts for entries of its own history only.
uint64_t applied_here(uint64_t said) {
  List* open = NIL;
  engine::DdlLogEntry at = looked_at;
  uint64_t upto = said;
  for (step(&at); at.valid(); step(&at)) {
    StringInfoData body{};
    if (at.number > said && read_entry(at, &body)) {
      const DdlOutcome status = ddl_outcome(at.txn);
      if (status == DdlOutcome::kUndecided) break;
      if (status == DdlOutcome::kCommitted) open = after_entry(open, at, read_log_head(&body));
    }
    if (body.data != nullptr) pfree(body.data);
    upto = at.number;
    if (open == NIL) looked_at = at;
  }
  return Max(said, first_of(open, upto + 1) - 1);
}

bool has_something_to_do(engine::DdlApplied mine) {
  if (!mine.known()) return false;  // it was forgotten
  coherence::NodeId behind{};
  return mine.number() < ddl_channel().log_entries() || ddl_channel().applied_by_all(&behind).number() > removed;
}

}  // namespace

// Entries that are published as applied are so after a crash, too: positions and the transactions that make them count
// are flushed here.
void tend_log() {
  const int64_t now = monotonic_us();
  if (now >= resolve_at) resolve_at = now + (resolve_positions() ? kResolvePauseUs : kPauseUs);
  if (!ddl_node_state().member || ddl_node_state().behind || now < again_at) return;
  const engine::DdlApplied mine = ddl_channel().applied(ddl_node_id());
  if (!has_something_to_do(mine)) return;
  again_at = now + kPauseUs;
  resolve_at = Min(resolve_at, again_at);  // the transaction that has written a position commits
  MemoryContext context = AllocSetContextCreate(TopMemoryContext, "gcl ddl log end", ALLOCSET_DEFAULT_SIZES);
  MemoryContext caller = MemoryContextSwitchTo(context);
  const uint64_t entries = ddl_channel().log_entries(), applied = applied_here(mine.number());
  MemoryContextSwitchTo(caller);
  MemoryContextDelete(context);
  if (applied > mine.number()) {
    ddl_flush_log();
    ddl_channel().set_applied(ddl_node_id(), engine::DdlApplied::upto(applied));
  }
  ddl_log_remove_applied();
  removed = ddl_log_extent().removed;
  if (applied < entries && applied == mine.number()) again_at = now + kLongPauseUs;
}

bool has_applied_all() { return applied_here(ddl_channel().applied(ddl_node_id()).number()) >= ddl_log_extent().count; }

void require_log_room() {
  const int64_t began = monotonic_us();
  for (;;) {
    const engine::DdlLogExtent log = ddl_log_extent();
    if (log.pages < ddl_log_pages_max()) return;
    coherence::NodeId behind{};
    const engine::DdlApplied least = ddl_channel().applied_by_all(&behind);
    const bool comes = behind == ddl_node_id() || ddl_channel().membership(behind) != 0;
    if (!comes || monotonic_us() - began > kPatienceUs) refuse_for_room(log, least, behind);
    ddl_wake_node(ddl_node());
    ddl_wake_others();
    (void)WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, kRoomMs, PG_WAIT_EXTENSION);
    ResetLatch(MyLatch);
    CHECK_FOR_INTERRUPTS();
  }
}

}  // namespace gcl
