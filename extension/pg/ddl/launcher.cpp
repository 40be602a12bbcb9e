// The DDL launcher: one per primary.  Catches up from the log, joins, and takes over what is locked; then watches the
// slots: passes news on, starts and restarts apply workers, answers for one that cannot be started, and stops one whose
// author no longer waits.
#include "extension/pg/ddl/data_life.hpp"
#include "extension/pg/ddl/ddl_catch_up.hpp"
#include "extension/pg/ddl/ddl_describe.hpp"
#include "extension/pg/ddl/ddl_lock.hpp"
#include "extension/pg/ddl/ddl_news.hpp"
#include "extension/pg/ddl/ddl_node_state.hpp"
#include "extension/pg/ddl/ddl_outbox.hpp"
#include "extension/pg/ddl/ddl_position.hpp"
#include "extension/pg/ddl/worker_settings.hpp"

extern "C" {
#include "access/heapam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/tableam.h"
#include "catalog/pg_database.h"
#include "pgstat.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "storage/lwlock.h"
#include "storage/proc.h"
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
constexpr TimestampTz kJoinPatienceUs = 10'000'000;  // of who joins, before DDL has to wait for it

BackgroundWorkerHandle* handles[kApplyWorkersMax];  // null: not started by this process
uint32_t not_taken_over = 0;                        // slots, as bits

DdlWorker* workers() { return ddl_node_state().workers; }

// P6.  Sessions that are left go on using tables; a new one is refused, or has been counted.
bool may_leave() {
  DdlNodeState& state = ddl_node_state();
  if (!state.member) return true;
  if (ddl_sessions_left()) return false;
  const bool served = state.serving;
  state.serving = false;
  pg_memory_barrier();  // pairs with here(), which counts itself and then looks
  if (!ddl_sessions_left()) return true;
  state.serving = served;
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
bool runs(int index) {
  if (!handles[index]) return workers()[index].pid != 0;
  pid_t pid;
  const BgwHandleStatus status = GetBackgroundWorkerPid(handles[index], &pid);
  return status == BGWH_STARTED || status == BGWH_NOT_YET_STARTED;
}

// The one that serves the slot; -1: none.
int worker_of(int slot) {
  for (int i = 0; i < kApplyWorkersMax; ++i)
    if (workers()[i].slot == slot && !workers()[i].catch_up_only && runs(i)) return i;
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

// `slot` < 0: it only catches up with the log, until that entry.  -1: no room for another background worker.
int start_worker(const char* database, int slot, uint64_t until = 0) {
  int index = 0;
  while (index < kApplyWorkersMax && runs(index)) ++index;
  if (index == kApplyWorkersMax) return -1;
  DdlWorker& worker = workers()[index];
  char home[NAMEDATALEN] = "";
  if (*database == '\0') find_home(home);
  LWLockAcquire(ddl_node_state().lock, LW_EXCLUSIVE);
  ++worker.order;
  strlcpy(worker.database, database, NAMEDATALEN);
  strlcpy(worker.home, home, NAMEDATALEN);
  worker.slot = slot;
  worker.catch_up_only = slot < 0;
  worker.caught_up = false;
  worker.holds = 0;
  worker.until = until;
  const uint64_t argument = uint64_t{worker.order} << 32 | uint32_t(index);
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
  if (handles[index]) pfree(handles[index]);
  handles[index] = nullptr;
  // The handle outlives whatever the caller works in.
  MemoryContext caller = MemoryContextSwitchTo(TopMemoryContext);
  const bool registered = RegisterDynamicBackgroundWorker(&request, &handles[index]);
  MemoryContextSwitchTo(caller);
  return registered ? index : -1;
}

// Whether a worker has ended for leave_home().
bool take_moved() { return std::exchange(ddl_node_state().moved, false); }

bool catch_up(const char* database, uint64_t until) {
  const int index = start_worker(database, -1, until);
  if (index < 0) {
    ereport(WARNING,
            (errmsg("no background worker is free to catch up with DDL"), errhint("Raise max_worker_processes.")));
    return false;
  }
  for (uint32_t seen = bell_now(); runs(index); seen = bell_now()) sleep_from(seen, kHeartbeatMs);
  if (take_moved()) return catch_up(database, until);
  if (!workers()[index].caught_up)
    ereport(WARNING, (errmsg("%s could not catch up with the DDL of other primaries",
                             *database ? psprintf("database \"%s\"", database) : "roles and databases")));
  return workers()[index].caught_up;
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

bool catch_up_all() {
  MemoryContext context = AllocSetContextCreate(TopMemoryContext, "gcl ddl launcher", ALLOCSET_DEFAULT_SIZES);
  MemoryContext caller = MemoryContextSwitchTo(context);
  bool all = true;
  ListCell* cell;
  List* steps = steps_to_catch_up();
  foreach (cell, steps) {
    const auto* step = static_cast<DdlStep*>(lfirst(cell));
    const bool of_cluster = *step->database == '\0';
    const Oid database = of_cluster ? InvalidOid : find_database(step->database);
    if (!of_cluster && !OidIsValid(database)) continue;
    if (step->until != 0 && load_position(database).applied >= step->until) continue;
    all = all && catch_up(step->database, step->until);
    MemoryContextSwitchTo(context);
  }
  MemoryContextSwitchTo(caller);
  MemoryContextDelete(context);
  return all;
}

void unlock_cluster() {
  ddl_locks().unlock(engine::DdlLocks::kWholeCluster, ddl_me());
  ddl_ring_others();
  tell_news();
}

// False: DDL is under way somewhere.  `keep`: nobody new comes in before us (K2 of the channel's locks).
bool try_lock_cluster(bool keep) {
  engine::DdlHolder other;
  if (ddl_locks().try_lock(engine::DdlLocks::kWholeCluster, ddl_me(), uint64_t(GetCurrentTimestamp()), &other))
    return true;
  if (!keep) unlock_cluster();
  return false;
}

// What sessions of an earlier life of this server had: nobody else would end it.
void forget_former_life() {
  for (int lock = 0; lock <= engine::kDdlDatabasesMax; ++lock)
    if (const engine::DdlHolder holder{ddl_locks().words(lock).holder};
        holder.held() && holder.node().value == ddl_node() && holder != ddl_me())
      ddl_locks().unlock(lock, holder);
  for (int i = 0; i < ddl_channel().slots(); ++i) {
    engine::DdlSlot slot = ddl_slot(i);
    const engine::DdlHolder owner = slot.owner();
    if (!owner.held() || owner.node().value != ddl_node()) continue;
    engine::DdlHeader end{};
    const uint64_t sequence = slot.sequence();
    if (sequence != 0 && slot.read(sequence, &end) && end.author == ddl_node()) {
      end.kind = engine::DdlKind::kAbort;
      end.bytes = end.total = end.offset = 0;
      end.to = ddl_channel().members().nodes;
      slot.cancel(sequence);
      (void)slot.post(end, nullptr);
    }
    slot.give_up(owner);
  }
  ddl_ring_others();
}

// No DDL anywhere while we catch up and join.
void lock_cluster() {
  if (!ddl_node_state().started) forget_former_life();
  const TimestampTz began = GetCurrentTimestamp();
  for (;;) {
    const uint32_t seen = bell_now();
    if (try_lock_cluster(GetCurrentTimestamp() - began > kJoinPatienceUs)) return;
    sleep_from(seen, kHeartbeatMs);
    stop_if_asked();
  }
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
    forget_what_is_up_to_date();
    const bool ready = catch_up_all();
    if (ready) ddl_channel().join(uint64_t(GetCurrentTimestamp()) | 1);
    state.member = ready;
    unlock_cluster();
    state.started = true;
    state.failing = !ready;
    if (ready) return;
    sleep_ms(kRetryMs);
    stop_if_asked();
  }
}

// J1 of the channel.  True if nothing is locked through the slot that is not locked here, too.
bool has_taken_over(int slot) {
  engine::DdlGranted granted;
  if (!ddl_slot(slot).read_granted(&granted)) return false;
  if (granted.exchange == 0 || granted.count == 0 || granted.header.author == ddl_node()) return true;
  if (!OidIsValid(find_database(granted.header.database))) return true;
  const int index = worker_of(slot);
  if (index < 0) (void)start_worker(granted.header.database, slot);
  return index >= 0 && workers()[index].holds == granted.exchange;
}

// A member that does not serve yet: what others have locked comes first.
void take_over_locks() {
  for (int slot = 0; slot < ddl_channel().slots(); ++slot)
    if (not_taken_over >> slot & 1 && has_taken_over(slot)) not_taken_over &= ~(1u << slot);
  if (not_taken_over == 0 && !ddl_node_state().behind) ddl_node_state().serving = true;
}

// A former launcher ended, and we are a member still.  Those of its workers that are not up yet are not to come.
void take_over() {
  LWLockAcquire(ddl_node_state().lock, LW_EXCLUSIVE);
  for (int i = 0; i < kApplyWorkersMax; ++i) workers()[i].order += workers()[i].pid == 0;
  LWLockRelease(ddl_node_state().lock);
}

// Under the DDL lock, if that is free: a member must answer whoever has it.
void get_up_to_date() {
  if (!try_lock_cluster(false)) return;
  const bool ready = catch_up_all();
  unlock_cluster();
  ddl_node_state().failing = !ready;
  if (!ready) return sleep_ms(kRetryMs);
  ddl_node_state().behind = false;
  ddl_node_state().serving = not_taken_over == 0;
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

void stop_if_cancelled(int index, int slot) {
  LWLockAcquire(ddl_node_state().lock, LW_SHARED);
  DdlWorker& worker = workers()[index];
  const uint64_t busy = worker.busy, cancelled = ddl_slot(slot).cancelled();
  if (busy && worker.pid && cancelled >= busy) {
    worker.stop = cancelled;
    kill(worker.pid, SIGUSR2);
  }
  LWLockRelease(ddl_node_state().lock);
}

// A message that nobody here has dealt with yet.
void see_to(int slot, uint64_t sequence, uint64_t* started_for) {
  engine::DdlHeader header;
  if (!ddl_slot(slot).read(sequence, &header)) return;
  const auto answer = [=](bool ok, std::string_view text) {
    ddl_slot(slot).acknowledge(sequence, ok, text);
    ddl_ring(header.author);
  };
  if (!header.to.has(coherence::NodeId{ddl_node()})) return ddl_slot(slot).acknowledge(sequence, true, {});
  const int index = worker_of(slot);
  if (index >= 0) return stop_if_cancelled(index, slot);
  if (ddl_slot(slot).acknowledged() >= sequence) return;  // it answered and ended
  if (header.kind == engine::DdlKind::kAbort) return answer(true, {});
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
  else if (start_worker(header.database, slot) < 0)
    problem = "53400\nno background worker is free; raise max_worker_processes";
  *started_for = sequence;
  if (problem.empty()) return;
  if (header.kind == engine::DdlKind::kCommit) fall_behind();
  answer(false, problem);
}

struct Unanswered {
  uint64_t sequence;
  TimestampTz since;
  bool logged;
};

// Once for each message: what has no answer from here, and who waits for it.
void log_if_late(int slot, uint64_t sequence, Unanswered* late) {
  const TimestampTz now = GetCurrentTimestamp();
  if (late->sequence != sequence) *late = {sequence, now, false};
  if (late->logged || now - late->since < kDdlPatienceUs) return;
  engine::DdlMessage message{.sequence = sequence};
  if (!ddl_slot(slot).read(sequence, &message.header)) return;
  MemoryContext context = AllocSetContextCreate(TopMemoryContext, "gcl ddl late", ALLOCSET_DEFAULT_SIZES);
  MemoryContext caller = MemoryContextSwitchTo(context);
  const engine::DdlHeader& header = message.header;
  const char* text = ddl_text_of(ddl_slot(slot), message);
  ereport(LOG, (errmsg("process %u of primary %d has waited for %ld s for this primary's answer (%s, database \"%s\")",
                       header.pid, header.author, long((now - late->since) / 1000000), ddl_kind_name(header.kind),
                       header.database),
                text ? errdetail_internal("%s", text) : 0));
  late->logged = true;
  MemoryContextSwitchTo(caller);
  MemoryContextDelete(context);
}

// True if a message waits for an answer.
bool look_at_slots() {
  static uint64_t started_for[engine::kDdlSlotsMax];
  static Unanswered late[engine::kDdlSlotsMax];
  uint64_t sequences[engine::kDdlSlotsMax], dealt_with[engine::kDdlSlotsMax];
  ddl_channel().look_at_all(sequences, dealt_with);
  bool waiting = false;
  for (int slot = 0; slot < ddl_channel().slots(); ++slot) {
    if (sequences[slot] <= dealt_with[slot]) continue;
    see_to(slot, sequences[slot], &started_for[slot]);
    log_if_late(slot, sequences[slot], &late[slot]);
    waiting = true;
  }
  return waiting;
}

[[noreturn]] void watch() {
  DdlNodeState& state = ddl_node_state();
  if (!state.serving) not_taken_over = (uint32_t{1} << ddl_channel().slots()) - 1;
  for (;;) {
    const uint32_t seen = bell_now();
    const bool waiting = look_at_slots();
    if (not_taken_over != 0) take_over_locks();
    if (state.behind && !waiting) get_up_to_date();
    const bool soon = waiting || ShutdownRequestPending || state.behind || not_taken_over != 0;
    sleep_from(seen, soon ? kHeartbeatMs : kLookMs);
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
