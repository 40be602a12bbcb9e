#include "coherence/transport/shm/shm_membership.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "coherence/base/os.hpp"
#include "coherence/member/arena.hpp"
#include "coherence/region/pool_header.hpp"
#include "coherence/transport/shm/deaths.hpp"

namespace coherence {
namespace {

// Whether the process in the table has this process's number, in one pid namespace: it was this process, or is gone.
bool joined_by_us(const NodeEntry& entry) {
  const uint64_t its_namespace = entry.pid_namespace.load();
  return entry.pid.load() == getpid() && its_namespace != 0 && its_namespace == pid_namespace();
}

// Of a dead node: its peers map it still, and nobody punched it out (node.memory-given-back).
void remove_arena(const Pool& pool, NodeId node, uint64_t incarnation) noexcept {
  char path[600];
  arena_path(pool, node, incarnation, path, sizeof path);
  if (const int fd = open(path, O_RDWR | O_CLOEXEC); fd >= 0) {
    uint64_t magic = 0;
    ArenaLayout layout{};
    const bool whole = pread(fd, &magic, sizeof magic, offsetof(ArenaHeader, magic)) == ssize_t(sizeof magic) &&
                       pread(fd, &layout, sizeof layout, offsetof(ArenaHeader, layout)) == ssize_t(sizeof layout);
    if (whole && magic == kArenaMagic) give_memory_back(fd, layout.shared_until(), layout.bytes);
    close(fd);
  }
  unlink_node_files(pool, node, incarnation);
}

}  // namespace

bool ShmMembership::watch(uint64_t now_ns) noexcept {
  own().heartbeat_ns.store(now_ns, std::memory_order_relaxed);
  return look_for_dead(pool_, id_).some;
}

// What follows changes under the pool's lock, so that a process that looked long ago changes nothing.
bool ShmMembership::recorded(NodeId dead, uint64_t incarnation) noexcept {
  const PoolLock lock(pool_.path(), PoolLock::kTry);
  if (!lock.held()) return false;
  changes_.recorded(dead, incarnation);
  return true;
}

bool ShmMembership::quiesced(NodeId dead) noexcept {
  if (!repairs_deaths() || info(dead).state != MemberState::kDead || repairable().has(dead)) return true;
  changes_.says_quiescent(id_, dead);
  if (!changes_.repairable_is_due(dead)) return false;
  const PoolLock lock(pool_.path(), PoolLock::kTry);
  if (!lock.held() || !changes_.repairable_is_due(dead)) return false;
  changes_.repairable(dead);
  return true;
}

bool ShmMembership::swept(NodeId dead, uint64_t incarnation) noexcept {
  const PoolLock lock(pool_.path(), PoolLock::kTry);
  if (!lock.held()) return false;
  changes_.swept(dead, incarnation);
  return true;
}

// Said under the lock, too: a bit that comes late would be about the node's next incarnation.
bool ShmMembership::drained(NodeId dead) noexcept {
  const PoolLock lock(pool_.path(), PoolLock::kTry);
  if (!lock.held()) return false;
  if (info(dead).state != MemberState::kSwept) return true;
  changes_.says_drained(id_, dead);
  if (!changes_.all_drained(dead)) return false;
  remove_arena(pool_, dead, info(dead).incarnation);
  changes_.forget(dead);
  return true;
}

Status ShmMembership::begin_change(Patience patience, Problem* problem) {
  lock_.emplace(pool_.path(), patience == Patience::kWait ? PoolLock::kWait : PoolLock::kTry);
  if (lock_->held()) return {};
  const int why = errno;
  lock_.reset();
  if (why == EWOULDBLOCK) return problem->set(Errc::kBusy, "%s.lock is not free", pool_.path());
  return problem->set(Errc::kSystem, "cannot lock %s.lock: %s", pool_.path(), strerror(why));
}

NodeSet ShmMembership::all_dead() noexcept {
  if (look_for_dead(pool_).fenced || !repairs_deaths() || changes_.some_serve()) return {};
  return changes_.dead();
}

void ShmMembership::forget(NodeSet dead) noexcept {
  for (; !dead.empty(); dead = dead.without(dead.first())) {
    remove_arena(pool_, dead.first(), info(dead.first()).incarnation);
    changes_.forget(dead.first());
  }
}

Result<uint64_t> ShmMembership::reserve(NodeId id, Problem* problem) {
  if (id.value >= pool_.nodes_max())
    return problem->set(Errc::kNotFound, "the pool has room for nodes 0 to %u, not for %d", pool_.nodes_max() - 1,
                        id.value);
  NodeEntry& entry = table_.node[id.value];
  const bool fenced = look_for_dead(pool_).fenced;  // a former incarnation of this node included
  const MemberState state = entry.state.load(std::memory_order_acquire);
  const bool there = state != MemberState::kAbsent;
  if (!fenced && NodeInfo{.state = state}.dead())
    return problem->set(Errc::kUnrepaired, "node %d has died, and is not repaired yet", id.value);
  if (!fenced && there && joined_by_us(entry) && !repairs_deaths())
    changes_.fence("a node joined again without having left: its server restarted after a crash");
  if (fenced || (there && joined_by_us(entry) && !repairs_deaths()))
    return problem->set(Errc::kFenced, "pool %s was not closed cleanly: %s", pool_.path(), fence_reason());
  if (there) return problem->set(Errc::kBusy, "node %d is in use by process %d", id.value, entry.pid.load());
  id_ = id;
  incarnation_ = changes_.reserve();
  return incarnation_;
}

// The lock is there before the node is in the table.
Status ShmMembership::publish(int arena, Problem* problem) {
  if (flock(arena, LOCK_EX | LOCK_NB) != 0)
    return problem->set(Errc::kSystem, "cannot lock the arena of node %d: %s", id_.value, strerror(errno));
  arena_ = arena;
  if (changes_.empty()) GCL_TRY(pool_.mark_in_use(problem));
  pool_.header().state.store(PoolState::kInUse);
  pool_.header().protocol.store(kProtocolVersion, std::memory_order_relaxed);  // under the lock (check_protocol)
  changes_.publish(id_, incarnation_,
                   {.pid = getpid(),
                    .pid_start = look_at_process(getpid()).start,
                    .pid_namespace = pid_namespace(),
                    .now_ns = monotonic_ns()});
  return {};
}

// Of the open file, which all copies of the descriptor share (a log collector has one).
void ShmMembership::give_up() noexcept { (void)flock(arena_, LOCK_UN); }

Result<bool> ShmMembership::withdraw(Problem* problem) {
  if (changes_.fenced()) return problem->set(Errc::kFenced, "%s", fence_reason());
  changes_.withdraw(id_);  // our last reply came before
  return changes_.empty();
}

}  // namespace coherence
