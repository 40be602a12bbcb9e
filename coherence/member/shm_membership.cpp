#include "coherence/member/shm_membership.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "coherence/base/os.hpp"
#include "coherence/pool/fence.hpp"
#include "coherence/pool/pool_header.hpp"

namespace coherence {
namespace {

// Whether the process in the table has this process's number, in one pid namespace: it was this process, or is gone.
bool joined_by_us(const NodeEntry& entry) {
  const uint64_t its_namespace = entry.pid_namespace.load();
  return entry.pid.load() == getpid() && its_namespace != 0 && its_namespace == pid_namespace();
}

}  // namespace

NodeInfo ShmMembership::info(NodeId n) const noexcept {
  const NodeEntry& e = table_.node[n.value];
  const MemberState state = e.state.load(std::memory_order_acquire);  // pairs with change()
  return {state, e.incarnation.load(std::memory_order_relaxed), e.pid.load(std::memory_order_relaxed)};
}

uint64_t ShmMembership::view() const noexcept { return table_.view.load(std::memory_order_acquire); }  // with change()
void ShmMembership::fence(const char* reason) noexcept { fence_pool(pool_, reason); }
const char* ShmMembership::fence_reason() const noexcept { return coherence::fence_reason(pool_); }

void ShmMembership::watch(uint64_t now_ns) noexcept {
  own().heartbeat_ns.store(now_ns, std::memory_order_relaxed);
  fence_if_somebody_died(pool_, id_);
}

Status ShmMembership::begin_change(Patience patience, Problem* problem) {
  lock_.emplace(pool_.path(), patience == Patience::kWait ? PoolLock::kWait : PoolLock::kTry);
  if (lock_->held()) return {};
  const int why = errno;
  lock_.reset();
  if (why == EWOULDBLOCK) return problem->set(Errc::kBusy, "%s.lock is not free", pool_.path());
  return problem->set(Errc::kSystem, "cannot lock %s.lock: %s", pool_.path(), strerror(why));
}

Result<uint64_t> ShmMembership::reserve(NodeId id, Problem* problem) {
  if (id.value >= pool_.nodes_max())
    return problem->set(Errc::kNotFound, "the pool has room for nodes 0 to %u, not for %d", pool_.nodes_max() - 1,
                        id.value);
  NodeEntry& entry = table_.node[id.value];
  const bool fenced = fence_if_somebody_died(pool_);  // a former incarnation of this node included
  const bool there = entry.state.load(std::memory_order_acquire) != MemberState::kAbsent;
  if (!fenced && there && joined_by_us(entry))
    fence_pool(pool_, "a node joined again without having left: its server restarted after a crash");
  if (fenced || (there && joined_by_us(entry)))
    return problem->set(Errc::kFenced, "pool %s was not closed cleanly: %s", pool_.path(), fence_reason());
  if (there) return problem->set(Errc::kBusy, "node %d is in use by process %d", id.value, entry.pid.load());
  id_ = id;
  incarnation_ = table_.next_incarnation.fetch_add(1) + 1;
  return incarnation_;
}

Status ShmMembership::publish(Problem* problem) {
  if (empty()) GCL_TRY(pool_.mark_durable_in_use(problem));
  pool_.header().state.store(PoolState::kInUse);
  NodeEntry& entry = own();
  entry.pid.store(getpid(), std::memory_order_relaxed);
  entry.pid_start.store(look_at_process(getpid()).start, std::memory_order_relaxed);
  entry.pid_namespace.store(pid_namespace(), std::memory_order_relaxed);
  entry.heartbeat_ns.store(monotonic_ns(), std::memory_order_relaxed);
  entry.incarnation.store(incarnation_, std::memory_order_relaxed);
  change(MemberState::kLive);
  return {};
}

void ShmMembership::begin_leaving() noexcept { own().state.store(MemberState::kLeaving, std::memory_order_release); }

Result<bool> ShmMembership::withdraw(Problem* problem) {
  if (table_.fence.load(std::memory_order_acquire) != 0) return problem->set(Errc::kFenced, "%s", fence_reason());
  change(MemberState::kAbsent);  // our last reply came before
  return empty();
}

Status ShmMembership::close(Problem* problem) {
  if (pool_.durable_path()) return pool_.save(problem);
  pool_.header().state.store(PoolState::kClean);
  return {};
}

void ShmMembership::change(MemberState to) noexcept {
  table_.view.fetch_add(1);
  own().state.store(to, std::memory_order_release);     // pairs with info() and died()
  table_.view.fetch_add(1, std::memory_order_release);  // those that looked before look again
}

bool ShmMembership::empty() const noexcept {
  for (uint32_t n = 0; n < pool_.nodes_max(); n++)
    if (table_.node[n].state.load(std::memory_order_acquire) != MemberState::kAbsent) return false;
  return true;
}

}  // namespace coherence
