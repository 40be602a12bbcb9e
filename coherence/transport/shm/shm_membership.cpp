#include "coherence/transport/shm/shm_membership.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "coherence/base/os.hpp"
#include "coherence/member/arena.hpp"
#include "coherence/region/pool_header.hpp"
#include "coherence/transport/shm/fence.hpp"

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

NodeInfo ShmMembership::info(NodeId n) const noexcept {
  const NodeEntry& e = table_.node[n.value];
  const MemberState state = e.state.load(std::memory_order_acquire);  // pairs with change()
  return {state, e.incarnation.load(std::memory_order_relaxed), e.pid.load(std::memory_order_relaxed)};
}

uint64_t ShmMembership::view() const noexcept { return table_.view.load(std::memory_order_acquire); }  // with change()
void ShmMembership::fence(const char* reason) noexcept { fence_pool(pool_, reason); }
const char* ShmMembership::fence_reason() const noexcept { return coherence::fence_reason(pool_); }

bool ShmMembership::watch(uint64_t now_ns) noexcept {
  own().heartbeat_ns.store(now_ns, std::memory_order_relaxed);
  return look_for_dead(pool_, id_).some;
}

bool ShmMembership::all_say(std::atomic<uint64_t> NodeEntry::*what, NodeId dead) const noexcept {
  for (uint32_t n = 0; n < pool_.nodes_max(); n++)
    if (NodeId node{uint8_t(n)}; info(node).serves() && !NodeSet{(table_.node[n].*what).load()}.has(dead)) return false;
  return true;
}

NodeSet ShmMembership::unrecorded() const noexcept {
  NodeSet nodes;
  if (table_.records_deaths.load(std::memory_order_relaxed) == 0) return nodes;
  for (uint32_t n = 0; n < pool_.nodes_max(); n++)
    // The state first: of a later incarnation it says that what was recorded of a former one is forgotten.
    if (const NodeId node{uint8_t(n)};
        info(node).state == MemberState::kDead &&
        !NodeSet{table_.recorded.load(std::memory_order_acquire)}.has(node))  // pairs with recorded()
      nodes = nodes.with(node);
  return nodes;
}

// What follows changes under the pool's lock, so that a process that looked long ago changes nothing.
bool ShmMembership::recorded(NodeId dead, uint64_t incarnation) noexcept {
  const PoolLock lock(pool_.path(), PoolLock::kTry);
  if (!lock.held()) return false;
  const NodeInfo now = info(dead);
  if (now.state != MemberState::kDead || now.incarnation != incarnation) return true;
  table_.recorded.fetch_or(NodeSet::of(dead).bits);
  table_.view.fetch_add(2, std::memory_order_release);  // workers look again
  return true;
}

bool ShmMembership::quiesced(NodeId dead) noexcept {
  if (!repairs_deaths()) return true;
  own().quiesced.fetch_or(NodeSet::of(dead).bits);
  const auto due = [&] {
    return info(dead).state == MemberState::kDead && !repairable().has(dead) && !unrecorded().has(dead) &&
           all_say(&NodeEntry::quiesced, dead);
  };
  if (info(dead).state != MemberState::kDead || repairable().has(dead)) return true;
  if (!due()) return false;
  const PoolLock lock(pool_.path(), PoolLock::kTry);
  if (!lock.held() || !due()) return false;
  table_.repairable.fetch_or(NodeSet::of(dead).bits);
  table_.view.fetch_add(2, std::memory_order_release);  // workers look again
  return true;
}

bool ShmMembership::swept(NodeId dead, uint64_t incarnation) noexcept {
  const PoolLock lock(pool_.path(), PoolLock::kTry);
  if (!lock.held()) return false;
  const NodeInfo now = info(dead);
  if (now.state != MemberState::kDead || now.incarnation != incarnation || !repairable().has(dead)) return true;
  table_.repairable.fetch_and(~NodeSet::of(dead).bits);
  change(dead, MemberState::kSwept);
  return true;
}

