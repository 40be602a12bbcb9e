#include "extension/pg/ddl/peer/idle_holders.hpp"

#include <algorithm>

#include "extension/pg/ddl/base/ddl_port.hpp"
#include "extension/pg/ddl/node/ddl_node_state.hpp"
#include "extension/pg/ddl/node/ddl_wakeup.hpp"
#include "extension/pg/runtime/idle_sessions.hpp"
#include "extension/pg/runtime/settings.hpp"

extern "C" {
#include "access/xact.h"
#include "catalog/pg_authid.h"
#include "miscadmin.h"
#include "storage/proc.h"
#include "utils/acl.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"
}

#include <csignal>

namespace gcl {
namespace {

using engine::DdlHolder;
using engine::DdlLocks;
using engine::DdlWanted;

// The sessions that were found idle at the last look, when all that wait were told to say so anew.
DdlLocks::Holders asked_about;

const PGPROC* process_of(DdlHolder holder) {
  const bool ours = holder.held() && !holder.is_heir() && holder.node().value == ddl_node_id().value &&
                    holder.incarnation() == uint8_t(ddl_incarnation());
  if (!ours || holder.session() >= ProcGlobal->allProcCount) return nullptr;
  const PGPROC& proc = ProcGlobal->allProcs[holder.session()];
  return proc.pid == int(holder.pid()) ? &proc : nullptr;
}

bool may_make_roles_or_databases(Oid role) {
  if (superuser_arg(role) || has_createrole_privilege(role)) return true;
  const HeapTuple tuple = SearchSysCache1(AUTHOID, ObjectIdGetDatum(role));
  if (!HeapTupleIsValid(tuple)) return false;
  const bool may = reinterpret_cast<Form_pg_authid>(GETSTRUCT(tuple))->rolcreatedb;
  ReleaseSysCache(tuple);
  return may;
}

bool is_privileged(Oid role) {
  MemoryContext caller = CurrentMemoryContext;
  StartTransactionCommand();
  const bool is = may_make_roles_or_databases(role);
  CommitTransactionCommand();
  MemoryContextSwitchTo(caller);
  return is;
}

bool runs_ddl(int pid) {
  const auto& running = ddl_node_state().running;
  return std::any_of(std::begin(running), std::end(running), [=](const auto& one) { return one.load() == pid; });
}

// For how long the holder has kept the lock without a reason, if that is as long as gcl.ddl_yield; 0: it has one.
uint32_t ms_for_nothing(int lock, const PGPROC& holder) {
  const auto yield = uint32_t(settings.ddl_yield_ms);
  if (const auto idle = ms_idle_in_transaction(holder); idle && *idle >= yield) return std::max(*idle, 1u);
  if (lock != DdlLocks::kWholeCluster || runs_ddl(holder.pid)) return 0;
  const auto since = TimestampTz(ddl_locks().words(lock).since);
  const auto held = uint32_t(std::clamp<TimestampTz>((GetCurrentTimestamp() - since) / 1000, 0, INT_MAX));
  return held >= yield && !is_privileged(holder.roleId) ? held : 0;
}

// A session that waits at a tag cannot say so itself.
void speak_for_waiters() {
  uint64_t bits = 0;
  for (int lock = 0; lock < int(std::tuple_size_v<DdlLocks::Holders>); ++lock)
    if (ddl_node_state().tag_waiters[lock].load(std::memory_order_relaxed) > 0) bits |= DdlWanted::of(lock).bits();
  if (bits != 0) ddl_locks().want(DdlWanted(bits));
}

void end_session(const PGPROC& holder, uint32_t ms) {
  ereport(LOG, (errmsg("ends the session of process %d, which has let others wait for a DDL lock for %.1f s",
                       holder.pid, ms / 1000.0),
                errdetail("It has been idle in its transaction, or holds the whole cluster's lock and may make neither "
                          "roles nor databases."),
                errhint("gcl.ddl_yield says for how long a session may do so.")));
  kill(holder.pid, SIGTERM);
}

}  // namespace

void tend_ddl_locks() {
  speak_for_waiters();
  if (settings.ddl_yield_ms < 0 || ddl_node_state().lock_holders.load(std::memory_order_relaxed) <= 0) return;
  const DdlLocks::Holders holders = ddl_locks().holders();
  DdlLocks::Holders idle{};
  uint32_t ms[std::tuple_size_v<DdlLocks::Holders>]{};
  bool any = false;
  for (int lock = 0; lock < int(holders.size()); ++lock) {
    const PGPROC* const holder = process_of(holders[lock]);
    if (holder == nullptr) continue;
    ms[lock] = ms_for_nothing(lock, *holder);
    if (ms[lock] == 0) continue;
    idle[lock] = holders[lock];
    any = true;
  }
  const DdlWanted wanted = any ? ddl_locks().take_wanted() : DdlWanted(0);
  if (wanted.any()) {
    ddl_wake_others();
    wake_waiters();
  }
  for (int lock = 0; lock < int(holders.size()); ++lock) {
    if (!idle[lock].held()) continue;
    const PGPROC* const holder = process_of(idle[lock]);
    if (holder != nullptr && asked_about[lock] == idle[lock] && wanted.waits_for_holder_of(lock))
      end_session(*holder, ms[lock]);
  }
  asked_about = idle;
}

}  // namespace gcl
