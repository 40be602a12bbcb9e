// The apply worker: runs other primaries' DDL in one database, and holds what they lock.  It serves one slot of the
// channel.  The launcher starts one when a message for its database arrives there, or when the log must be caught up
// with; it ends when it has had nothing to do for long, or when no session may be in its database.
#include "extension/engine/ddl/ddl_states.hpp"
#include "extension/pg/catalog/shared_relations.hpp"
#include "extension/pg/ddl/classify/ddl_plan.hpp"
#include "extension/pg/ddl/coordinate/ddl_lock.hpp"
#include "extension/pg/ddl/coordinate/ddl_outbox.hpp"
#include "extension/pg/ddl/node/ddl_node_state.hpp"
#include "extension/pg/ddl/node/ddl_position.hpp"
#include "extension/pg/ddl/node/ddl_wakeup.hpp"
#include "extension/pg/ddl/node/worker_settings.hpp"
#include "extension/pg/ddl/objects/databases.hpp"
#include "extension/pg/ddl/objects/local_drops.hpp"
#include "extension/pg/ddl/peer/ddl_catch_up.hpp"
#include "extension/pg/ddl/record/ddl_describe.hpp"
#include "extension/pg/ddl/replay/ddl_replay.hpp"
#include "extension/pg/ddl/replay/no_user_code.hpp"
#include "extension/pg/runtime/stop_points.hpp"

extern "C" {
#include "commands/dbcommands.h"
#include "extension/pg/boundary/monotonic.hpp"
#include "libpq/pqformat.h"
#include "libpq/pqsignal.h"
#include "pgstat.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "storage/lwlock.h"
#include "storage/proc.h"
#include "tcop/tcopprot.h"
#include "utils/timestamp.h"

PGDLLEXPORT void gcl_ddl_apply_main(Datum argument);
}

namespace gcl {
namespace {

using engine::DdlKind;
using engine::DdlMessage;
using engine::ParticipantEvent;
using engine::ParticipantState;

constexpr int kIdleMaxMs = 300'000;
constexpr int kAwakeMs = 1000;

DdlWorker* self = nullptr;
bool attends = false;  // to self->slot
MemoryContext message_context = nullptr;
DdlReplay replay;

struct Taking {  // part in a DDL transaction
  ParticipantState state;
  uint64_t ddl_transaction;  // 0: none
  bool tagged;               // we hold the tags of its database's DDL lock for the coordinator
  bool tagged_whole;         // and of the whole cluster's
  bool partial;              // the parts of this message that came before were read by another process
  int lock;                  // the database's DDL lock
  int depth;                 // savepoints that the coordinator is in; -1: not read yet
  StringInfoData body;       // parts so far
  const char* text;          // of the statement, or the locks, that this message is about
} taking;

engine::DdlSlot slot() { return ddl_slot(self->slot); }

// A signal may be late: the work that it meant to stop has ended, and the next message must not suffer.
void on_coordinator_stops(int number) {
  if (self->busy != 0 && self->stop >= self->busy) StatementCancelHandler(number);
  count_on_slot();
}

// pg_cancel_backend().  Between two messages there is nothing to cancel.
void on_cancel(int number) {
  if (self->busy != 0) StatementCancelHandler(number);
  count_on_slot();
}

void on_terminate(int number) {
  die(number);
  count_on_slot();
}

void let_go_of_tags() {
  if (taking.tagged) unlock_ddl_tags(DdlRight::kDatabase, taking.lock);
  if (taking.tagged_whole) unlock_ddl_tags(DdlRight::kWhole, taking.lock);
  taking.tagged = taking.tagged_whole = false;
}

bool is_lost() { return taking.state == ParticipantState::kLost; }

void advance(ParticipantEvent event) {
  const auto next = engine::next(taking.state, event);
  if (!next) elog(ERROR, "gcl: DDL event %d in state %d", int(event), int(taking.state));
  taking.state = *next;
}

void leave_ddl_transaction() {
  // An abort of the whole transaction releases session locks too.
  if (!is_lost() && !replay.open()) let_go_of_tags();
  replay.abort();
  ddl_works_for(0, 0, 0);
  self->holds = 0;
  taking.ddl_transaction = 0;
  taking.tagged = taking.tagged_whole = false;
  advance(ParticipantEvent::kLeave);
  self->engaged = false;
}

// Sessions here would go on with catalogs that no other primary has (ddl.member-has-applied-log).
bool must_stay() { return taking.state == ParticipantState::kPrepared && ddl_sessions_left(); }

// What cannot be read never will be, once the pool, or this node's way to it, is gone.
void end_without_pool() {
  if (ddl_pool_fenced() || (ddl_postmaster_gone() && !must_stay())) proc_exit(1);
}

// A position passes over no entry (ddl.position-with-catalogs).  The coordinator has the DDL lock, so no other
// transaction can fail to commit here now.  But where the DDL transaction began with LOCK TABLE, earlier failures may
// not have been caught up with.
void require_up_to_date(DdlRight right) {
  const bool behind =
      ddl_node_state().behind && (right == DdlRight::kWhole || !is_up_to_date(MyDatabaseId, self->database));
  if (!behind && !kept_out(self->database)) return;
  ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                  errmsg("this primary has not caught up with the DDL of the other primaries"),
                  errhint("It is at it: try again. If that does not help, the server's log says why.")));
}

