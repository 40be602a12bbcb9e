#include "extension/pg/ddl/node/ddl_wakeup.hpp"

#include "bufmgr/base/wakeup.hpp"
#include "extension/pg/ddl/base/ddl_port.hpp"
#include "extension/pg/ddl/node/ddl_node_state.hpp"

extern "C" {
#include "libpq/pqsignal.h"
#include "pgstat.h"
#include "postmaster/interrupt.h"
#include "storage/procsignal.h"
}

namespace gcl {
namespace {

void count_signal() {
  if (ddl_pool_attached()) ddl_wakeup_event().fetch_add(1, std::memory_order_seq_cst);
}

std::atomic<uint32_t>* slot_event = nullptr;  // null: this is no worker that serves a slot

void on_sigusr1_of_worker(int number) {
  procsignal_sigusr1_handler(number);
  count_on_slot();
}

void on_sigterm(int number) {
  SignalHandlerForShutdownRequest(number);
  count_signal();
}

void on_sighup(int number) {
  SignalHandlerForConfigReload(number);
  count_signal();
}

void on_sigusr1(int number) {  // a worker has started or ended, among others
  procsignal_sigusr1_handler(number);
  count_signal();
}

}  // namespace

void prepare_for_wakeup() { ConditionVariablePrepareToSleep(&ddl_node_state().wakeup); }

bool sleep_until_wakeup(WaitEvent what, long ms) {
  const uint32_t shown = what == WaitEvent::kCount ? PG_WAIT_EXTENSION : wait_event(what);
  return !ConditionVariableTimedSleep(&ddl_node_state().wakeup, ms, shown);
}

// In the commit callback nothing may raise or exit; the caller asks whether the postmaster lives.
bool sleep_until_wakeup_uninterrupted() noexcept {
  const int woken = WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_POSTMASTER_DEATH, kHeartbeatMs,
                              wait_event(WaitEvent::kDdlAnswers));
  ResetLatch(MyLatch);
  if (ProcSignalBarrierPending) ProcessProcSignalBarrier();   // DROP DATABASE waits for every process
  ConditionVariablePrepareToSleep(&ddl_node_state().wakeup);  // again: a wakeup takes us off its list
  return (woken & WL_TIMEOUT) == 0;
}

void done_with_wakeups() noexcept { ConditionVariableCancelSleep(); }

void watch_slot(int slot) {
  slot_event = &ddl_slot_wakeup_event(slot);
  pqsignal(SIGUSR1, on_sigusr1_of_worker);
}

void count_on_slot() noexcept {
  if (slot_event != nullptr) slot_event->fetch_add(1, std::memory_order_seq_cst);
}

uint32_t slot_wakeup_count() noexcept {
  return slot_event->load(std::memory_order_seq_cst);  // pairs with ddl_wake_slot()
}

void sleep_on_slot(uint32_t seen, long ms) noexcept {
  pgstat_report_wait_start(PG_WAIT_EXTENSION);
  bufmgr::wait_for_wakeup(*slot_event, seen, uint32_t(ms));
  pgstat_report_wait_end();
  ResetLatch(MyLatch);
  if (ProcSignalBarrierPending) ProcessProcSignalBarrier();  // DROP DATABASE waits for every process
}

void watch_wakeups() {
  pqsignal(SIGINT, SIG_IGN);  // nothing to cancel
  pqsignal(SIGTERM, on_sigterm);
  pqsignal(SIGHUP, on_sighup);
  pqsignal(SIGUSR1, on_sigusr1);
}

// A wakeup between two sleeps ends neither, so it is passed on where it is seen.
uint32_t wakeup_count() noexcept {
  static uint32_t told = 0;
  const uint32_t now = ddl_wakeup_event().load(std::memory_order_seq_cst);  // pairs with ddl_wake_node()
  if (now != told) wake_waiters();
  told = now;
  return now;
}

void sleep_on_wakeup_event(uint32_t seen, uint32_t ms) {
  pgstat_report_wait_start(PG_WAIT_EXTENSION);
  bufmgr::wait_for_wakeup(ddl_wakeup_event(), seen, ms);
  pgstat_report_wait_end();
  ResetLatch(MyLatch);
  (void)wakeup_count();
}

void wake_waiters() noexcept { ConditionVariableBroadcast(&ddl_node_state().wakeup); }

}  // namespace gcl
