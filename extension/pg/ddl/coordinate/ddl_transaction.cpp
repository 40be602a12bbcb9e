#include "extension/pg/ddl/coordinate/ddl_transaction.hpp"

#include "extension/engine/ddl/ddl_states.hpp"
#include "extension/pg/catalog/shared_relations.hpp"
#include "extension/pg/ddl/coordinate/ddl_history.hpp"
#include "extension/pg/ddl/coordinate/ddl_outbox.hpp"
#include "extension/pg/ddl/node/ddl_node_state.hpp"
#include "extension/pg/ddl/node/ddl_position.hpp"
#include "extension/pg/ddl/node/ddl_wakeup.hpp"
#include "extension/pg/runtime/ddl_hooks.hpp"
#include "extension/pg/runtime/stop_points.hpp"
#include "extension/pg/txn/transaction_parts.hpp"

extern "C" {
#include "commands/dbcommands.h"
#include "libpq/pqformat.h"
#include "storage/lmgr.h"
#include "storage/proc.h"
#include "utils/resowner.h"
}

namespace gcl {

static void ddl_aborted() noexcept;
namespace {

using coherence::NodeSet;
using engine::CoordinatorEvent;
using engine::CoordinatorState;
using engine::DdlKind;
using engine::DdlMembers;

struct Kept {
  DdlRecord* record;
  bool rolled_back;  // its savepoint was
};

struct Grant {      // one round of locks
  uint32_t before;  // how many targets were granted before it
  List* path;       // the savepoints that were open
};

// What this transaction has under way; everything it points to lives in `ddl_transaction_context`.
struct DdlTransaction {
  CoordinatorState state;
  bool database;     // it has the DDL lock of its database
  bool whole;        // and of the whole cluster
  int lock;          // the database's DDL lock
  uint32_t granted;  // targets, as the slot says
  List* grants;      // Grant*
  List* kept;        // Kept*
  List* opened_in;   // savepoints that were open when it began
  List* locked_in;   // and when it got a DDL lock
  List* told;        // and those that the others know of
  List* aborted;     // rolled back, and the others do not know yet
  // The body of a statement that the others do not have yet (ddl.lone-statement-with-commit); null: none.
  StringInfo unsent;
  DdlMembers asked;  // in this round of locks
} current;

DdlOutbox outbox;
MemoryContext ddl_transaction_context = nullptr;
List* savepoints = NIL;  // of int, in TopMemoryContext

bool is_open() { return current.state != CoordinatorState::kNone; }

void advance(CoordinatorEvent event) {
  const auto next = engine::next(current.state, event);
  if (!next) elog(ERROR, "gcl: DDL event %d in state %d", int(event), int(current.state));
  current.state = *next;
}

DdlRight right_now() {
  return current.whole ? DdlRight::kWhole : current.database ? DdlRight::kDatabase : DdlRight::kLocks;
}

List* kept_path() {
  MemoryContext caller = MemoryContextSwitchTo(ddl_transaction_context);
  List* path = list_copy(savepoints);
  MemoryContextSwitchTo(caller);
  return path;
}

void start_body(StringInfo body) {
  initStringInfo(body);
  write_ints(body, savepoints);
  write_ints(body, current.aborted);
  current.told = kept_path();
}

void give_back_locks() {
  if (current.whole) give_back_ddl_lock(DdlRight::kWhole, current.lock);
  if (current.database) give_back_ddl_lock(DdlRight::kDatabase, current.lock);
  current.whole = current.database = false;
}

// ddl_log.want-then-retry.  Mostly no process waits.
void tell_who_waits() {
  if (!ddl_locks().take_wanted().any()) return;
  ddl_wake_others();
  wake_waiters();
}

// Gives back whatever this transaction holds.  Never raises.
void close_ddl_transaction() {
  if (!is_open()) return;  // almost every commit
  note_ddl_ended();        // of a session that was ended in the middle of one
  give_back_locks();
  outbox.give_up();
  tell_who_waits();
  advance(CoordinatorEvent::kClose);
  current = {.state = current.state};
  MemoryContextReset(ddl_transaction_context);
}

List* live_records() {
  List* live = NIL;
  ListCell* cell;
  foreach (cell, current.kept) {
    const auto* kept = static_cast<Kept*>(lfirst(cell));
    if (!kept->rolled_back) live = lappend(live, kept->record);
  }
  return live;
}

void write_log_record(StringInfo to, const List* records) {
  int shared = 0, tied = 0;  // to its database, by what they are about
  const char* dropped = "";
  ListCell* cell;
  foreach (cell, records) {
    const auto* record = static_cast<DdlRecord*>(lfirst(cell));
    shared += record->shared;
    tied += !record->shared || record->owned;
    if (drops_database(record)) dropped = record->database;
  }
  const bool of_cluster = tied == 0;  // (ddl.roles-of-no-database)
  outbox.set_of_cluster(of_cluster);
  initStringInfo(to);
  pq_sendstring(to, of_cluster ? "" : outbox.database());
  pq_sendstring(to, dropped);
  pq_sendint32(to, ddl_node());
  pq_sendbyte(to, !of_cluster && !OidIsValid(gcl_access_method()));
  pq_sendbyte(to, shared > 0);
  pq_sendint32(to, uint32_t(list_length(records)));
  foreach (cell, records) write_record(to, static_cast<DdlRecord*>(lfirst(cell)));
}

// The others still hold what was locked in the savepoint.  They hear of it now, and are not waited for.
void tell_of_rollback() {
  if (ddl_pool_fenced()) return;
  outbox.wait_for_the_last();  // ddl_log.owner-posts: what an ERROR left behind was cancelled by it: that ends soon.
  StringInfoData body;
  start_body(&body);
  if (outbox.tell(DdlKind::kSavepoint, &body)) current.aborted = NIL;  // else the next message tells
}

void forget_grants_of(SubTransactionId mine) {
  ListCell* cell;
  foreach (cell, current.grants) {
    const auto* grant = static_cast<Grant*>(lfirst(cell));
    if (!list_member_int(grant->path, int(mine))) continue;
    current.granted = grant->before;
    outbox.set_granted(current.granted);
    current.grants = list_truncate(current.grants, foreach_current_index(cell));
    return;
  }
}

void roll_back_to(SubTransactionId mine) {
  if (list_member_int(current.opened_in, int(mine))) return ddl_aborted();
  MemoryContext caller = MemoryContextSwitchTo(ddl_transaction_context);
  current.aborted = lappend_int(current.aborted, int(mine));
  ListCell* cell;
  foreach (cell, current.kept) {
    auto* kept = static_cast<Kept*>(lfirst(cell));
    kept->rolled_back |= list_member_int(kept->record->path, int(mine));
  }
  forget_grants_of(mine);
  const bool unlocks = list_member_int(current.locked_in, int(mine));
  if (unlocks) outbox.set_right(DdlRight::kLocks, current.lock);
  if (outbox.used() && (unlocks || list_member_int(current.told, int(mine)))) tell_of_rollback();
  MemoryContextSwitchTo(caller);
  if (!unlocks) return;
  give_back_locks();
  current.locked_in = NIL;
  tell_who_waits();
}

void savepoint_callback(SubXactEvent event, SubTransactionId mine, SubTransactionId, void*) {
  if (event == SUBXACT_EVENT_START_SUB) {
    MemoryContext caller = MemoryContextSwitchTo(TopMemoryContext);
    savepoints = lappend_int(savepoints, int(mine));
    MemoryContextSwitchTo(caller);
    return;
  }
  if (event == SUBXACT_EVENT_PRE_COMMIT_SUB) return;
  if (savepoints == NIL || llast_int(savepoints) != int(mine)) return;
  savepoints = list_delete_last(savepoints);
  if (event == SUBXACT_EVENT_ABORT_SUB && is_open()) roll_back_to(mine);
}

// The other backends know by now what has changed, and the transaction's locks are free (ddl.lock-freed-last).
void release_callback(ResourceReleasePhase phase, bool, bool, void*) {
  if (phase == RESOURCE_RELEASE_AFTER_LOCKS && current.state == CoordinatorState::kCommitted) close_ddl_transaction();
}

void take_lock(DdlRight right) {
  if (current.whole || (current.database && right == DdlRight::kDatabase)) return;
  current.lock = ddl_lock_of_database();
  take_ddl_lock(right, current.lock);
  if (!current.database) current.locked_in = kept_path();
  (right == DdlRight::kWhole ? current.whole : current.database) = true;
  outbox.set_right(right_now(), current.lock);
}

// Members that have not been asked in this round, or have come back since.
NodeSet not_asked() {
  const DdlMembers now = outbox.members();
  NodeSet left = now.nodes;
  for (NodeSet all = now.nodes; !all.empty(); all = all.without(all.first()))
    if (current.asked.incarnation[all.first().value] == now.incarnation[all.first().value])
      left = left.without(all.first());
  return left;
}

// The statement is not the whole transaction after all (ddl.lone-statement-with-commit).
void send_what_is_unsent() {
  StringInfo body = current.unsent;
  current.unsent = nullptr;
  if (body) outbox.send_to_all(DdlKind::kStatement, body);
}

void ask(List* targets, bool nowait, NodeSet whom) {
  send_what_is_unsent();
  StringInfoData body;
  start_body(&body);
  pq_sendint32(&body, nowait ? uint32_t(-1) : uint32_t(LockTimeout));
  pq_sendint32(&body, uint32_t(DeadlockTimeout));
  DdlRecord record{};
  record.sql = pstrdup("");
  record.targets = targets;
  write_record(&body, &record);
  DdlMembers to = outbox.members();
  to.nodes = {to.nodes.bits & whom.bits};
  outbox.send(DdlKind::kLock, &body, to);
  for (NodeSet left = to.nodes; !left.empty(); left = left.without(left.first()))
    current.asked.incarnation[left.first().value] = to.incarnation[left.first().value];
}

// ddl_log.joiner-takes-locks.
void say_granted(List* targets) {
  MemoryContext caller = MemoryContextSwitchTo(ddl_transaction_context);
  auto* grant = static_cast<Grant*>(palloc(sizeof(Grant)));
  *grant = {current.granted, kept_path()};
  current.grants = lappend(current.grants, grant);
  MemoryContextSwitchTo(caller);
  ListCell* cell;
  foreach (cell, targets) {
    const auto* target = static_cast<DdlTarget*>(lfirst(cell));
    outbox.list_target(current.granted++, {target->relation, uint32_t(target->mode)});
  }
  outbox.set_granted(current.granted);
}

}  // namespace

static bool ddl_under_way() noexcept;
static void ddl_committed() noexcept;

void install_ddl_transaction_hooks() {
  install(TransactionPart::kDdl, {.pre_commit = ddl_pre_commit,
                                  .committed = ddl_committed,
                                  .aborted = ddl_aborted,
                                  .forbids_prepare = ddl_under_way});
  RegisterSubXactCallback(savepoint_callback, nullptr);
}

List* savepoint_path() { return list_copy(savepoints); }

// The other primaries serve it in one database.
static void check_database(bool of_cluster) {
  if (*outbox.database() != '\0' || of_cluster) return;
  ereport(ERROR,
          (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
           errmsg("this transaction has changed roles or databases before the extension gcl was in the database"),
           errhint("COMMIT before.")));
}

// The DDL lock first: a session that waits for it needs no slot yet.
void open_ddl_transaction(DdlRight right, bool nowait, bool of_cluster) {
  if (outbox.open()) check_database(of_cluster);
  if (!ddl_transaction_context) {
    ddl_transaction_context = AllocSetContextCreate(TopMemoryContext, "gcl DDL transaction", ALLOCSET_DEFAULT_SIZES);
    RegisterResourceReleaseCallback(release_callback, nullptr);  // sessions without DDL do not pay for it
  }
  if (!is_open()) current.opened_in = kept_path();
  advance(CoordinatorEvent::kOpen);
  if (right != DdlRight::kLocks) take_lock(right);
  const bool by_name = !of_cluster || OidIsValid(gcl_access_method());
  if (!outbox.open()) outbox.take(by_name ? get_database_name(MyDatabaseId) : "", nowait);
}

bool first_primary_is_this() {
  const NodeSet others = ddl_channel().members().nodes;
  return others.empty() || others.first().value > ddl_node();
}

void ask_first(List* targets, bool nowait) {
  current.asked = {};
  const NodeSet others = outbox.members().nodes;
  if (!others.empty() && others.first().value < ddl_node()) ask(targets, nowait, NodeSet::of(others.first()));
}

// Also if there are no others: a primary that joins reads it.
void ask_others(List* targets, bool nowait) {
  if (const NodeSet left = not_asked(); !left.empty() || !outbox.used()) ask(targets, nowait, left);
  say_granted(targets);
  for (NodeSet left = not_asked(); !left.empty(); left = not_asked()) ask(targets, nowait, left);
}

// ddl.locks-of-the-dead
void require_decided(const List* targets) {
  const auto conflicts = [](const DdlTarget* target) { return target->mode >= ShareLock; };
  bool any = false;
  ListCell* cell;
  foreach (cell, targets) any |= conflicts(static_cast<DdlTarget*>(lfirst(cell)));
  coherence::NodeId node;
  const size_t undecided = any ? ddl_undecided(&node) : 0;
  if (undecided == 0) return;
  ereport(ERROR, (errcode(ERRCODE_OBJECT_IN_USE),
                  errmsg("transactions of a primary that is away are in doubt, and may have locked the relation"),
                  errdetail("gcl_in_doubt shows %zu of them, one of primary %d, which only its own server can decide.",
                            undecided, node.value),
                  errhint("Start that primary. If it is lost: SELECT gcl_resolve_in_doubt(node, id, commit).")));
}

void lock_everywhere(List* targets) {
  ListCell* cell;
  if (first_primary_is_this())
    foreach (cell, targets) {
      const auto* target = static_cast<DdlTarget*>(lfirst(cell));
      LockRelationOid(target->relation, target->mode);
    }
  ask_first(targets, false);
  ask_others(targets, false);
  require_decided(targets);
  stop_here(StopPoint::kDdlLocked);
}

void send_statement(DdlRecord* record, bool last) {
  send_what_is_unsent();
  StringInfoData body;
  start_body(&body);
  const int at = body.len;
  write_record(&body, record);
  if (!last) outbox.send_to_all(DdlKind::kStatement, &body);
  if (!last) outbox.tell_local_drops();

  MemoryContext caller = MemoryContextSwitchTo(ddl_transaction_context);
  if (last) {
    current.unsent = makeStringInfo();
    appendBinaryStringInfo(current.unsent, body.data, body.len);
  }
  auto* kept = static_cast<Kept*>(palloc0(sizeof(Kept)));
  body.cursor = at;
  kept->record = read_record(&body);
  current.kept = lappend(current.kept, kept);
  MemoryContextSwitchTo(caller);
}

DdlLogHead read_log_head(StringInfo from) {
  DdlLogHead head;
  head.database = pstrdup(pq_getmsgrawstring(from));
  head.dropped = pstrdup(pq_getmsgrawstring(from));
  head.coordinator = int(pq_getmsgint(from, 4));
  head.ends = pq_getmsgbyte(from) != 0;
  head.shared = pq_getmsgbyte(from) != 0;
  head.records = int(pq_getmsgint(from, 4));
  return head;
}

static bool ddl_under_way() noexcept { return is_open(); }

// For primaries that cannot answer (ddl.database-by-name).
[[noreturn]] static void refuse_another_extension() {
  ereport(ERROR,
          (errcode(ERRCODE_DUPLICATE_OBJECT), errmsg("another primary has the extension gcl in the database already"),
           errdetail("It is away, and has done something there that is not done here."),
           errhint("The next DDL in the database on a primary that has the extension creates it here, too.")));
  pg_unreachable();
}

void ddl_pre_commit() {
  if (!is_open() || current.state == CoordinatorState::kPrepared) return;
  const List* records = live_records();
  if (records == NIL) {
    current.unsent = nullptr;
    if (outbox.used())
      ask(NIL, false, outbox.members().nodes);  // only to hear that all still have what they have locked
    return;
  }
  const uint64_t transaction = ddl_raw_txn_id();
  outbox.set_txn(transaction);  // ddl_log.id-before-entry
  StringInfoData record;
  write_log_record(&record, records);
  const uint64_t number = ddl_log_append(record.data, uint32_t(record.len), transaction);
  outbox.set_log_number(number);
  StringInfoData body;
  start_body(&body);
  if (StringInfo last = current.unsent) {
    current.unsent = nullptr;
    outbox.send_to_all(DdlKind::kLast, last);
    outbox.tell_local_drops();
  } else {
    outbox.send_to_all(DdlKind::kPrepare, &body);
  }
  advance(CoordinatorEvent::kPrepare);
  stop_here(StopPoint::kDdlAllPrepared);
  DdlPosition position = load_position(MyDatabaseId);
  if (position.extension == OidIsValid(gcl_access_method())) return;
  position.extension = !position.extension;
  if (position.extension) {  // (ddl.database-by-name)
    if (goes_on(outbox.database(), position.applied)) refuse_another_extension();
    position.applied = number;
  }
  write_position(MyDatabaseId, position);
}

static void ddl_committed() noexcept {
  if (outbox.used()) {
    const bool prepared = current.state == CoordinatorState::kPrepared;
    if (prepared) stop_here(StopPoint::kDdlCommitUntold);
    (void)outbox.tell(prepared ? DdlKind::kCommit : DdlKind::kAbort, nullptr);
    if (prepared) outbox.wait_for_commits();
  }
  if (is_open()) advance(CoordinatorEvent::kCommit);
}

static void ddl_aborted() noexcept {
  if (outbox.used() && !ddl_pool_fenced()) {
    outbox.cancel_the_last();
    (void)outbox.tell(DdlKind::kAbort, nullptr);  // which wakes the others
  }
  close_ddl_transaction();
}

}  // namespace gcl