// The tags of the DDL locks that the coordinator has (ddl.lock-waits-by-tag).
void match_tags(const engine::DdlHeader& header) {
  taking.lock = header.lock;
  if (header.right == DdlRight::kLocks) return let_go_of_tags();
  bool& tagged = header.right == DdlRight::kWhole ? taking.tagged_whole : taking.tagged;
  if (tagged) return;
  require_up_to_date(header.right);
  lock_ddl_tags(header.right, taking.lock);
  tagged = true;
}

// Takes the locks that the coordinator had before this primary took part (ddl_log.joiner-takes-locks).
void take_over(const engine::DdlGranted& granted) {
  List* targets = NIL;
  for (uint32_t i = 0; granted.count != engine::kDdlMoreTargets && i < granted.count; ++i)
    targets = with_target(targets, granted.target[i].relation, LOCKMODE(granted.target[i].mode));
  // The list was too short for all: any relation may be locked.
  ListCell* cell;
  if (granted.count == engine::kDdlMoreTargets)
    foreach (cell, list_concat(shared_tables(InvalidOid), shared_sequences(InvalidOid)))
      targets = with_target(targets, lfirst_oid(cell), AccessExclusiveLock);
  replay.lock(targets, {.may_be_gone = true});
}

// What a worker here failed to commit comes first (ddl.member-has-applied-log).
void catch_up_before() {
  if (!is_up_to_date(position_of(self->database), self->database)) apply_log(self->database);
  MemoryContextSwitchTo(message_context);
}

void enter_ddl_transaction(const engine::DdlHeader& header) {
  if (header.transaction == taking.ddl_transaction) return;
  leave_ddl_transaction();
  catch_up_before();
  taking.ddl_transaction = header.transaction;
  self->engaged = true;
  // The beginning was sent to a worker that is no more.
  const bool late = taking.partial || slot().has_begun(header.transaction);
  advance(late ? ParticipantEvent::kEnterLate : ParticipantEvent::kEnter);
  if (late) {
    self->holds = header.transaction;  // no more will come: its coordinator hears of that before it commits
    return;
  }
  slot().begin(header.transaction);
  ddl_works_for(ddl_transaction_id(self->slot, header.transaction), header.coordinator, header.pid);
  replay.begin();
  MemoryContextSwitchTo(message_context);
  engine::DdlGranted granted;
  while (!slot().read_granted(&granted)) {
    end_without_pool();
    CHECK_FOR_INTERRUPTS();
  }
  if (granted.transaction == header.transaction) take_over(granted);
  self->holds = header.transaction;
}

[[noreturn]] void raise_lost() {
  ereport(ERROR, (errcode(ERRCODE_IN_FAILED_SQL_TRANSACTION), errmsg("the transaction was rolled back here")));
  pg_unreachable();
}

