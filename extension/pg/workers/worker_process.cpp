#include "extension/pg/workers/worker_process.hpp"

#include "extension/pg/runtime/backend.hpp"
#include "extension/pg/runtime/node_events.hpp"
#include "extension/pg/runtime/orphan.hpp"
#include "extension/pg/runtime/server_stop.hpp"

extern "C" {
#include "libpq/pqsignal.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "storage/pmsignal.h"
}

namespace gcl {
namespace {

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

}  // namespace

void tick_process() {
  ResetLatch(MyLatch);
  CHECK_FOR_INTERRUPTS();
  if (ConfigReloadPending) {
    ConfigReloadPending = false;
    ProcessConfigFile(PGC_SIGHUP);
  }
  check_postmaster();
}

bool may_stop() { return server_stops() && node().backends.close(); }

bool may_stop_behind(std::initializer_list<Worker> others) {
  if (!may_stop()) return false;
  for (const Worker other : others)
    if (node().worker_proc[int(other)].load(std::memory_order_acquire) >= 0) return false;  // pairs with begin()
  return true;
}

void idle_while_fenced() {
  while (!server_stops()) {
    (void)WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, 10000, PG_WAIT_EXTENSION);
    tick_process();
  }
  proc_exit(0);
}

uint32_t idle_ms() { return server_stops() ? 100 : 300; }  // the message worker looks for deaths before

std::atomic<uint32_t>& member_event() { return node_pool()->coherence_node().event(kMemberEvent).count; }

void count_for_member() { member_event().fetch_add(1, std::memory_order_seq_cst); }

void run_worker(Worker which, void (*body)()) {
  if (!begin(which) || node_pool()->fenced()) idle_while_fenced();
  // The message worker leaves the pool, so it begins even behind a worker that closed.
  if (which != Worker::kFlusher && which != Worker::kCheckpointer) attach_worker(which == Worker::kMessages);
  body();
  detach_session();
  proc_exit(0);
}

}  // namespace gcl
