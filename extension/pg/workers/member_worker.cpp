#include "extension/pg/workers/member_worker.hpp"

#include "bufmgr/base/wakeup.hpp"
#include "extension/pg/ddl/node/data_life.hpp"
#include "extension/pg/runtime/backend.hpp"
#include "extension/pg/runtime/idle_sessions.hpp"
#include "extension/pg/runtime/kept_wal.hpp"
#include "extension/pg/runtime/raise.hpp"
#include "extension/pg/runtime/server_stop.hpp"
#include "extension/pg/runtime/waiter.hpp"
#include "extension/pg/txn/deadlock_watch.hpp"
#include "extension/pg/txn/server_commits.hpp"
#include "extension/pg/workers/worker_process.hpp"
#include "extension/pg/workers/workers.hpp"

extern "C" {
#include "libpq/pqsignal.h"
#include "postmaster/interrupt.h"
#include "storage/procsignal.h"
}

namespace gcl {
namespace {

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

}  // namespace

void member_worker(const Sampling& sampling) {
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

}  // namespace gcl