Oid history_of(const DdlMessage& message) {
  return message.header.of_cluster ? InvalidOid : position_of(self->database);
}

void end_committed(const DdlMessage& message) {
  if (is_lost() || !replay.open() || taking.ddl_transaction != message.header.transaction) {
    leave_ddl_transaction();
    // The log of no database is applied in its order with all others' (ddl.roles-in-log-order): the launcher sees to
    // that.
    if (message.header.of_cluster && *self->database != '\0') raise_lost();
    forget_what_is_up_to_date();
    apply_log(self->database);
    return;
  }
  advance(ParticipantEvent::kCommit);  // what was not prepared has no position (ddl.position-with-catalogs)
  replay.commit();
  leave_ddl_transaction();
}

// Shows what this worker does, in pg_stat_activity and beside errors in the log.
void show(const char* text) {
  taking.text = text;
  pgstat_report_activity(STATE_RUNNING, text);
}

void add_coordinator(void* message) {
  const engine::DdlHeader& header = static_cast<const DdlMessage*>(message)->header;
  errcontext("%s of process %u of primary %d%s%s", ddl_kind_name(header.kind), header.pid, header.coordinator,
             taking.text ? ": " : "", taking.text ? taking.text : "");
}

void lock_relations(const engine::DdlHeader& header) {
  const int lock_timeout = int(pq_getmsgint(&taking.body, 4));
  const int deadlock_timeout = int(pq_getmsgint(&taking.body, 4));
  List* targets = read_record(&taking.body)->targets;
  show(ddl_locks_text(targets, self->database));
  if (lock_timeout < 0) wait_for_ended_ddl_transactions();
  MemoryContextSwitchTo(message_context);
  replay.lock(targets, {lock_timeout, deadlock_timeout, header.right == DdlRight::kLocks});
}

void run_statement_of(const DdlMessage& message) {
  const DdlRecord* record = read_record(&taking.body);
  show(record->sql);
  if (concerns_this_connection(record)) {
    if (message.header.transaction == message.sequence) {
      slot().begin(0);  // another process does
      leave_home();
    }
    ereport(ERROR,
            (errcode(ERRCODE_OBJECT_IN_USE), errmsg("the apply worker is connected to database \"%s\"", self->home),
             errhint("Run the statement in a transaction of its own.")));
  }
  check_coordinator_knows(record);
  replay.run(record);
  stop_here(StopPoint::kDdlReplayed);
}

void do_as_told(const DdlMessage& message) {
  const DdlKind kind = message.header.kind;
  if (kind == DdlKind::kAbort) return leave_ddl_transaction();
  if (kind == DdlKind::kCommit) return end_committed(message);
  enter_ddl_transaction(message.header);
  if (is_lost()) raise_lost();
  match_tags(message.header);
  MemoryContextSwitchTo(message_context);
  List* path = read_ints(&taking.body);
  List* aborted = read_ints(&taking.body);
  taking.depth = list_length(path);
  replay.go_to(path, aborted);
  MemoryContextSwitchTo(message_context);
  if (kind == DdlKind::kLock) {
    lock_relations(message.header);
  } else if (kind == DdlKind::kStatement || kind == DdlKind::kLast) {
    run_statement_of(message);
  }
  if (kind != DdlKind::kPrepare && kind != DdlKind::kLast) return;
  replay.go_to(NIL, NIL);
  write_position(history_of(message), {message.header.log_number, OidIsValid(gcl_access_method())});
  advance(ParticipantEvent::kPrepare);
}

// SQLSTATE, line break, message, hint, as the coordinator expects it.
void describe(const ErrorData* error, StringInfo to) {
  appendStringInfo(to, "%s\n%s", unpack_sql_state(error->sqlerrcode), error->message ? error->message : "?");
  if (error->detail) appendStringInfo(to, " (%s)", error->detail);
  if (error->hint) appendStringInfo(to, "%c%s", kReplyHint, error->hint);
}

// The coordinator waits for it; so do sessions here that want what an ended DDL transaction had locked
// (wait_for_ended_ddl_transactions).
void acknowledge(const DdlMessage& message, bool ok, std::string_view text) {
  if (const coherence::NodeId waits = slot().acknowledge(message.sequence, ok, text); waits.valid())
    ddl_wake_node(waits.value);
  if (engine::ends_locks(message.header.kind)) wake_waiters();
}

