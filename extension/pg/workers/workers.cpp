#include "extension/pg/workers/workers.hpp"

#include <initializer_list>

#include "bufmgr/base/wakeup.hpp"
#include "extension/engine/reclaim/reclaimer.hpp"
#include "extension/engine/sweep/sweeper.hpp"
#include "extension/pg/boundary/monotonic.hpp"
#include "extension/pg/ddl/base/ddl_port.hpp"
#include "extension/pg/ddl/node/data_life.hpp"
#include "extension/pg/runtime/backend.hpp"
#include "extension/pg/runtime/commit_hold.hpp"
#include "extension/pg/runtime/idle_sessions.hpp"
#include "extension/pg/runtime/kept_wal.hpp"
#include "extension/pg/runtime/node_events.hpp"
#include "extension/pg/runtime/orphan.hpp"
#include "extension/pg/runtime/raise.hpp"
#include "extension/pg/runtime/server_stop.hpp"
#include "extension/pg/runtime/settings.hpp"
#include "extension/pg/runtime/waiter.hpp"
#include "extension/pg/txn/deadlock_watch.hpp"
#include "extension/pg/txn/server_commits.hpp"
#include "extension/pg/workers/checkpointer.hpp"
#include "extension/pg/workers/repair.hpp"

extern "C" {
#include "access/xlog.h"
#include "libpq/pqsignal.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "storage/pmsignal.h"
#include "storage/procsignal.h"
#include "utils/ps_status.h"
PGDLLEXPORT void gcl_message_worker_main(Datum);
PGDLLEXPORT void gcl_provider_main(Datum);
PGDLLEXPORT void gcl_flusher_main(Datum);
PGDLLEXPORT void gcl_member_main(Datum);
PGDLLEXPORT void gcl_statistics_main(Datum);
PGDLLEXPORT void gcl_reclaim_main(Datum);
PGDLLEXPORT void gcl_repair_main(Datum);
PGDLLEXPORT void gcl_checkpointer_main(Datum);
}

namespace gcl {

namespace {

constexpr int kRestartSeconds = 1;
Sampling sampling{};

NodeState& node() { return *node_state(); }

void forget_worker(int, Datum which) { node().worker_proc[DatumGetInt32(which)].store(-1); }

// Signals, a connection, and a place in shared memory to be woken at.
bool begin(Worker which) {
  pqsignal(SIGTERM, SignalHandlerForShutdownRequest);
  pqsignal(SIGHUP, SignalHandlerForConfigReload);
  BackgroundWorkerUnblockSignals();
  BackgroundWorkerInitializeConnection(nullptr, nullptr, 0);
  if (node_pool() == nullptr || node_state() == nullptr) return false;
  end_with_postmaster();
  before_shmem_exit(forget_worker, Int32GetDatum(int(which)));
  node().worker_proc[int(which)].store(MyProc->pgprocno, std::memory_order_release);  // pairs with wake_worker()
  return true;
}

// The postmaster is gone: the server did not leave in order, and no other node is to wait for it.
void check_postmaster() {
  if (PostmasterIsAlive()) return;
  (void)postmaster_gone();
  proc_exit(1);
}

void tick_process() {
  ResetLatch(MyLatch);
  CHECK_FOR_INTERRUPTS();
  if (ConfigReloadPending) {
    ConfigReloadPending = false;
    ProcessConfigFile(PGC_SIGHUP);
  }
  check_postmaster();
}

// Whether this worker may stop: the server is going down, no backend needs it, and none will
// (runtime.workers-outlive-backends).
bool may_stop() { return server_stops() && node().backends.close(); }

// The same of one that others of the workers need (workers.helpers-end-later).
bool may_stop_behind(std::initializer_list<Worker> others) {
  if (!may_stop()) return false;
  for (const Worker other : others)
    if (node().worker_proc[int(other)].load(std::memory_order_acquire) >= 0) return false;  // pairs with begin()
  return true;
}

// A worker that ended by itself would not be started again with the others, after a crash of the server.
[[noreturn]] void idle_while_fenced() {
  while (!server_stops()) {
    (void)WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, 10000, PG_WAIT_EXTENSION);
    tick_process();
  }
  proc_exit(0);
}

void register_worker(const char* name, const char* function) {
  BackgroundWorker worker{};
  worker.bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION;
  worker.bgw_start_time = BgWorkerStart_RecoveryFinished;
  worker.bgw_restart_time = kRestartSeconds;
  snprintf(worker.bgw_name, BGW_MAXLEN, "gcl %s", name);
  snprintf(worker.bgw_type, BGW_MAXLEN, "gcl %s", name);
  snprintf(worker.bgw_library_name, BGW_MAXLEN, "gcl");
  snprintf(worker.bgw_function_name, BGW_MAXLEN, "%s", function);
  RegisterBackgroundWorker(&worker);
}

// The longest sleep of the two that events wake (workers.events-wake).  The last backend's end wakes no worker.
uint32_t idle_ms() { return server_stops() ? 100 : 300; }  // the message worker looks for deaths before

// --- message worker --------------------------------------------------------------------------------------------------

bool alone() { return node().workers.now() == 1 /* ours */ && node().worker_proc[int(Worker::kFlusher)].load() < 0; }

// Repair has ended by now (node.leaver-records).  What fails is tried again as seldom as it does.
class RecordsDeaths final : public coherence::DeathRecorder {
 public:
  void record() noexcept override {
    if (monotonic_us() < due_us_) return;
    if (const long again = dead_.record(); again > 0) due_us_ = monotonic_us() + again * 1000;
  }

