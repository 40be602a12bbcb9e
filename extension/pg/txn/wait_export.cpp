#include "extension/pg/txn/wait_export.hpp"

#include <algorithm>

#include "extension/pg/runtime/node.hpp"
#include "extension/pg/runtime/own_wait.hpp"
#include "extension/pg/runtime/wait_tag.hpp"

extern "C" {
#include "storage/lock.h"
#include "storage/procarray.h"
}

namespace gcl {

using engine::WaitKind;
using engine::WaitParty;
using engine::WaitRecord;

namespace {

constexpr uint32_t kCollectMax = 4096;

struct Collected {
  WaitRecord* record;
  uint32_t count, dropped;
  void add(const WaitRecord& r) {
    if (count < kCollectMax)
      record[count++] = r;
    else
      ++dropped;
  }
};

uint8_t here() { return node_pool()->node().value; }

const PGPROC* leader_of(const PGPROC* proc) { return proc->lockGroupLeader ? proc->lockGroupLeader : proc; }

// The party of the process: its parallel group's leader, or the coordinator that an apply worker works for.
WaitParty party_of(const PGPROC* proc) {
  const PGPROC* leader = leader_of(proc);
  const OwnWait own = own_wait_of(uint32_t(leader->pgprocno));
  if (own.pid != leader->pid) return {.pid = uint32_t(leader->pid), .node = here()};
  if (own.works_for.pid != 0)
    return {.ddl_transaction = own.ddl_transaction, .pid = uint32_t(own.works_for.pid), .node = own.works_for.node};
  return {.ddl_transaction = own.ddl_transaction, .pid = uint32_t(leader->pid), .node = here()};
}

WaitRecord record_of(const PGPROC* proc) {
  WaitRecord r;
  r.waiter = party_of(proc);
  r.node = here();
  r.process = uint32_t(leader_of(proc)->pid);
  r.session = uint32_t(proc->pgprocno);
  r.waiter_txn = node_txn_shared()->slot(uint32_t(leader_of(proc)->pgprocno)).top.load(std::memory_order_acquire);
  return r;
}

bool is_wait_tag(const LOCKTAG& tag) {
  const LOCKTAG ours = wait_tag(uint64_t{tag.locktag_field2} << 32 | tag.locktag_field3);
  return memcmp(&tag, &ours, sizeof tag) == 0;
}

void describe(const LockInstanceData& waiting, char* to) {
  const char* mode = GetLockmodeName(waiting.locktag.locktag_lockmethodid, waiting.waitLockMode);
  StringInfoData what;
  initStringInfo(&what);
  DescribeLockTag(&what, &waiting.locktag);
  snprintf(to, engine::kWaitTextBytes, "%s on %s", mode, what.data);
  pfree(what.data);
}

uint64_t wait_start(PGPROC* proc) { return pg_atomic_read_u64(&proc->waitStart); }

void add_remote(PGPROC* proc, uint64_t wait, const LockInstanceData& waiting, Collected& all) {
  const OwnWait own = own_wait_of(uint32_t(proc->pgprocno));
  const LOCKTAG tag = wait_tag(own.remote.id);
  if (own.kind != OwnWaitKind::kTag || own.pid != proc->pid || memcmp(&tag, &waiting.locktag, sizeof tag) != 0) return;
  const engine::TxnId target{own.remote.top};
  WaitRecord r = record_of(proc);
  r.kind = WaitKind::kRemote;
  r.wait = wait;
  r.since_us = int64_t(wait);
  r.target_txn = target.raw;
  r.may_give_way = 1;
  r.timeout_ms = uint32_t(own.timeout_ms);
  if (engine::Speculation::is_wait_id(own.remote.id))
    snprintf(r.what, sizeof r.what, "ShareLock on a speculative token of primary %d", target.node().value);
  else if (is_hold_wait(own.remote.id))
    snprintf(r.what, sizeof r.what, "ShareLock on pages of transaction " UINT64_FORMAT " of primary %d",
             target.sequence(), target.node().value);
  else
    snprintf(r.what, sizeof r.what, "ShareLock on transaction " UINT64_FORMAT " of primary %d", target.sequence(),
             target.node().value);
  all.add(r);
}

void add_blocker(const WaitRecord& waiter, int pid, Collected& all) {
  PGPROC* proc = BackendPidGetProc(pid);
  if (proc == nullptr) return;  // it ends, and so does the wait for it
  WaitRecord r = waiter;
  r.target = party_of(proc);
  r.target_process = uint32_t(leader_of(proc)->pid);
  all.add(r);
}

// A coordinator of DDL or LOCK TABLE: its proxies hold what it has locked elsewhere.
bool is_coordinator(const PGPROC* proc, const OwnWait& own) {
  return own.pid == proc->pid && own.ddl_transaction != 0 && own.works_for.pid == 0;
}

// As pg_blocking_pids(): processes that hold a lock in conflict with the one awaited, or wait for such a one before us.
void add_blockers(PGPROC* proc, uint64_t wait, const BlockedProcsData& data, const BlockedProcData& blocked,
                  const LockInstanceData& waiting, Collected& all) {
  WaitRecord r = record_of(proc);
  r.wait = wait;
  r.since_us = int64_t(wait);
  describe(waiting, r.what);
  if (const OwnWait own = own_wait_of(uint32_t(proc->pgprocno)); is_coordinator(proc, own)) {
    r.may_give_way = 1;
    r.timeout_ms = uint32_t(own.timeout_ms);
  }
  const LockMethod methods = GetLockTagsMethodTable(&waiting.locktag);
  const LOCKMASK conflicts = methods->conflictTab[waiting.waitLockMode];
  for (int i = 0; i < blocked.num_locks; ++i) {
    const LockInstanceData& other = data.locks[blocked.first_lock + i];
    if (other.leaderPid == waiting.leaderPid) continue;
    bool blocks = (other.holdMask & conflicts) != 0;
    if (!blocks && other.waitLockMode != NoLock && (LOCKBIT_ON(other.waitLockMode) & conflicts)) {
      const int* ahead = data.waiter_pids + blocked.first_waiter;
      blocks = std::find(ahead, ahead + blocked.num_waiters, other.pid) != ahead + blocked.num_waiters;
    }
    if (blocks) add_blocker(r, other.leaderPid, all);
  }
}

// The moment a wait began is its number: if it is the same before and after we looked, we saw that wait.
void add_waits_of(PGPROC* proc, int pid, Collected& all) {
  const uint64_t wait = wait_start(proc);
  const BlockedProcsData* data = GetBlockerStatusData(pid);
  if (wait == 0 || wait_start(proc) != wait) return;
  for (int p = 0; p < data->nprocs; ++p) {
    const BlockedProcData& blocked = data->procs[p];
    if (blocked.pid != pid) continue;
    for (int i = 0; i < blocked.num_locks; ++i) {
      const LockInstanceData& waiting = data->locks[blocked.first_lock + i];
      if (waiting.pid != pid || waiting.waitLockMode == NoLock) continue;
      if (is_wait_tag(waiting.locktag))
        add_remote(proc, wait, waiting, all);
      else
        add_blockers(proc, wait, *data, blocked, waiting, all);
    }
  }
}

void add_own_wait(const PGPROC* proc, const OwnWait& own, Collected& all) {
  WaitRecord r = record_of(proc);
  r.wait = own.sequence;
  r.since_us = own.since;
  if (own.kind == OwnWaitKind::kReplies) {
    r.kind = WaitKind::kReplies;
    r.may_give_way = 1;
    r.timeout_ms = uint32_t(own.timeout_ms);
    snprintf(r.what, sizeof r.what, "the other primaries' answers");
  } else {
    r.kind = WaitKind::kDdlLock;
    r.may_give_way = 1;
    r.timeout_ms = uint32_t(own.timeout_ms);
    r.target = {.pid = uint32_t(own.holder.pid), .node = own.holder.node};
    snprintf(r.what, sizeof r.what, "the DDL lock");
  }
  all.add(r);
}

// So that waiters of other primaries can be told which process they wait for.
void add_holder(engine::TxnSystem& txns, const PGPROC* proc, Collected& all) {
  WaitRecord r = record_of(proc);
  r.kind = WaitKind::kHolder;
  if (r.waiter_txn == 0) return;
  auto watched = txns.watched(coherence::SessionId{uint16_t(proc->pgprocno)});
  if (watched.ok() && *watched) all.add(r);
}

// Whether a process may wait for the waiter in turn.
bool may_be_in_a_cycle(const WaitRecord& r, const Collected& all) {
  if (r.kind == WaitKind::kHolder) return false;
  if (r.waiter_txn != 0 || r.waiter.ddl_transaction != 0) return true;
  return std::any_of(all.record, all.record + all.count,
                     [&](const WaitRecord& o) { return o.kind == WaitKind::kLock && o.target_process == r.process; });
}

}  // namespace

uint32_t collect_waits(engine::TxnSystem& txns, WaitRecord* out, uint32_t room, uint32_t* left_out) {
  Collected all{static_cast<WaitRecord*>(palloc(kCollectMax * sizeof(WaitRecord))), 0, 0};
  for (uint32_t i = 0; i < own_wait_slots() && i < ProcGlobal->allProcCount; ++i) {
    PGPROC* proc = &ProcGlobal->allProcs[i];
    const int pid = proc->pid;
    if (pid == 0) continue;
    const OwnWait own = own_wait_of(i);
    if (own.pid == pid && (own.kind == OwnWaitKind::kReplies || own.kind == OwnWaitKind::kDdlLock))
      add_own_wait(proc, own, all);
    const uint32_t before = all.count;
    // Looked at without its lock first: a process that is missed now is seen the next time.
    if (*const_cast<LOCK* const volatile*>(&proc->waitLock) != nullptr) add_waits_of(proc, pid, all);
    if (all.count == before) add_holder(txns, proc, all);
  }
  // Room for all, mostly; else for those that matter first.
  uint32_t count = 0;
  for (const bool matters : {true, false})
    for (uint32_t i = 0; i < all.count && count < room; ++i)
      if (all.count <= room ? matters : may_be_in_a_cycle(all.record[i], all) == matters) out[count++] = all.record[i];
  *left_out = all.dropped + all.count - count;
  return count;
}

}  // namespace gcl
