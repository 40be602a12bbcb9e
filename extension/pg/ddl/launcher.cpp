// The DDL launcher: one per primary.  Catches up from the log and joins; then watches the mailbox: passes news on,
// starts and restarts apply workers, answers for one that cannot be started, and stops one whose author no longer
// waits.
#include "extension/pg/ddl/data_life.hpp"
#include "extension/pg/ddl/ddl_catch_up.hpp"
#include "extension/pg/ddl/ddl_exchange.hpp"
#include "extension/pg/ddl/ddl_news.hpp"
#include "extension/pg/ddl/ddl_node_state.hpp"
#include "extension/pg/ddl/ddl_port.hpp"
#include "extension/pg/ddl/ddl_position.hpp"
#include "extension/pg/ddl/worker_settings.hpp"

extern "C" {
#include "access/heapam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/tableam.h"
#include "catalog/pg_database.h"
#include "nodes/value.h"
#include "pgstat.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "storage/lwlock.h"
#include "storage/proc.h"
#include "storage/procarray.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

PGDLLEXPORT void gcl_ddl_launcher_main(Datum);
}

#include <csignal>
#include <utility>

namespace gcl {
namespace {

constexpr long kLookMs = 1000;  // a fence rings no bell
constexpr long kRetryMs = 2000;
constexpr int kRetryFactor = 10;  // an attempt has the DDL lock: not again before this many times as long

TimestampTz retry_at = 0;

BackgroundWorkerHandle* handles[kApplyWorkersMax];  // null: not started by this process

DdlWorker* workers() { return ddl_node_state().workers; }

// P6.  Sessions that are left go on using tables; a new one is refused, or has been counted.
bool may_leave() {
  DdlNodeState& state = ddl_node_state();
  if (!state.member) return true;
  if (ddl_sessions_left()) return false;
  const bool served = state.serving;
  set_serving(false);
  pg_memory_barrier();  // pairs with here(), which counts itself and then looks
  if (!ddl_sessions_left()) return true;
  set_serving(served);
  return false;
}

// The bell is looked at before whatever is waited for.
void sleep_from(uint32_t seen, long ms) {
  sleep_on_bell(seen, uint32_t(ms));
  CHECK_FOR_INTERRUPTS();
}

void stop_if_asked() {
  if (ShutdownRequestPending && may_leave()) proc_exit(1);
}

void sleep_ms(long ms) {
  (void)WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, ms, PG_WAIT_EXTENSION);
  ResetLatch(MyLatch);
  CHECK_FOR_INTERRUPTS();
}

// A former launcher's is one that has come up; who comes later finds that its order is not the last.
bool runs(int slot) {
  if (!handles[slot]) return workers()[slot].pid != 0;
  pid_t pid;
  const BgwHandleStatus status = GetBackgroundWorkerPid(handles[slot], &pid);
  return status == BGWH_STARTED || status == BGWH_NOT_YET_STARTED;
}

int slot_of(const char* database) {
  for (int i = 0; i < kApplyWorkersMax; ++i)
    if (runs(i) && strcmp(workers()[i].database, database) == 0) return i;
  return -1;
}

// The less a worker is in the way there, the better.
int rank_as_home(const Form_pg_database form) {
  const char* name = NameStr(form->datname);
  if (form->datconnlimit == DATCONNLIMIT_INVALID_DB || strcmp(name, ddl_node_state().avoided_home) == 0) return 0;
  if (strcmp(name, "postgres") == 0) return 4;
  if (strcmp(name, "template1") == 0) return 3;
  return form->datistemplate ? 1 : 2;
}

// A plain scan, as the autovacuum launcher's: without a database no index of a catalog can be relied on.
template <class Visit>
void visit_databases(Visit visit) {
  MemoryContext caller = CurrentMemoryContext;
  StartTransactionCommand();
  (void)GetTransactionSnapshot();
  Relation catalog = table_open(DatabaseRelationId, AccessShareLock);
  TableScanDesc scan = table_beginscan_catalog(catalog, 0, nullptr);
  while (HeapTuple tuple = heap_getnext(scan, ForwardScanDirection))
    visit(reinterpret_cast<Form_pg_database>(GETSTRUCT(tuple)));
  table_endscan(scan);
  table_close(catalog, AccessShareLock);
  CommitTransactionCommand();
  MemoryContextSwitchTo(caller);
}

// Where a worker for what belongs to no database is connected to.
void find_home(char* home) {
  int best = 0;
  *home = '\0';
  visit_databases([&](const Form_pg_database form) {
    if (rank_as_home(form) <= best) return;
    best = rank_as_home(form);
    strlcpy(home, NameStr(form->datname), NAMEDATALEN);
  });
}

// -1: no slot or no room for another background worker.
int start_worker(const char* database, bool catch_up_only, uint64_t until = 0) {
  int slot = 0;
  while (slot < kApplyWorkersMax && runs(slot)) ++slot;
  if (slot == kApplyWorkersMax) return -1;
  DdlWorker& worker = workers()[slot];
  char home[NAMEDATALEN] = "";
  if (*database == '\0') find_home(home);
  LWLockAcquire(ddl_node_state().lock, LW_EXCLUSIVE);
  ++worker.order;
  strlcpy(worker.database, database, NAMEDATALEN);
  strlcpy(worker.home, home, NAMEDATALEN);
  worker.catch_up_only = catch_up_only;
  worker.caught_up = false;
  worker.error[0] = '\0';
  worker.until = until;
  const uint64_t argument = uint64_t{worker.order} << 32 | uint32_t(slot);
  LWLockRelease(ddl_node_state().lock);

  BackgroundWorker request{};
  request.bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION;
  request.bgw_start_time = BgWorkerStart_RecoveryFinished;
  request.bgw_restart_time = BGW_NEVER_RESTART;
  strlcpy(request.bgw_library_name, "gcl", BGW_MAXLEN);
  strlcpy(request.bgw_function_name, "gcl_ddl_apply_main", BGW_MAXLEN);
  snprintf(request.bgw_name, BGW_MAXLEN, "gcl ddl apply %s", *database ? database : "of roles and databases");
  strlcpy(request.bgw_type, "gcl ddl apply", BGW_MAXLEN);
  request.bgw_main_arg = UInt64GetDatum(argument);
  request.bgw_notify_pid = MyProcPid;
  if (handles[slot]) pfree(handles[slot]);
  handles[slot] = nullptr;
  // The handle outlives whatever the caller works in.
  MemoryContext caller = MemoryContextSwitchTo(TopMemoryContext);
  const bool registered = RegisterDynamicBackgroundWorker(&request, &handles[slot]);
  MemoryContextSwitchTo(caller);
  return registered ? slot : -1;
}

// Whether a worker has ended for leave_home().
bool take_moved() { return std::exchange(ddl_node_state().moved, false); }

enum class CaughtUp : uint8_t { kDone, kFailed, kFailedForAll };

// Why it failed is put into *why.
CaughtUp catch_up(const char* database, uint64_t until, const char** why) {
  // A former launcher's, or one that has nothing more to do.
  for (uint32_t seen = bell_now(); slot_of(database) >= 0; seen = bell_now()) sleep_from(seen, kHeartbeatMs);
  const int slot = start_worker(database, true, until);
  if (slot < 0) {
    ereport(WARNING,
            (errmsg("no background worker is free to catch up with DDL"), errhint("Raise max_worker_processes.")));
    *why = "no background worker is free; raise max_worker_processes";
    return CaughtUp::kFailed;
  }
  for (uint32_t seen = bell_now(); runs(slot); seen = bell_now()) sleep_from(seen, kHeartbeatMs);
  if (take_moved()) return catch_up(database, until, why);
  const DdlWorker& worker = workers()[slot];
  if (worker.caught_up) return CaughtUp::kDone;
  ereport(WARNING, (errmsg("%s could not catch up with the DDL of other primaries",
                           *database ? psprintf("database \"%s\"", database) : "roles and databases")));
  *why = worker.error[0] != '\0' ? worker.error : "its worker could not be started; see the server's log";
  return *database ? CaughtUp::kFailed : CaughtUp::kFailedForAll;
}

// A database that was dropped, or that nobody has made here yet, is not waited for: its log is applied by the first
// worker that is started for it.
Oid find_database(const char* database) {
  Oid found = InvalidOid;
  visit_databases([&](const Form_pg_database form) {
    if (strcmp(NameStr(form->datname), database) == 0) found = form->oid;
  });
  return found;
}

// P6.  A database that fails is kept out, and no more of its steps are taken.
CaughtUp take_step(const DdlStep* step, Oid database, List** failed) {
  const char* why = nullptr;
  const CaughtUp done = catch_up(step->database, step->until, &why);
  if (done == CaughtUp::kDone && step->until == 0) let_in(step->database);
  if (done != CaughtUp::kFailed) return done;
  *failed = lappend(*failed, makeString(pstrdup(step->database)));
  return keep_out(database, step->database, why) ? done : CaughtUp::kFailedForAll;
}

bool is_needed(const DdlStep* step, Oid database, const List* failed, bool only_kept_out) {
  if (only_kept_out && !kept_out(step->database)) return false;
  if (list_member(failed, makeString(pstrdup(step->database)))) return false;
  return step->until == 0 || load_position(database).applied < step->until;
}

// False: what failed is not one database's own.  `only_kept_out`: the others are as they should be.
bool catch_up_all(bool only_kept_out) {
  MemoryContext context = AllocSetContextCreate(TopMemoryContext, "gcl ddl launcher", ALLOCSET_DEFAULT_SIZES);
  MemoryContext caller = MemoryContextSwitchTo(context);
  CaughtUp done = CaughtUp::kDone;
  ListCell* cell;
  List *steps = steps_to_catch_up(), *failed = NIL;
  foreach (cell, steps) {
    const auto* step = static_cast<DdlStep*>(lfirst(cell));
    const bool of_cluster = *step->database == '\0';
    const Oid database = of_cluster ? InvalidOid : find_database(step->database);
    MemoryContextSwitchTo(context);
    const bool gone = !of_cluster && !OidIsValid(database);
    if (gone) let_in(step->database);
    if (gone || !is_needed(step, database, failed, only_kept_out)) continue;
    done = take_step(step, database, &failed);
    MemoryContextSwitchTo(context);
    if (done == CaughtUp::kFailedForAll) break;
  }
  MemoryContextSwitchTo(caller);
  MemoryContextDelete(context);
  return done != CaughtUp::kFailedForAll;
}

// No DDL anywhere while we catch up and join.
void lock_cluster() {
  for (;;) {
    const uint32_t seen = bell_now();
    if (ddl_channel().try_lock(ddl_me(), uint64_t(GetCurrentTimestamp()))) return;
    const engine::DdlHolder holder = ddl_channel().holder();
    // A holder of an earlier life of this server.
    if (!ddl_node_state().started && holder.held() && holder.node().value == ddl_node()) {
      ddl_channel().unlock(holder);
      ddl_ring_others();
      continue;
    }
    sleep_from(seen, kHeartbeatMs);
    stop_if_asked();
  }
}

void unlock_cluster() {
  ddl_channel().unlock(ddl_me());
  ddl_ring_others();
  tell_news();
}

// P31.  Its own tables are served; nobody uses the pool's.
[[noreturn]] void stay_out() {
  DdlNodeState& state = ddl_node_state();
  state.started = true;
  state.failing = true;
  note_ddl_error("", state.refusal);
  PG_TRY();
  { raise_refusal(); }
  PG_CATCH();
  {
    EmitErrorReport();
    FlushErrorState();
  }
  PG_END_TRY();
  for (;;) {
    sleep_ms(kRetryMs);
    stop_if_asked();
    if (ddl_pool_fenced()) proc_exit(0);
  }
}

// Others may have been posting to a former life of ours; D3 of the channel wants the newest message dealt with.
void join() {
  DdlNodeState& state = ddl_node_state();
  for (;;) {
    lock_cluster();
    const bool ready = catch_up_all(false);
    if (ready) ddl_channel().join(uint64_t(GetCurrentTimestamp()) | 1);
    state.member = ready;
    unlock_cluster();
    state.started = true;
    state.failing = !ready;
    set_serving(ready);
    if (ready) return;
    sleep_ms(kRetryMs);
    stop_if_asked();
  }
}

// A former launcher ended, and we are a member still.  Those of its workers that are not up yet are not to come.
void take_over() {
  LWLockAcquire(ddl_node_state().lock, LW_EXCLUSIVE);
  for (int slot = 0; slot < kApplyWorkersMax; ++slot) workers()[slot].order += workers()[slot].pid == 0;
  LWLockRelease(ddl_node_state().lock);
}

bool is_up_to_date() { return !ddl_node_state().behind && !any_kept_out(); }

// Under the DDL lock, if that is free: a member must answer whoever has it.
void get_up_to_date() {
  const TimestampTz began = GetCurrentTimestamp();
  if (began < retry_at || !ddl_channel().try_lock(ddl_me(), uint64_t(began))) return;
  const bool ready = catch_up_all(!ddl_node_state().behind);
  unlock_cluster();
  const TimestampTz now = GetCurrentTimestamp();
  retry_at = now + Max(kRetryMs * 1000, kRetryFactor * (now - began));
  ddl_node_state().failing = !ready;
  if (ready) ddl_node_state().behind = false;
  set_serving(ready);
}

// Who comes after us takes part in our place, unless nobody here needs that any more.
void leave(int, Datum) {
  if (ddl_pool_fenced()) return;
  const bool leaves = ShutdownRequestPending && may_leave();
  if (ddl_node_state().member && leaves) {
    ddl_channel().leave();
    ddl_node_state().member = false;
  }
  unlock_cluster();
  if (leaves) end_life();
}

void stop_if_cancelled(int slot) {
  LWLockAcquire(ddl_node_state().lock, LW_SHARED);
  DdlWorker& worker = workers()[slot];
  const uint64_t busy = worker.busy, cancelled = ddl_channel().cancelled();
  if (busy && worker.pid && cancelled >= busy) {
    worker.stop = cancelled;
    kill(worker.pid, SIGUSR2);
  }
  LWLockRelease(ddl_node_state().lock);
}

void answer(uint64_t sequence, bool ok, std::string_view text) {
  ddl_channel().acknowledge(sequence, ok, text);
  ddl_ring_others();
}

// P6.  Nobody here uses that database's tables: it will find in the log what it is told.  One that was up to date
// before may have sessions with something under way.
void answer_for(const KeptOut* out, uint64_t sequence) {
  if (!out->served || CountDBConnections(out->oid) == 0) return answer(sequence, true, {});
  char problem[sizeof out->reason + 64];
  snprintf(problem, sizeof problem, "55000\nthe database has not caught up here: %s", out->reason);
  answer(sequence, false, problem);
}

// A message that nobody here has dealt with yet.
void see_to(uint64_t sequence, uint64_t* started_for) {
  engine::DdlHeader header;
  if (!ddl_channel().read(sequence, &header)) return;
  if (header.author == ddl_node()) return answer(sequence, true, {});
  int slot = slot_of(header.database);
  if (slot >= 0) return stop_if_cancelled(slot);
  if (ddl_channel().acknowledged() >= sequence) return;  // it answered and ended
  if (header.kind == engine::DdlKind::kAbort) return answer(sequence, true, {});
  if (const KeptOut* out = kept_out(header.database)) return answer_for(out, sequence);
  std::string_view problem;
  char text[256];
  const bool moved = take_moved();
  if (*header.database != '\0' && !OidIsValid(find_database(header.database))) {
    snprintf(text, sizeof text, "3D000\ndatabase \"%s\" does not exist%c%s", header.database, kReplyHint,
             "CREATE DATABASE makes a database on every primary. Where it was made before on some only: SET "
             "gcl.local_administration = on, and CREATE DATABASE on those that lack it.");
    problem = text;
  } else if (*started_for == sequence && !moved)  // one was started for this very message, and is gone
    problem = "58000\nno apply worker could be started; see the server's log";
  else if (start_worker(header.database, false) < 0)
    problem = "53400\nno background worker is free; raise max_worker_processes";
  *started_for = sequence;
  if (problem.empty()) return;
  if (header.kind == engine::DdlKind::kCommit) fall_behind();
  answer(sequence, false, problem);
}

[[noreturn]] void watch() {
  uint64_t started_for = 0;
  for (;;) {
    const uint32_t seen = bell_now();
    const uint64_t sequence = ddl_channel().sequence();
    const bool waiting = sequence > ddl_channel().acknowledged();
    if (waiting) see_to(sequence, &started_for);
    if (!is_up_to_date() && !waiting) get_up_to_date();
    sleep_from(seen, waiting || ShutdownRequestPending || !is_up_to_date() ? kHeartbeatMs : kLookMs);
    if (ddl_pool_fenced()) proc_exit(0);  // for good: 0 means not to be restarted
    stop_if_asked();
  }
}

}  // namespace
}  // namespace gcl

void gcl_ddl_launcher_main(Datum) {
  using namespace gcl;
  watch_bell();
  BackgroundWorkerUnblockSignals();
  BackgroundWorkerInitializeConnection(nullptr, nullptr, 0);
  take_worker_settings();
  if (!ddl_pool_attached() || ddl_pool_fenced()) proc_exit(0);
  (void)ddl_channel();  // attached before, so that it is detached after leave()
  before_shmem_exit(leave, 0);
  take_over();
  if (ddl_node_state().life == 0 && (ddl_node_state().refusal[0] != '\0' || !begin_life())) stay_out();
  if (!ddl_node_state().member) join();
  watch();
}