 private:
  DeadPrimaries dead_;
  int64_t due_us_ = 0;
};

void leave_pool() {
  flush_log();
  bool last = false;
  coherence::Problem problem;
  RecordsDeaths deaths;
  auto left = node_pool()->leave(session(), &last, &problem, &deaths);
  if (!left.ok() && last && left.error() != coherence::Errc::kCorrupt)
    ereport(
        WARNING, errmsg("gcl: left the pool as its last node, and could not save it: %s", problem.text),
        errdetail("The pool is whole in memory as long as this machine is up."),
        errhint("Make room for \"%s\"; then run gclctl stop again, or start and stop a primary.", settings.pool_file));
  else if (!left.ok())
    ereport(LOG, errmsg("gcl: could not leave the pool in order: %s", problem.text));
  else
    ereport(LOG, errmsg(last ? "gcl: left the pool as its last node; it was saved" : "gcl: left the pool"));
}

// The member worker's event, for processes of this node.
std::atomic<uint32_t>& member_event() { return node_pool()->coherence_node().event(kMemberEvent).count; }

void count_for_member() { member_event().fetch_add(1, std::memory_order_seq_cst); }

// Of primaries that came, left or died the member worker is to know at once (workers.deaths-end-waits).  One that died
// may hold what is locked for DDL, or owe an answer: the launcher sees to that (ddl/peer/dead_primaries).
void tell_of_members() {
  static uint64_t told = 0;
  coherence::Node& self = node_pool()->coherence_node();
  if (const uint64_t view = self.view(); std::exchange(told, view) == view) return;
  self.wake(self.id(), kMemberEvent);
  if (self.repairable().empty() && self.unrecorded().empty()) return;
  ddl_wake_node(ddl_node());
  wake_worker(Worker::kRepair);
}

void message_worker() {
  while (!(may_stop() && alone())) {
    auto served = node_pool()->serve(session(), idle_ms());
    tell_of_members();
    if (!served.ok() && served.error() == coherence::Errc::kFenced) {
      if (node_pool()->coherence_node().is_cut_off())
        end_as_crashed("this primary was cut off from its pool, and joins it again");
      ereport(LOG, errmsg("gcl: the pool is fenced: %s", fence_reason()));
      count_for_member();
      bufmgr::signal_wakeup(member_event());
      detach_session();
      idle_while_fenced();
    }
    tick_process();
  }
  leave_pool();
}

// --- provider --------------------------------------------------------------------------------------------------------

void provider() {
  while (!may_stop_behind({Worker::kMember, Worker::kStatistics, Worker::kReclaim, Worker::kRepair})) {
    if (!node_pool()->run_provider_once(session())) node_pool()->wait_for_provider_work(idle_ms());
    tick_process();
    if (node_pool()->fenced()) {
      detach_session();
      idle_while_fenced();
    }
  }
}

// --- flusher ---------------------------------------------------------------------------------------------------------

void flusher() {
  while (!may_stop() || node().workers.now() > 1) {
    const XLogRecPtr wanted = node().flush_wanted.load(std::memory_order_acquire);  // pairs with request_flush()
    if (wanted > GetFlushRecPtr(nullptr)) {
      XLogFlush(wanted);
      node_pool()->coherence_node().ring();
      continue;
    }
    const long held = end_hold_in_time();
    const long often = server_stops() ? 100 : 1000;  // the last backend's end wakes no worker
    const long ms = held < 0 ? often : Min(held, often);
    (void)WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, ms, PG_WAIT_EXTENSION);
    tick_process();
  }
  flush_log();  // here, where the message worker still serves: it finds nothing left to flush before it leaves
}

