// The apply worker: runs other primaries' DDL in one database.  The launcher starts one when a message for its database
// arrives, or when the log must be caught up with; it ends when it has had nothing to do for a while, so that the
// database can be dropped.
#include "extension/pg/ddl/databases.hpp"
#include "extension/pg/ddl/ddl_catch_up.hpp"
#include "extension/pg/ddl/ddl_exchange.hpp"
#include "extension/pg/ddl/ddl_news.hpp"
#include "extension/pg/ddl/ddl_node_state.hpp"
#include "extension/pg/ddl/ddl_port.hpp"
#include "extension/pg/ddl/ddl_position.hpp"
#include "extension/pg/ddl/ddl_replay.hpp"
#include "extension/pg/ddl/local_drops.hpp"
#include "extension/pg/ddl/no_user_code.hpp"
#include "extension/pg/ddl/shared_relations.hpp"
#include "extension/pg/ddl/worker_settings.hpp"

extern "C" {
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

constexpr int kIdleMaxMs = 1000;

DdlWorker* self = nullptr;
MemoryContext message_context = nullptr;
DdlReplay replay;

struct Taking {         // part in an exchange
  uint64_t exchange;    // 0: none
  uint64_t begun;       // the exchange whose first message this process has seen
  bool lost;            // our transaction is gone; only the end is of interest
  bool tagged;          // we hold the DDL tag for the author
  bool prepared;        // the author may commit any moment: what we have locked stays locked until we have, too
  int depth;            // savepoints that the author is in; -1: not read yet
  StringInfoData body;  // parts so far
} taking;

// A signal may be late: what it meant to stop has ended, and the next message is not to suffer.
void on_author_stops(int number) {
  if (self->busy != 0 && self->stop >= self->busy) StatementCancelHandler(number);
}

// pg_cancel_backend().  Between two messages there is nothing to cancel.
void on_cancel(int number) {
  if (self->busy != 0) StatementCancelHandler(number);
}

void leave_exchange() {
  // An abort of the whole transaction releases session locks too.
  if (taking.tagged && !taking.lost && !replay.open()) unlock_ddl_tag();
  replay.abort();
  ddl_works_for(0, 0, 0);
  taking.exchange = 0;
  taking.lost = taking.tagged = taking.prepared = false;
  self->engaged = false;
}

// P6.  Sessions here would go on with catalogs that nobody else has.
bool must_stay() { return taking.prepared && ddl_sessions_left(); }

void enter_exchange(const DdlMessage& message) {
  if (message.header.exchange == taking.exchange) return;
  leave_exchange();
  taking.exchange = message.header.exchange;
  self->engaged = true;
  // The beginning was sent to a worker that is no more.
  taking.lost = message.header.exchange != taking.begun;
  if (taking.lost) return;
  const engine::DdlHolder author = ddl_channel().holder();  // it posts, so it has the lock
  if (author.held()) ddl_works_for(taking.exchange, author.node().value, author.pid());
  replay.begin();
  lock_ddl_tag();
  taking.tagged = true;
}

[[noreturn]] void raise_lost() {
  ereport(ERROR, (errcode(ERRCODE_IN_FAILED_SQL_TRANSACTION), errmsg("the transaction was rolled back here")));
  pg_unreachable();
}

Oid history_of(const DdlMessage& message) {
  return message.header.of_cluster ? InvalidOid : position_of(self->database);
}

void end_committed(const DdlMessage& message) {
  if (taking.lost || !replay.open() || taking.exchange != message.header.exchange) {
    leave_exchange();
    // The log of no database is applied in its order with all others' (P20): the launcher sees to that.
    if (message.header.of_cluster && *self->database != '\0') raise_lost();
    apply_log(self->database);
    return;
  }
  replay.commit();
  settle_position(history_of(message));
  unlock_ddl_tag();
  taking.tagged = false;
  leave_exchange();
}

void do_as_told(const DdlMessage& message) {
  const DdlKind kind = message.header.kind;
  if (kind == DdlKind::kAbort) return leave_exchange();
  if (kind == DdlKind::kCommit) return end_committed(message);
  enter_exchange(message);
  if (taking.lost) raise_lost();
  MemoryContextSwitchTo(message_context);
  List* path = read_ints(&taking.body);
  List* aborted = read_ints(&taking.body);
  taking.depth = list_length(path);
  replay.go_to(path, aborted);
  MemoryContextSwitchTo(message_context);
  if (kind == DdlKind::kLock) {
    const int lock_timeout = int(pq_getmsgint(&taking.body, 4));
    replay.lock(read_record(&taking.body)->targets, lock_timeout);
  } else if (kind == DdlKind::kStatement) {
    const DdlRecord* record = read_record(&taking.body);
    if (concerns_this_connection(record)) {
      if (message.header.exchange == message.sequence) leave_home();
      ereport(ERROR,
              (errcode(ERRCODE_OBJECT_IN_USE), errmsg("the apply worker is connected to database \"%s\"", self->home),
               errhint("Run the statement in a transaction of its own.")));
    }
    check_author_knows(record);
    replay.run(record);
  } else if (kind == DdlKind::kPrepare) {
    replay.go_to(NIL, NIL);
    save_position(history_of(message), {message.header.log_number, OidIsValid(gcl_access_method())});
    taking.prepared = true;
  }
}

// SQLSTATE, line break, message, hint, as the author expects it.
void describe(const ErrorData* error, StringInfo to) {
  appendStringInfo(to, "%s\n%s", unpack_sql_state(error->sqlerrcode), error->message ? error->message : "?");
  if (error->detail) appendStringInfo(to, " (%s)", error->detail);
  if (error->hint) appendStringInfo(to, "%c%s", kReplyHint, error->hint);
}

void deal_with(const DdlMessage& message) {
  StringInfoData text;
  MemoryContextSwitchTo(message_context);
  initStringInfo(&text);
  volatile bool ok = true;
  taking.depth = -1;
  QueryCancelPending = false;
  self->busy = message.sequence;
  const bool commits = message.header.kind == DdlKind::kCommit;
  // An ERROR lets them go.  Dropping a database waits for all processes of the server, and this one is one of them.
  const bool holds = commits && !replay.drops();
  if (holds) HOLD_INTERRUPTS();
  PG_TRY();
  {
    do_as_told(message);
    if (holds) RESUME_INTERRUPTS();
    if (message.header.kind == DdlKind::kStatement)
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
    if (!replay.roll_back_innermost(taking.depth)) taking.lost = true;
    ok = false;
  }
  PG_END_TRY();
  self->busy = 0;
  QueryCancelPending = false;
  MemoryContextSwitchTo(message_context);
  // What was committed is in the log and not here.  The launcher sees to it; this process would go on behind it.
  if (!ok && commits) fall_behind();
  ddl_channel().acknowledge(message.sequence, ok, {text.data, size_t(text.len)});
  ddl_ring_others();
  tell_news();  // who wants the lock now, or not at all, waits for the tag (lock_ddl_tag_now)
  if (!ok && commits) proc_exit(1);
}

// True if this was the last part.
bool take_part(const DdlMessage& message) {
  if (message.header.exchange == message.sequence) taking.begun = message.sequence;
  if (message.header.offset == 0) {
    MemoryContextReset(message_context);
    MemoryContext caller = MemoryContextSwitchTo(message_context);
    initStringInfo(&taking.body);
    MemoryContextSwitchTo(caller);
  }
  enlargeStringInfo(&taking.body, int(message.header.bytes));
  if (!ddl_channel().read_body(message, taking.body.data + taking.body.len)) return false;
  taking.body.len += int(message.header.bytes);
  taking.body.data[taking.body.len] = 0;
  const bool complete = message.header.offset + message.header.bytes == message.header.total;
  if (!complete) {
    ddl_channel().acknowledge(message.sequence, true, {});
    ddl_ring_others();
  }
  return complete;
}

// Sleeps until there is news; ends the process when there has been nothing to do for a while.
void wait_for_message(TimestampTz idle_since) {
  if (ddl_pool_fenced()) proc_exit(1);
  long ms = kHeartbeatMs;
  if (must_stay()) return sleep_for_news_uninterrupted();
  if (taking.exchange == 0) {
    ms = kIdleMaxMs - long((GetCurrentTimestamp() - idle_since) / 1000);
    if (ms <= 0) proc_exit(0);
  }
  sleep_for_news(WaitEvent::kCount, ms);
}

[[noreturn]] void serve() {
  uint64_t done = ddl_channel().acknowledged();
  TimestampTz idle_since = GetCurrentTimestamp();
  for (;;) {
    if (!must_stay()) CHECK_FOR_INTERRUPTS();
    prepare_for_news();
    DdlMessage message;
    message.sequence = ddl_channel().sequence();
    if (message.sequence == done) {
      wait_for_message(idle_since);
      continue;
    }
    done_with_news();
    if (!ddl_channel().read(message.sequence, &message.header)) continue;
    if (message.header.author == ddl_node() || strcmp(message.header.database, self->database) != 0) {
      done = message.sequence;
      continue;
    }
    if (take_part(message)) deal_with(message);
    done = ddl_channel().acknowledged();
    idle_since = GetCurrentTimestamp();
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
  LWLockAcquire(ddl_node_state().lock, LW_EXCLUSIVE);
  self->busy = 0;
  self->engaged = false;
  self->pid = 0;
  LWLockRelease(ddl_node_state().lock);
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
  pqsignal(SIGUSR2, on_author_stops);
  pqsignal(SIGTERM, die);
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
