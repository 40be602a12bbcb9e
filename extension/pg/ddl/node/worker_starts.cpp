#include "extension/pg/ddl/node/worker_starts.hpp"

#include "extension/pg/ddl/node/database_list.hpp"
#include "extension/pg/ddl/node/ddl_node_state.hpp"

extern "C" {
#include "miscadmin.h"
#include "postmaster/bgworker.h"
#include "storage/lwlock.h"
#include "utils/memutils.h"
}

namespace gcl {
namespace {

BackgroundWorkerHandle* handles[kApplyWorkersMax];  // null: not started by this process

DdlWorker& worker_at(int index) { return ddl_node_state().workers[index]; }

int free_worker() {
  for (int i = 0; i < kApplyWorkersMax; ++i)
    if (!runs(i)) return i;
  return -1;
}

// Tells the worker, in shared memory, what to do.
void instruct(DdlWorker* worker, const char* database, int slot, uint64_t until) {
  char home[NAMEDATALEN] = "";
  if (*database == '\0') find_home(ddl_node_state().avoided_home, home);
  LWLockAcquire(ddl_node_state().lock, LW_EXCLUSIVE);
  ++worker->order;
  strlcpy(worker->database, database, NAMEDATALEN);
  strlcpy(worker->home, home, NAMEDATALEN);
  worker->slot = slot;
  worker->catch_up_only = slot < 0;
  worker->caught_up = false;
  worker->error[0] = '\0';
  worker->moved = false;
  worker->holds = 0;
  worker->until = until;
  LWLockRelease(ddl_node_state().lock);
}

bool launch(int index, const char* database) {
  BackgroundWorker request{};
  request.bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION;
  request.bgw_start_time = BgWorkerStart_RecoveryFinished;
  request.bgw_restart_time = BGW_NEVER_RESTART;
  strlcpy(request.bgw_library_name, "gcl", BGW_MAXLEN);
  strlcpy(request.bgw_function_name, "gcl_ddl_apply_main", BGW_MAXLEN);
  snprintf(request.bgw_name, BGW_MAXLEN, "gcl ddl apply %s", *database ? database : "of roles and databases");
  strlcpy(request.bgw_type, "gcl ddl apply", BGW_MAXLEN);
  request.bgw_main_arg = UInt64GetDatum(uint64_t{worker_at(index).order} << 32 | uint32_t(index));
  request.bgw_notify_pid = MyProcPid;
  if (handles[index]) pfree(handles[index]);
  handles[index] = nullptr;
  // The handle outlives the caller's context.
  MemoryContext caller = MemoryContextSwitchTo(TopMemoryContext);
  const bool registered = RegisterDynamicBackgroundWorker(&request, &handles[index]);
  MemoryContextSwitchTo(caller);
  return registered;
}

}  // namespace

// A former launcher's worker runs if it has come up; one that comes later finds that its order is not the last.
bool runs(int index) {
  if (!handles[index]) return worker_at(index).pid != 0;
  pid_t pid;
  const BgwHandleStatus status = GetBackgroundWorkerPid(handles[index], &pid);
  return status == BGWH_STARTED || status == BGWH_NOT_YET_STARTED;
}

int worker_of(int slot) {
  for (int i = 0; i < kApplyWorkersMax; ++i)
    if (worker_at(i).slot == slot && !worker_at(i).catch_up_only && runs(i)) return i;
  return -1;
}

int start_worker(const char* database, int slot, uint64_t until) {
  const int index = free_worker();
  if (index < 0) return -1;
  instruct(&worker_at(index), database, slot, until);
  return launch(index, database) ? index : -1;
}

void disown_former_workers() {
  LWLockAcquire(ddl_node_state().lock, LW_EXCLUSIVE);
  for (int i = 0; i < kApplyWorkersMax; ++i) worker_at(i).order += worker_at(i).pid == 0;
  LWLockRelease(ddl_node_state().lock);
}

}  // namespace gcl