// --- member ----------------------------------------------------------------------------------------------------------

// In-doubt transactions are decided by the commit log of the data directory that they were made with, and no other.
CommitLog commit_log_of(DataDirectory directory) {
  switch (directory) {
    case DataDirectory::kOwn:
      return CommitLog::kOwn;
    case DataDirectory::kCopy:
      return CommitLog::kLost;
    case DataDirectory::kAnother:
      break;
  }
  return CommitLog::kForeign;
}

void join_transactions() {
  if (node().ready.load(std::memory_order_acquire)) return;  // a restarted worker
  decide_doubts(commit_log_of(data_directory()));            // journal.doubts-before-join
  keep_wal();                                                // runtime.wal-kept-since-save
  until_ok(nullptr, [] { return txns().join(); });
  node().ready.store(true, std::memory_order_release);  // pairs with wait_until_ready()
}

// workers.member-sleeps
constexpr long kPaceMs = 20, kSleepMaxMs = 1000, kTagRetryMs = 50;
constexpr int kQuietRounds = 5;

void on_sigterm_of_member(int number) {
  SignalHandlerForShutdownRequest(number);
  count_for_member();
}

void on_sighup_of_member(int number) {
  SignalHandlerForConfigReload(number);
  count_for_member();
}

void on_sigusr1_of_member(int number) {  // DROP DATABASE waits for every process, among others
  procsignal_sigusr1_handler(number);
  count_for_member();
}

// How long the member worker sleeps if nothing wakes it, and no wait is due; 0: not yet.
long member_sleeps_for(bool moved) {
  static int quiet = 0;
  if (moved || txns().roused()) quiet = 0;
  if (quiet <= kQuietRounds) ++quiet;
  if (quiet > kQuietRounds && !server_stops()) {
    const auto asleep = txns().fall_asleep();
    return asleep.ok() && *asleep ? kSleepMaxMs : 0;
  }
  (void)txns().stay_awake();
  return kPaceMs;
}

// Before the waits are looked at (workers.deaths-end-waits).  A failure is met again in the next round.
void end_dead_nodes() {
  static bool told = false;
  const auto ended = pg_entry([] { return txns().end_dead_nodes(); });
  if (ended.ok() || std::exchange(told, true)) return;
  ereport(LOG, errmsg("gcl: transactions of a primary that died could not be ended: %s",
                      coherence::errc_name(ended.error())));
}

long ms_until(TimestampTz moment) {
  const TimestampTz now = GetCurrentTimestamp();
  return moment <= now ? 1 : long(Min((moment - now) / 1000 + 1, TimestampTz{kSleepMaxMs}));
}

