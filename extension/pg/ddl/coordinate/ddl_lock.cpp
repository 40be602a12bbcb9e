#include "extension/pg/ddl/coordinate/ddl_lock.hpp"

#include "extension/pg/ddl/base/ddl_port.hpp"
#include "extension/pg/ddl/base/user_lock.hpp"
#include "extension/pg/ddl/node/ddl_node_state.hpp"
#include "extension/pg/ddl/node/ddl_wakeup.hpp"

extern "C" {
#include "commands/dbcommands.h"
#include "extension/pg/boundary/monotonic.hpp"
#include "storage/proc.h"
#include "utils/timestamp.h"
}

namespace gcl {
namespace {

using engine::DdlHolder;
using engine::DdlLocks;

struct Seen {
  DdlHolder holder;
  bool told;
};

LOCKTAG tag_of(int lock) { return user_lock_tag(UserLock::kDdl, uint32_t(lock)); }

int index_of(DdlRight right, int lock) { return right == DdlRight::kWhole ? DdlLocks::kWholeCluster : lock; }

// No tag stands here yet for the session that has the lock: then only this process can tell that it waits for that
// session.
void sleep_for_lock(DdlHolder holder, Seen* seen, long ms) {
  if (!holder.held()) return;
  if (seen->told && holder == seen->holder)
    ddl_still_waits();
  else
    ddl_waits_for_lock(holder);
  *seen = {holder, true};
  PG_TRY();
  {
    ddl_check_wait();
    sleep_until_wakeup(WaitEvent::kDdlLock, ms);
    ddl_check_wait();
  }
  PG_FINALLY();
  { ddl_waits_no_more(); }
  PG_END_TRY();
}

void wait_for_lock(DdlRight right, int lock) {
  const int64_t began = monotonic_us();
  Seen seen{};
  for (;;) {
    lock_ddl_tags(right, lock);
    prepare_for_wakeup();
    DdlHolder other;
    const auto try_lock = [&] {
      return ddl_locks().try_lock(index_of(right, lock), ddl_me(), uint64_t(GetCurrentTimestamp()), &other);
    };
    if (try_lock()) break;
    ddl_locks().want(engine::DdlWanted::of(index_of(right, lock)));  // ddl_log.want-then-retry
    if (try_lock()) break;
    unlock_ddl_tags(right, lock);  // so that the apply worker can have them, and we queue behind it
    if (ddl_pool_fenced()) raise_fenced();
    sleep_for_lock(other, &seen, ms_of_lock_timeout(began, "Another primary holds the DDL lock."));
  }
  done_with_wakeups();
}

}  // namespace

DdlHolder ddl_me() { return DdlHolder::make(ddl_node_id(), ddl_incarnation(), ddl_session(), uint32_t(MyProcPid)); }

int ddl_lock_of_database() { return ddl_locks().lock_of(get_database_name(MyDatabaseId)); }

// A session that has to wait is counted, so that the launcher says for it that it does (ddl.idle-holder-ended).
static void lock_tag(int lock, LOCKMODE mode) {
  const LOCKTAG tag = tag_of(lock);
  if (LockAcquire(&tag, mode, true, true) != LOCKACQUIRE_NOT_AVAIL) return;
  std::atomic<int32_t>& waiters = ddl_node_state().tag_waiters[lock];
  waiters.fetch_add(1, std::memory_order_relaxed);
  PG_TRY();
  { (void)LockAcquire(&tag, mode, true, false); }
  PG_FINALLY();
  { waiters.fetch_sub(1, std::memory_order_relaxed); }
  PG_END_TRY();
}

// The whole cluster's tag is taken in a weak mode for a database.
void lock_ddl_tags(DdlRight right, int lock) {
  const LOCKTAG whole = tag_of(DdlLocks::kWholeCluster);
  if (right == DdlRight::kWhole) return lock_tag(DdlLocks::kWholeCluster, ExclusiveLock);
  lock_tag(DdlLocks::kWholeCluster, RowExclusiveLock);
  PG_TRY();
  { lock_tag(lock, ExclusiveLock); }
  PG_CATCH();
  {
    (void)LockRelease(&whole, RowExclusiveLock, true);
    PG_RE_THROW();
  }
  PG_END_TRY();
}

void unlock_ddl_tags(DdlRight right, int lock) {
  const LOCKTAG whole = tag_of(DdlLocks::kWholeCluster), own = tag_of(lock);
  (void)LockRelease(&whole, right == DdlRight::kWhole ? ExclusiveLock : RowExclusiveLock, true);
  if (right == DdlRight::kDatabase) (void)LockRelease(&own, ExclusiveLock, true);
}

void take_ddl_lock(DdlRight right, int lock) {
  PG_TRY();
  { wait_for_lock(right, lock); }
  PG_CATCH();
  {
    ddl_locks().unlock(index_of(right, lock), ddl_me());  // ddl_log.cluster-lock-keeps-out: it may be ours already
    ddl_wake_others();
    wake_waiters();
    PG_RE_THROW();
  }
  PG_END_TRY();
  ddl_node_state().lock_holders.fetch_add(1, std::memory_order_relaxed);
}

void give_back_ddl_lock(DdlRight right, int lock) {
  ddl_node_state().lock_holders.fetch_sub(1, std::memory_order_relaxed);
  ddl_locks().unlock(index_of(right, lock), ddl_me());
  unlock_ddl_tags(right, lock);
}

long ms_of_lock_timeout(int64_t began, const char* awaited) {
  if (LockTimeout <= 0) return kHeartbeatMs;
  const long left = LockTimeout - long((monotonic_us() - began) / 1000);
  if (left <= 0)
    ereport(ERROR, (errcode(ERRCODE_LOCK_NOT_AVAILABLE), errmsg("canceling statement due to lock timeout"),
                    errdetail("%s", awaited)));
  return Min(left, kHeartbeatMs);
}

void raise_fenced() {
  ereport(ERROR, (errcode(ERRCODE_CRASH_SHUTDOWN), errmsg("the gcl pool is fenced"),
                  errdetail("%s", ddl_fence_reason()), errhint("Stop all primaries of the cluster.")));
  pg_unreachable();
}

}  // namespace gcl