void deal_with(const DdlMessage& message) {
  StringInfoData text;
  MemoryContextSwitchTo(message_context);
  initStringInfo(&text);
  volatile bool ok = true;
  taking.depth = -1;
  QueryCancelPending = false;
  taking.text = nullptr;
  ErrorContextCallback context{error_context_stack, add_coordinator, const_cast<DdlMessage*>(&message)};
  error_context_stack = &context;
  self->busy = message.sequence;
  const bool commits = message.header.kind == DdlKind::kCommit;
  // An ERROR lets them go.  Dropping a database waits for all processes of the server, and this one is one of them.
  const bool holds = commits && !replay.drops();
  if (holds) HOLD_INTERRUPTS();
  PG_TRY();
  {
    do_as_told(message);
    if (holds) RESUME_INTERRUPTS();
    if (message.header.kind == DdlKind::kStatement || message.header.kind == DdlKind::kLast)
      appendStringInfoString(&text, local_drops_text(engine::kDdlReplyBytes));
  }
  PG_CATCH();
  {
    MemoryContextSwitchTo(message_context);
    ErrorData* error = CopyErrorData();
    EmitErrorReport();
    FlushErrorState();
    describe(error, &text);
    note_ddl_error(self->database, error->message);
    if (!replay.roll_back_innermost(taking.depth)) {
      AbortOutOfAnyTransaction();  // one of catching up, which is not the replay's
      advance(ParticipantEvent::kFail);
    }
    ok = false;
  }
  PG_END_TRY();
  error_context_stack = context.previous;
  pgstat_report_activity(taking.ddl_transaction != 0 ? STATE_IDLEINTRANSACTION : STATE_IDLE, nullptr);
  self->busy = 0;
  QueryCancelPending = false;
  MemoryContextSwitchTo(message_context);
  // The transaction is committed in the log and not here.  The launcher catches up; this process would go on behind it.
  if (!ok && commits) fall_behind();
  acknowledge(message, ok, {text.data, size_t(text.len)});
  if (!ok && commits) proc_exit(1);
}

// True if this was the last part.
bool take_part(const DdlMessage& message) {
  if (message.header.offset == 0) {
    MemoryContextReset(message_context);
    MemoryContext caller = MemoryContextSwitchTo(message_context);
    initStringInfo(&taking.body);
    MemoryContextSwitchTo(caller);
    taking.partial = false;
  }
  taking.partial |= taking.body.data == nullptr || uint32_t(taking.body.len) != message.header.offset;
  if (!taking.partial) {
    enlargeStringInfo(&taking.body, int(message.header.bytes));
    if (!slot().read_body(message, taking.body.data + taking.body.len)) return false;
    taking.body.len += int(message.header.bytes);
    taking.body.data[taking.body.len] = 0;
  }
  const bool complete = message.header.offset + message.header.bytes == message.header.total;
  if (!complete) acknowledge(message, true, {});
  return complete;
}

// Sleeps until a wakeup; ends the process when there has been nothing to do for long.
void wait_for_message(uint32_t seen, int64_t idle_since) {
  end_without_pool();
  if (taking.ddl_transaction != 0) return sleep_on_slot(seen, kHeartbeatMs);
  const long idle = long((monotonic_us() - idle_since) / 1000);
  if (idle >= kIdleMaxMs) proc_exit(0);
  sleep_on_slot(seen, kAwakeMs);
}

// The message is not for this process.  The DDL transaction of this worker may be over all the same: this primary
// joined while its end was told.
void pass_over(const DdlMessage& message) {
  const DdlKind kind = message.header.kind;
  const bool over = kind == DdlKind::kAbort || kind == DdlKind::kCommit;
  if (taking.ddl_transaction != 0 && (over || message.header.transaction != taking.ddl_transaction))
    leave_ddl_transaction();
  if (strcmp(message.header.database, self->database) != 0) proc_exit(0);  // the launcher starts another one
}