// Said under the lock, too: a bit that comes late would be about the node's next incarnation.
bool ShmMembership::drained(NodeId dead) noexcept {
  const PoolLock lock(pool_.path(), PoolLock::kTry);
  if (!lock.held()) return false;
  if (info(dead).state != MemberState::kSwept) return true;
  own().drained.fetch_or(NodeSet::of(dead).bits);
  if (!all_say(&NodeEntry::drained, dead)) return false;
  remove_arena(pool_, dead, info(dead).incarnation);
  change(dead, MemberState::kAbsent);
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
  NodeSet dead;
  if (look_for_dead(pool_).fenced || !repairs_deaths()) return dead;
  for (uint32_t n = 0; n < pool_.nodes_max(); n++) {
    const NodeId node{uint8_t(n)};
    const NodeInfo now = info(node);
    if (now.serves()) return {};
    if (now.dead()) dead = dead.with(node);
  }
  return dead;
}

void ShmMembership::forget(NodeSet dead) noexcept {
  for (; !dead.empty(); dead = dead.without(dead.first())) {
    const NodeId node = dead.first();
    table_.repairable.fetch_and(~NodeSet::of(node).bits);
    remove_arena(pool_, node, info(node).incarnation);
    change(node, MemberState::kAbsent);
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
    fence_pool(pool_, "a node joined again without having left: its server restarted after a crash");
  if (fenced || (there && joined_by_us(entry) && !repairs_deaths()))
    return problem->set(Errc::kFenced, "pool %s was not closed cleanly: %s", pool_.path(), fence_reason());
  if (there) return problem->set(Errc::kBusy, "node %d is in use by process %d", id.value, entry.pid.load());
  id_ = id;
  incarnation_ = table_.next_incarnation.fetch_add(1) + 1;
  return incarnation_;
}

// The lock is there before the node is in the table.
Status ShmMembership::publish(int arena, Problem* problem) {
  if (flock(arena, LOCK_EX | LOCK_NB) != 0)
    return problem->set(Errc::kSystem, "cannot lock the arena of node %d: %s", id_.value, strerror(errno));
  arena_ = arena;
  if (empty()) GCL_TRY(pool_.mark_durable_in_use(problem));
  pool_.header().state.store(PoolState::kInUse);
  pool_.header().protocol.store(kProtocolVersion, std::memory_order_relaxed);  // under the lock (check_protocol)
  NodeEntry& entry = own();
  entry.pid.store(getpid(), std::memory_order_relaxed);
  entry.pid_start.store(look_at_process(getpid()).start, std::memory_order_relaxed);
  entry.pid_namespace.store(pid_namespace(), std::memory_order_relaxed);
  entry.heartbeat_ns.store(monotonic_ns(), std::memory_order_relaxed);
  entry.incarnation.store(incarnation_, std::memory_order_relaxed);
  // This node has nothing of those that are dead, and what others said is about its former incarnation.
  uint64_t dead = 0;
  for (uint32_t n = 0; n < pool_.nodes_max(); n++) {
    table_.node[n].quiesced.fetch_and(~NodeSet::of(id_).bits);
    table_.node[n].drained.fetch_and(~NodeSet::of(id_).bits);
    if (NodeId node{uint8_t(n)}; info(node).dead()) dead |= NodeSet::of(node).bits;
  }
  table_.recorded.fetch_and(~NodeSet::of(id_).bits);
  entry.quiesced.store(dead);
  entry.drained.store(0);
  change(id_, MemberState::kLive);
  return {};
}

void ShmMembership::begin_leaving() noexcept { own().state.store(MemberState::kLeaving, std::memory_order_release); }

// Of the open file, which all copies of the descriptor share (a log collector has one).
void ShmMembership::give_up() noexcept { (void)flock(arena_, LOCK_UN); }

Result<bool> ShmMembership::withdraw(Problem* problem) {
  if (table_.fence.load(std::memory_order_acquire) != 0) return problem->set(Errc::kFenced, "%s", fence_reason());
  change(id_, MemberState::kAbsent);  // our last reply came before
  return empty();
}

Status ShmMembership::close(Problem* problem) {
  if (pool_.durable_path()) return pool_.save(problem);
  pool_.header().state.store(PoolState::kClean);
  return {};
}

void ShmMembership::change(NodeId node, MemberState to) noexcept {
  table_.view.fetch_add(1);
  table_.node[node.value].state.store(to, std::memory_order_release);  // pairs with info() and died()
  table_.view.fetch_add(1, std::memory_order_release);                 // those that looked before look again
}

bool ShmMembership::empty() const noexcept {
  for (uint32_t n = 0; n < pool_.nodes_max(); n++)
    if (table_.node[n].state.load(std::memory_order_acquire) != MemberState::kAbsent) return false;
  return true;
}

}  // namespace coherence