void member() {
  join_transactions();
  forget_held_waits();
  (void)txns().stay_awake();
  pqsignal(SIGTERM, on_sigterm_of_member);
  pqsignal(SIGHUP, on_sighup_of_member);
  pqsignal(SIGUSR1, on_sigusr1_of_member);
  auto* watch = new DeadlockWatch(txns());  // as long as the process
  sampling.begin();
  IdleSessions idle(node_holds()->sessions());
  engine::HoldGiver holds(txns(), *node_holds(), idle);
  for (;;) {
    const uint32_t seen = member_event().load(std::memory_order_seq_cst);
    tick_process();
    if (may_stop_behind({Worker::kReclaim})) break;  // which publishes bounds, too
    if (node_pool()->fenced()) {
      LockReleaseAll(USER_LOCKMETHOD, true);  // waiters look again, and learn of the fence
      detach_session();
      idle_while_fenced();
    }
    end_dead_nodes();
    const bool retry = tend_waits(txns());
    const auto given = pg_entry([&] { return holds.round(); });  // behind the waits of this node's own
    TimestampTz due = pg_entry([=] { return watch->round(); });
    ConditionVariableBroadcast(&node().answers);
    const auto moved = txns().tick();
    due = Min(due, sampling.round());
    long ms = member_sleeps_for(moved.ok() && *moved);
    if (retry) ms = Min(ms, kTagRetryMs);
    if (!given.ok() || *given) ms = Min(ms, given.ok() ? long(**given) : kTagRetryMs);
    if (ms > 0) bufmgr::wait_for_wakeup(member_event(), seen, uint32_t(Min(ms, ms_until(due))));
  }
  watch->leave();
  sampling.end();
  (void)txns().stay_awake();
  txns().leave();
}

// --- statistics ------------------------------------------------------------------------------------------------------

void statistics() {
  while (!may_stop()) {
    if (node().ready.load(std::memory_order_acquire)) tell_table_changes();
    const long ms = server_stops() ? 100 : table_changes_interval();
    (void)WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, ms, PG_WAIT_EXTENSION);
    tick_process();
    if (node_pool()->fenced()) {
      detach_session();
      idle_while_fenced();
    }
  }
}

// --- reclaim ---------------------------------------------------------------------------------------------------------

// One step; false: there is nothing to do, or not now.
bool reclaim_step(engine::Reclaimer& reclaimer) {
  const bool wanted =
      node().reclaim_wanted.exchange(false, std::memory_order_acquire);  // pairs with deferred_frees_ended()
  auto more = reclaimer.step();
  node().reclaim_open.store(reclaimer.open_records(), std::memory_order_relaxed);
  if (auto failure = reclaimer.take_failure())
    ereport(LOG, errmsg("gcl: pages of a dropped or rolled back relation were not given back: %s",
                        coherence::errc_name(*failure)));
  if (more.ok()) return *more;
  if (wanted) node().reclaim_wanted.store(true, std::memory_order_relaxed);  // it is looked for again
  return false;
}

// The DDL log and its slots name ids: a primary that was away asks what became of them when it comes back.
class IdsInDdlLog final : public engine::NamedIds {
 public:
  explicit IdsInDdlLog(engine::TxnSystem& txns) : txns_(txns) {}
  coherence::Result<bool> any_rolled_back(uint64_t upto) override {
    if (pause_ > 0) return --pause_, true;
    if (auto bad = in_a_slot(upto); !bad || *bad) return bad;
    engine::DdlLog log(txns_.pool(), txns_.session(), ddl_channel());
    engine::DdlLogEntry entry;
    for (auto found = log.first(&entry);; found = log.next(&entry)) {
      if (!found) return found.error();
      if (!entry.valid()) return false;
      auto bad = rolled_back(engine::TxnId{entry.txn}, upto);
      if (!bad) return bad;
      if (*bad) return pause_ = kPause, true;
    }
  }

 private:
  coherence::Result<bool> rolled_back(engine::TxnId id, uint64_t upto) {
    if (id.node() != txns_.node() || id.sequence() > upto) return false;
    return txns_.was_rolled_back(id);
  }
  // So does an heir (ddl_log.id-before-entry).
  coherence::Result<bool> in_a_slot(uint64_t upto) {
    for (int i = 0; i < ddl_channel().slots(); ++i) {
      engine::DdlSlot slot = ddl_slot(i);
      const engine::TxnId id{slot.txn()};
      if (!id.valid() || !slot.owner().held()) continue;
      auto bad = rolled_back(id, upto);
      if (!bad || *bad) return bad;
    }
    return false;
  }
  static constexpr int kPause = 60;  // calls, one a second, until the log is read again
  engine::TxnSystem& txns_;
  int pause_ = 0;
};

constexpr long kSweepPauseMs = 1;  // after a few pages, so that a pass takes little of the machine and the cache

bool sweep_step(engine::Sweeper& sweeper) {
  auto more = sweeper.step();
  return more.ok() && *more;
}

