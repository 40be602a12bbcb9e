#include "extension/pg/ddl/peer/joining.hpp"
#include "extension/pg/boundary/monotonic.hpp"

#include "extension/pg/ddl/base/ddl_port.hpp"
#include "extension/pg/ddl/coordinate/ddl_lock.hpp"
#include "extension/pg/ddl/node/database_list.hpp"
#include "extension/pg/ddl/node/ddl_node_state.hpp"
#include "extension/pg/ddl/node/ddl_position.hpp"
#include "extension/pg/ddl/node/ddl_wakeup.hpp"
#include "extension/pg/ddl/node/worker_starts.hpp"
#include "extension/pg/ddl/peer/ddl_catch_up.hpp"
#include "extension/pg/ddl/peer/dead_primaries.hpp"
#include "extension/pg/runtime/server_stop.hpp"

extern "C" {
#include "nodes/value.h"
#include "pgstat.h"
#include "postmaster/interrupt.h"
#include "storage/ipc.h"
#include "utils/timestamp.h"
}

namespace gcl {
namespace {

constexpr long kRetryMs = 2000;
constexpr long kOutMs = 2000;
constexpr int kRetryFactor = 10;  // an attempt has the DDL lock: not again before this many times as long
constexpr TimestampTz kJoinPatienceUs = 10'000'000;  // of a primary that joins, before DDL has to wait for it

int64_t retry_at = 0;
uint32_t not_taken_over = 0;  // slots, as bits
bool begun = false;           // to stay up to date
bool joined = false;          // what was locked when this primary joined, or this launcher came, is locked here

enum class CaughtUp : uint8_t { kDone, kFailed, kFailedForAll };

// Why it failed is put into *why.
CaughtUp catch_up(const char* database, uint64_t until, const char** why) {
  const int index = start_worker(database, -1, until);
  if (index < 0) {
    ereport(WARNING,
            (errmsg("no background worker is free to catch up with DDL"), errhint("Raise max_worker_processes.")));
    *why = "no background worker is free; raise max_worker_processes";
    return CaughtUp::kFailed;
  }
  for (uint32_t seen = wakeup_count(); runs(index); seen = wakeup_count()) sleep_from(seen, kHeartbeatMs);
  const DdlWorker& worker = ddl_node_state().workers[index];
  if (worker.moved) return catch_up(database, until, why);
  if (worker.caught_up) return CaughtUp::kDone;
  ereport(WARNING, (errmsg("%s could not catch up with the DDL of other primaries",
                           *database ? psprintf("database \"%s\"", database) : "roles and databases")));
  *why = worker.error[0] != '\0' ? worker.error : "its worker could not be started; see the server's log";
  return *database ? CaughtUp::kFailed : CaughtUp::kFailedForAll;
}

// A database that fails is kept out, and no more of its steps are taken (ddl.member-has-applied-log).
CaughtUp take_step(const DdlStep* step, Oid database, List** failed) {
  const char* why = nullptr;
  const CaughtUp done = catch_up(step->database, step->until, &why);
  if (done == CaughtUp::kDone && step->until == 0) note_caught_up(step->database);
  if (done != CaughtUp::kFailed) return done;
  *failed = lappend(*failed, makeString(pstrdup(step->database)));
  return keep_out(database, step->database, why) ? done : CaughtUp::kFailedForAll;
}

bool is_needed(const DdlStep* step, Oid database, const List* failed, bool only_kept_out) {
  if (only_kept_out && !kept_out(step->database)) return false;
  if (list_member(failed, makeString(pstrdup(step->database)))) return false;
  return step->until == 0 || load_position(database).applied < step->until;
}

// A database that was dropped, or has not been made here yet, is not waited for: its log is applied by the first worker
// that is started for it.  False: what failed is not one database's own.  `only_kept_out`: the others are as they
// should be.
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

// False: DDL is under way somewhere.  `keep`: no other process gets the lock before us
// (ddl_log.cluster-lock-keeps-out).
bool try_lock_cluster(bool keep) {
  engine::DdlHolder other;
  if (ddl_locks().try_lock(engine::DdlLocks::kWholeCluster, ddl_me(), uint64_t(GetCurrentTimestamp()), &other))
    return true;
  if (!keep) unlock_cluster();
  return false;
}

// No DDL anywhere while we catch up and join.
void lock_cluster() {
  const int64_t began = monotonic_us();
  for (;;) {
    const uint32_t seen = wakeup_count();
    if (!ddl_node_state().started) end_former_life();
    if (try_lock_cluster(monotonic_us() - began > kJoinPatienceUs)) return;
    // ddl_log.want-then-retry; what came before this look has its heartbeat
    ddl_locks().want(engine::DdlWanted::of(engine::DdlLocks::kWholeCluster));
    sleep_from(seen, kHeartbeatMs);
    stop_if_asked();
  }
}

uint64_t new_incarnation() { return uint64_t(GetCurrentTimestamp()) | 1; }

void take_over_all_slots() { not_taken_over = (uint32_t{1} << ddl_channel().slots()) - 1; }

// Sessions of this database wait for what others have locked in it.
bool awaits_locks(const char* database) { return !ddl_node_state().serving || is_caught_up(database); }

// ddl_log.joiner-takes-locks.  True if nothing is locked through the slot that is not locked here, too.
bool has_taken_over(int slot) {
  engine::DdlGranted granted;
  if (!ddl_slot(slot).read_granted(&granted)) return false;
  if (granted.transaction == 0 || granted.count == 0 || granted.header.coordinator == ddl_node()) return true;
  const char* database = granted.header.database;
  if (!awaits_locks(database) || kept_out(database) || !OidIsValid(find_database(database))) return true;
  const int index = worker_of(slot);
  if (index < 0) (void)start_worker(database, slot);
  return index >= 0 && ddl_node_state().workers[index].holds == granted.transaction;
}

// Takes over the locks of others first; sessions come after that.
void take_over_locks() {
  for (int slot = 0; slot < ddl_channel().slots(); ++slot)
    if (not_taken_over >> slot & 1 && has_taken_over(slot)) not_taken_over &= ~(1u << slot);
  if (not_taken_over != 0) return;
  joined = true;
  let_in_caught_up();
  set_serving(!ddl_node_state().behind);
}

// Under the DDL lock, if that is free: a member must answer the session that has it.
void get_up_to_date() {
  DdlNodeState& state = ddl_node_state();
  const int64_t began = monotonic_us();
  const bool has_failed = state.failing || !state.behind;
  if ((has_failed && began < retry_at) || !try_lock_cluster(false)) return;
  forget_what_is_up_to_date();
  const bool ready = catch_up_all(!state.behind);
  state.failing = !ready;
  if (ready) state.behind = false;
  if (any_caught_up()) {
    // A session that has locked something in a database that was kept out sees that this primary is to be asked again.
    ddl_channel().rejoin(new_incarnation());
    take_over_all_slots();
  }
  if (!ready || joined) set_serving(ready);
  unlock_cluster();
  const int64_t now = monotonic_us();
  retry_at = now + Max(kRetryMs * 1000, kRetryFactor * (now - began));
}

// The log waits for that primary from its beginning on.  False: that is gone.  (ddl_log.known-node-first)
bool make_known(coherence::NodeId node) {
  if (ddl_channel().applied(node).known()) return true;
  ddl_channel().set_applied(node, engine::DdlApplied::upto(0));
  if (ddl_log_extent().removed == 0) return true;
  ddl_channel().set_applied(node, engine::DdlApplied{});
  return false;
}

// Makes the primaries known that are to come and have never been here (ddl.log-has-end).
void announce_others() {
  for (uint8_t n = 1; n <= ddl_announced_primaries() && n < ddl_channel().nodes_max(); ++n)
    if (const coherence::NodeId node{n}; ddl_channel().life(node) == 0 && !make_known(node)) return;
}

// False: the log has not what this primary lacks, or is not to wait for it (ddl.log-has-end).  REQUIRES: the whole
// cluster's DDL lock.
bool is_known() {
  announce_others();
  const bool forgotten = ddl_channel().life(ddl_node_id()) != ddl_node_state().life;
  if (!forgotten && make_known(ddl_node_id())) return true;
  ddl_node_state().refused = forgotten ? Refused::kForgotten : Refused::kTooLate;
  return false;
}

}  // namespace

void unlock_cluster() {
  ddl_locks().unlock(engine::DdlLocks::kWholeCluster, ddl_me());
  ddl_wake_others();
  wake_waiters();
}

// Others may have been posting to a former life of ours; the newest message has to be dealt with
// (ddl_log.slot-given-up-early).
void join() {
  DdlNodeState& state = ddl_node_state();
  for (;;) {
    lock_cluster();
    if (!is_known()) stay_out();
    forget_what_is_up_to_date();
    const bool ready = catch_up_all(false);
    if (ready) ddl_channel().join(new_incarnation());
    state.member = ready;
    unlock_cluster();
    state.started = true;
    state.failing = !ready;
    if (ready) return;
    sleep_ms(kRetryMs);
    stop_if_asked();
  }
}

bool has_to_catch_up() { return ddl_node_state().behind || any_kept_out() || not_taken_over != 0; }

void stay_up_to_date(bool waiting) {
  DdlNodeState& state = ddl_node_state();
  if (!begun) {
    begun = true;
    joined = state.serving;
    if (!joined || any_caught_up()) take_over_all_slots();
  }
  if (not_taken_over != 0) take_over_locks();
  if (!waiting && (state.behind || any_kept_out())) get_up_to_date();
}

// Sessions that are left go on using tables; a new one is refused, or has been counted (ddl.member-has-applied-log).
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

// Its own tables are served, the pool's are not.
void stay_out() {
  if (!ddl_node_state().started) end_former_life();
  unlock_cluster();
  DdlNodeState& state = ddl_node_state();
  state.started = true;
  state.failing = true;
  MemoryContext context = CurrentMemoryContext;
  PG_TRY();
  { raise_refusal(); }
  PG_CATCH();
  {
    MemoryContextSwitchTo(context);
    note_ddl_error("", CopyErrorData()->message);
    EmitErrorReport();
    FlushErrorState();
  }
  PG_END_TRY();
  for (;;) {
    sleep_ms(kOutMs);
    stop_if_asked();
    if (ddl_pool_fenced()) stand_by_fenced();
  }
}

void stand_by_fenced() {
  while (!server_stops()) {
    (void)WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, kOutMs, PG_WAIT_EXTENSION);
    ResetLatch(MyLatch);
    CHECK_FOR_INTERRUPTS();
  }
  proc_exit(0);
}

// Also while a database catches up, or waits to: it may be for what a dead primary has left.
void sleep_from(uint32_t seen, long ms) {
  tend_dead_primaries();
  sleep_on_wakeup_event(seen, uint32_t(ms));
  if (ddl_postmaster_gone()) proc_exit(1);  // it may be the last process of its server
  CHECK_FOR_INTERRUPTS();
}

void sleep_ms(long ms) {
  tend_dead_primaries();
  (void)WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, ms, PG_WAIT_EXTENSION);
  ResetLatch(MyLatch);
  CHECK_FOR_INTERRUPTS();
}

void stop_if_asked() {
  if (ShutdownRequestPending && !is_heir() && may_leave()) proc_exit(1);
}

}  // namespace gcl
