#include "extension/pg/ddl/node/ddl_node_state.hpp"

#include <new>

extern "C" {
#include "commands/dbcommands.h"
#include "common/hashfn.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "postmaster/bgworker.h"
#include "storage/ipc.h"
#include "storage/lwlock.h"
#include "storage/shmem.h"
#include "utils/timestamp.h"

// libpq/auth.h, which wants Kerberos' headers.
struct Port;
typedef void (*ClientAuthentication_hook_type)(Port*, int);
extern PGDLLIMPORT ClientAuthentication_hook_type ClientAuthentication_hook;
}

#include "extension/engine/samples/sample_registry.hpp"
#include "extension/pg/ddl/base/ddl_port.hpp"
#include "extension/pg/ddl/node/ddl_wakeup.hpp"
#include "extension/pg/runtime/ddl_hooks.hpp"
#include "extension/pg/runtime/node.hpp"
#include "extension/pg/runtime/orphan.hpp"

namespace gcl {
namespace {

shmem_request_hook_type previous_request_hook = nullptr;
shmem_startup_hook_type previous_startup_hook = nullptr;
ClientAuthentication_hook_type previous_authentication_hook = nullptr;
DdlNodeState* state = nullptr;

constexpr int kGateMs = 30000;  // a primary that cannot catch up lets people in to see why

void request() {
  if (previous_request_hook) previous_request_hook();
  RequestAddinShmemSpace(MAXALIGN(sizeof(DdlNodeState)));
  RequestNamedLWLockTranche("gcl_ddl", 2);
}

void startup() {
  if (previous_startup_hook) previous_startup_hook();
  LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
  bool found;
  state = static_cast<DdlNodeState*>(ShmemInitStruct("gcl ddl", sizeof(DdlNodeState), &found));
  if (!found) {
    new (state) DdlNodeState{};
    LWLockPadded* locks = GetNamedLWLockTranche("gcl_ddl");
    state->lock = &locks[0].lock;
    state->positions = &locks[1].lock;
    ConditionVariableInit(&state->wakeup);
  }
  LWLockRelease(AddinShmemInitLock);
}

// A connection made while this primary catches up would see yesterday's catalogs.
void wait_until_serving(Port* port, int status) {
  if (previous_authentication_hook) previous_authentication_hook(port, status);
  if (!state || status != STATUS_OK || !ddl_pool_attached()) return;
  end_with_postmaster();
  for (int waited = 0; !state->serving && !state->failing && !ddl_pool_fenced() && waited < kGateMs; waited += 5) {
    if (node_state()->join_fails.load(std::memory_order_relaxed)) return;
    pause_in_wait(5000);
  }
}

void register_launcher() {
  BackgroundWorker worker{};
  worker.bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION;
  worker.bgw_start_time = BgWorkerStart_RecoveryFinished;
  worker.bgw_restart_time = 1;
  strlcpy(worker.bgw_library_name, "gcl", BGW_MAXLEN);
  strlcpy(worker.bgw_function_name, "gcl_ddl_launcher_main", BGW_MAXLEN);
  strlcpy(worker.bgw_name, "gcl ddl launcher", BGW_MAXLEN);
  strlcpy(worker.bgw_type, "gcl ddl launcher", BGW_MAXLEN);
  RegisterBackgroundWorker(&worker);
}

}  // namespace

DdlNodeState& ddl_node_state() { return *state; }

void forget_what_is_up_to_date() noexcept {
  LWLockAcquire(state->lock, LW_EXCLUSIVE);
  state->known_count = 0;
  LWLockRelease(state->lock);
}

bool is_up_to_date(Oid database, const char* name) {
  const uint32_t hash = DatumGetUInt32(hash_any(reinterpret_cast<const unsigned char*>(name), int(strlen(name))));
  bool found = false;
  LWLockAcquire(state->lock, LW_SHARED);
  for (int i = 0; i < state->known_count && !found; ++i)
    found = state->known[i].database == database && state->known[i].name == hash;
  LWLockRelease(state->lock);
  return found;
}

// A history without room in the table is read each time.
void note_up_to_date(Oid database, const char* name) {
  if (is_up_to_date(database, name)) return;
  const uint32_t hash = DatumGetUInt32(hash_any(reinterpret_cast<const unsigned char*>(name), int(strlen(name))));
  LWLockAcquire(state->lock, LW_EXCLUSIVE);
  if (state->known_count < kKnownDatabasesMax) state->known[state->known_count++] = {database, hash};
  LWLockRelease(state->lock);
}

static std::atomic<int32_t>* running = nullptr;

void note_ddl_begins() noexcept {
  for (std::atomic<int32_t>& one : ddl_node_state().running) {
    int32_t none = 0;
    if (running != nullptr || !one.compare_exchange_strong(none, MyProcPid)) continue;
    running = &one;
  }
}

void note_ddl_ended() noexcept {
  if (running != nullptr) running->store(0);
  running = nullptr;
}

void set_serving(bool serving) noexcept {
  state->serving = serving;
  state->serves_all = serving && !any_kept_out();
}

void fall_behind() noexcept {
  forget_what_is_up_to_date();
  set_serving(false);
  state->behind = true;
}

void leave_home() {
  strlcpy(state->avoided_home, get_database_name(MyDatabaseId), NAMEDATALEN);
  for (DdlWorker& worker : state->workers) worker.moved |= worker.pid == MyProcPid;
  proc_exit(0);
}

void note_ddl_error(const char* database, const char* text) {
  LWLockAcquire(state->lock, LW_EXCLUSIVE);
  state->error_at = GetCurrentTimestamp();
  if (*database == '\0')
    snprintf(state->error, sizeof state->error, "roles and databases: %s", text != nullptr ? text : "?");
  else
    snprintf(state->error, sizeof state->error, "database \"%s\": %s", database, text != nullptr ? text : "?");
  state->error[pg_mbcliplen(state->error, int(strlen(state->error)), int(sizeof state->error) - 1)] = '\0';
  LWLockRelease(state->lock);
}

void ddl_standing(engine::Sample* to) {
  using engine::DdlStanding;
  to->standing = state->serves_all                  ? DdlStanding::kServing
                 : state->serving || state->failing ? DdlStanding::kFailing
                                                    : DdlStanding::kCatchingUp;
  to->ddl_entry = state->entry;
  LWLockAcquire(state->lock, LW_SHARED);
  to->error_us = state->error_at;
  static_assert(sizeof to->error >= sizeof state->error);
  memcpy(to->error, state->error, sizeof state->error);
  LWLockRelease(state->lock);
}

bool serves_here() noexcept { return state != nullptr && state->serving && !is_kept_out(MyDatabaseId); }
const volatile bool* serves_all_flag() noexcept { return &state->serves_all; }

void raise_refusal() {
  constexpr const char* kHint =
      "Make it anew from the data directory of a primary that serves: gcl_prepare_copy(). The local tables of this "
      "one can be read as ever.";
  if (state->refused == Refused::kAnotherDirectory)
    ereport(ERROR,
            (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
             errmsg("the data directory is not the one that primary %d left the pool with", ddl_node()),
             errdetail("%s", state->refusal),
             errhint("Put back the data directory as it was when this primary stopped last. Or make it anew from that "
                     "of a primary that serves: gcl_prepare_copy(). The local tables of this one can be read as "
                     "ever.")));
  if (state->refused == Refused::kLaterVersion)
    ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                    errmsg("the data directory of primary %d was last used by a later version of gcl", ddl_node()),
                    errdetail("%s", state->refusal),
                    errhint("Use that version. The local tables of this primary can be read as ever.")));
  if (state->refused == Refused::kForgotten)
    ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                    errmsg("primary %d is not one of this pool any more", ddl_node()),
                    errdetail("gcl_forget_primary() was called for it, or gcl_resolve_in_doubt() for DDL of it."),
                    errhint("%s", kHint)));
  ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                  errmsg("primary %d comes too late to get its catalogs from the DDL log", ddl_node()),
                  errdetail("What the primaries before it have applied is in the log no more."), errhint("%s", kHint)));
}

void require_caught_up() {
  if (state->serving && !is_kept_out(MyDatabaseId)) return;
  require_let_in();
  if (state->serving) return;
  if (state->refused != Refused::kNot) raise_refusal();
  ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                  errmsg("this primary has not caught up with the DDL of the other primaries"),
                  errhint("The server's log says why.")));
}

void install_node_state() {
  previous_request_hook = shmem_request_hook;
  shmem_request_hook = request;
  previous_startup_hook = shmem_startup_hook;
  shmem_startup_hook = startup;
  previous_authentication_hook = ClientAuthentication_hook;
  ClientAuthentication_hook = wait_until_serving;
  register_launcher();
}

}  // namespace gcl