void reclaim() {
  auto* reclaimer = new engine::Reclaimer(txns());  // as long as the process
  auto* names = new IdsInDdlLog(txns());
  auto* sweeper = new engine::Sweeper(txns(), *names, engine::Sweeper::pages_max(txns()));
  while (!may_stop()) {
    const bool ready = node().ready.load(std::memory_order_acquire);
    const bool more = ready && reclaim_step(*reclaimer);
    const bool sweeps = ready && !more && sweep_step(*sweeper);
    const long ms = sweeps ? kSweepPauseMs : server_stops() ? 100 : 1000;
    if (!more) (void)WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, ms, PG_WAIT_EXTENSION);
    tick_process();
    if (node_pool()->fenced()) {
      detach_session();
      idle_while_fenced();
    }
  }
}

// --- repair ----------------------------------------------------------------------------------------------------------

void repair() {
  auto* dead = new DeadPrimaries;                                                  // as long as the process
  end_waits_when([]() noexcept { return recovery::is_to_record(*node_pool()); });  // recovery.recording-ends-waits
  while (!may_stop_behind({Worker::kMember, Worker::kStatistics, Worker::kReclaim})) {
    // A primary that joins may meet pages of the dead before it is ready.
    const bool ready = node().ready.load(std::memory_order_acquire);
    const long recorded = dead->record();
    const long due = recorded >= 0 || !ready ? recorded : dead->step();
    const long ms = due >= 0 ? due : server_stops() ? 100 : 1000;
    if (ms > 0) (void)WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, ms, PG_WAIT_EXTENSION);
    tick_process();
    if (node_pool()->fenced()) {
      detach_session();
      idle_while_fenced();
    }
  }
}

// --- checkpointer ----------------------------------------------------------------------------------------------------
// It touches no page, so it has no session, and the node's end does not wait for it.

constexpr long kCheckpointLookMs = 5000;  // and no longer than what is looked for takes

void checkpointer() {
  Checkpointer checkpointer;
  while (!server_stops()) {
    if (node_pool()->fenced()) idle_while_fenced();
    if (node().ready.load(std::memory_order_acquire)) checkpointer.round();
    if (server_stops()) break;
    const long ms = Min(kCheckpointLookMs, Max(settings.checkpoint_timeout_s, 1) * 1000L);
    (void)WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, ms, PG_WAIT_EXTENSION);
    tick_process();
  }
}

void work(Worker which, void (*body)()) {
  if (!begin(which) || node_pool()->fenced()) idle_while_fenced();
  // The message worker leaves the pool, so it begins even behind a worker that closed.
  if (which != Worker::kFlusher && which != Worker::kCheckpointer) attach_worker(which == Worker::kMessages);
  body();
  detach_session();
  proc_exit(0);
}

}  // namespace

void register_workers(const Sampling& with) {
  sampling = with;
  if (!node_configured()) return;
  register_worker("message worker", "gcl_message_worker_main");
  register_worker("provider", "gcl_provider_main");
  register_worker("flusher", "gcl_flusher_main");
  register_worker("member", "gcl_member_main");
  register_worker("statistics", "gcl_statistics_main");
  register_worker("reclaim", "gcl_reclaim_main");
  register_worker("repair", "gcl_repair_main");
  if (settings.pool_file[0] != '\0') register_worker("checkpointer", "gcl_checkpointer_main");
}

}  // namespace gcl

void gcl_message_worker_main(Datum) { gcl::work(gcl::Worker::kMessages, gcl::message_worker); }
void gcl_provider_main(Datum) { gcl::work(gcl::Worker::kProvider, gcl::provider); }
void gcl_flusher_main(Datum) { gcl::work(gcl::Worker::kFlusher, gcl::flusher); }
void gcl_member_main(Datum) { gcl::work(gcl::Worker::kMember, gcl::member); }
void gcl_statistics_main(Datum) { gcl::work(gcl::Worker::kStatistics, gcl::statistics); }
void gcl_reclaim_main(Datum) { gcl::work(gcl::Worker::kReclaim, gcl::reclaim); }
void gcl_repair_main(Datum) { gcl::work(gcl::Worker::kRepair, gcl::repair); }
void gcl_checkpointer_main(Datum) { gcl::work(gcl::Worker::kCheckpointer, gcl::checkpointer); }
