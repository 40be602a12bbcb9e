#include "extension/pg/workers/workers.hpp"

#include "extension/pg/runtime/backend.hpp"
#include "extension/pg/runtime/commit_hold.hpp"
#include "extension/pg/runtime/server_stop.hpp"
#include "extension/pg/runtime/settings.hpp"
#include "extension/pg/runtime/table_changes.hpp"
#include "extension/pg/workers/checkpointer.hpp"
#include "extension/pg/workers/member_worker.hpp"
#include "extension/pg/workers/message_worker.hpp"
#include "extension/pg/workers/reclaim_worker.hpp"
#include "extension/pg/workers/repair.hpp"
#include "extension/pg/workers/worker_process.hpp"

extern "C" {
#include "access/xlog.h"
#include "postmaster/bgworker.h"
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

void gcl_message_worker_main(Datum) { gcl::run_worker(gcl::Worker::kMessages, gcl::message_worker); }
void gcl_provider_main(Datum) { gcl::run_worker(gcl::Worker::kProvider, gcl::provider); }
void gcl_flusher_main(Datum) { gcl::run_worker(gcl::Worker::kFlusher, gcl::flusher); }
void gcl_member_main(Datum) {
  gcl::run_worker(gcl::Worker::kMember, [] { gcl::member_worker(gcl::sampling); });
}
void gcl_statistics_main(Datum) { gcl::run_worker(gcl::Worker::kStatistics, gcl::statistics); }
void gcl_reclaim_main(Datum) { gcl::run_worker(gcl::Worker::kReclaim, gcl::reclaim_worker); }
void gcl_repair_main(Datum) { gcl::run_worker(gcl::Worker::kRepair, gcl::repair); }
void gcl_checkpointer_main(Datum) { gcl::run_worker(gcl::Worker::kCheckpointer, gcl::checkpointer); }