// A primary that joins takes part in a DDL transaction that it was not asked about.  Returns the newest message that
// this is behind.
uint64_t take_over_at_start() {
  engine::DdlGranted granted;
  while (!slot().read_granted(&granted)) {
    end_without_pool();
    CHECK_FOR_INTERRUPTS();
  }
  const bool ours = strcmp(granted.header.database, self->database) == 0 && granted.header.coordinator != ddl_node();
  const uint64_t done = slot().acknowledged();
  if (granted.transaction == 0 || !ours || granted.sequence > done) return done;  // the last: it was asked
  enter_ddl_transaction(granted.header);
  ddl_wake_node(ddl_node());  // the launcher waits for it
  return granted.sequence;
}

[[noreturn]] void serve() {
  watch_slot(self->slot);
  ddl_attend(self->slot, true);
  attends = true;
  uint64_t done = take_over_at_start();
  int64_t idle_since = monotonic_us();
  for (;;) {
    const uint32_t seen = slot_wakeup_count();  // (ddl.look-before-sleep)
    if (!must_stay()) CHECK_FOR_INTERRUPTS();
    DdlMessage message;
    message.sequence = slot().sequence();
    if (message.sequence == done) {
      wait_for_message(seen, idle_since);
      continue;
    }
    if (!slot().read(message.sequence, &message.header)) {
      end_without_pool();
      continue;
    }
    if (!message.header.to.has(coherence::NodeId{ddl_node()}) || strcmp(message.header.database, self->database) != 0) {
      pass_over(message);
      done = message.sequence;
      continue;
    }
    if (taking.ddl_transaction == 0 && kept_out(self->database)) proc_exit(0);  // the launcher answers
    if (take_part(message)) deal_with(message);
    done = slot().acknowledged();
    idle_since = monotonic_us();
  }
}

void catch_up() {
  MemoryContext context = CurrentMemoryContext;
  PG_TRY();
  { apply_log(self->database, self->until); }
  PG_CATCH();
  {
    MemoryContextSwitchTo(context);
    const char* why = CopyErrorData()->message;
    strlcpy(self->error, why != nullptr ? why : "?", sizeof self->error);
    note_ddl_error(self->database, why);
    PG_RE_THROW();
  }
  PG_END_TRY();
}

void forget_me(int, Datum) {
  if (attends) ddl_attend(self->slot, false);
  LWLockAcquire(ddl_node_state().lock, LW_EXCLUSIVE);
  self->busy = 0;
  self->engaged = false;
  self->holds = 0;
  self->pid = 0;
  LWLockRelease(ddl_node_state().lock);
  if (attends) ddl_wake_node(ddl_node());  // a message may have woken us, and not the launcher
}

void start(uint64_t argument) {
  self = &ddl_node_state().workers[uint32_t(argument)];
  LWLockAcquire(ddl_node_state().lock, LW_EXCLUSIVE);
  const bool wanted = self->order == uint32_t(argument >> 32);
  if (wanted) self->pid = MyProcPid;
  LWLockRelease(ddl_node_state().lock);
  if (!wanted) proc_exit(0);
  before_shmem_exit(forget_me, 0);
  pqsignal(SIGINT, on_cancel);
  pqsignal(SIGUSR2, on_coordinator_stops);
  pqsignal(SIGTERM, on_terminate);
  BackgroundWorkerUnblockSignals();
  run_no_user_code();
  BackgroundWorkerInitializeConnection(*self->home != '\0' ? self->home : self->database, nullptr,
                                       BGWORKER_BYPASS_ALLOWCONN);
  take_worker_settings();
  message_context = AllocSetContextCreate(TopMemoryContext, "gcl ddl message", ALLOCSET_DEFAULT_SIZES);
}

}  // namespace
}  // namespace gcl

void gcl_ddl_apply_main(Datum argument) {
  using namespace gcl;
  gcl::start(DatumGetUInt64(argument));
  if (self->catch_up_only) be_impatient();
  gcl::catch_up();
  if (self->catch_up_only) {
    self->caught_up = true;
    proc_exit(0);
  }
  serve();
}
