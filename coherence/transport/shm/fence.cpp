#include "coherence/transport/shm/fence.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "coherence/base/os.hpp"
#include "coherence/member/arena.hpp"
#include "coherence/region/node_table.hpp"
#include "coherence/transport/shm/mapped_pool.hpp"

namespace coherence {

// Whether the process that joined is gone, its number perhaps another's by now.  What cannot be told is no death
// (node.certain-death-only).
static bool joiner_gone(const NodeEntry& e) noexcept {
  const uint64_t its_namespace = e.pid_namespace.load(std::memory_order_relaxed);
  if (its_namespace == 0 || its_namespace != pid_namespace()) return false;
  const ProcessSight seen = look_at_process(e.pid.load(std::memory_order_relaxed));
  const uint64_t start = e.pid_start.load(std::memory_order_relaxed);
  return seen.is == ProcessSight::Is::kGone ||
         (seen.is == ProcessSight::Is::kThere && start != 0 && seen.start != start);
}

namespace {

enum class Lock : uint8_t { kHeld, kFree, kNoFile };

// Of the incarnation's arena.  What cannot be opened may be held.
Lock look_at_lock(const MappedPool& pool, NodeId n, uint64_t incarnation) noexcept {
  char path[600];
  arena_path(pool, n, incarnation, path, sizeof path);
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return errno == ENOENT ? Lock::kNoFile : Lock::kHeld;
  const bool free = flock(fd, LOCK_SH | LOCK_NB) == 0;
  close(fd);
  return free ? Lock::kFree : Lock::kHeld;
}

}  // namespace

bool died(const MappedPool& pool, NodeId n) noexcept {
  NodeEntry& e = pool.table().node[n.value];
  MemberState state = e.state.load(std::memory_order_acquire);  // pairs with join() and leave()
  if (state == MemberState::kDead || state == MemberState::kSwept) return true;
  if (state == MemberState::kAbsent) return false;
  uint64_t incarnation = e.incarnation.load(std::memory_order_acquire);
  auto still_there = [&] {
    MemberState now = e.state.load(std::memory_order_acquire);
    return (now == MemberState::kLive || now == MemberState::kLeaving) &&
           e.incarnation.load(std::memory_order_acquire) == incarnation;
  };
  if (joiner_gone(e)) return still_there();
  return look_at_lock(pool, n, incarnation) != Lock::kHeld && still_there();
}

// The fence must wait for no process, so it may be up before its reason is written.
void fence_pool(const MappedPool& pool, const char* reason) noexcept {
  NodeTable& table = pool.table();
  uint32_t nobody = kReasonNone;
  if (table.reason_state.compare_exchange_strong(nobody, kReasonClaimed, std::memory_order_acq_rel)) {
    snprintf(table.fence_reason, sizeof table.fence_reason, "%s", reason);
    table.reason_state.store(kReasonWritten, std::memory_order_release);  // pairs with fence_reason()
  }
  table.fence.store(1, std::memory_order_release);  // pairs with Node::fenced()
}

const char* fence_reason(const MappedPool& pool) noexcept {
  NodeTable& table = pool.table();
  bool written = table.reason_state.load(std::memory_order_acquire) == kReasonWritten;
  return written ? table.fence_reason : "a node ended without leaving the pool";
}

Deceased look_for_dead(const MappedPool& pool, NodeId self) noexcept {
  NodeTable& table = pool.table();
  const bool repairs = table.repairs_deaths();
  Deceased found;
  for (uint32_t n = 0; n < pool.nodes_max(); n++) {
    NodeId node{uint8_t(n)};
    if (node == self || !died(pool, node)) continue;
    NodeEntry& e = table.node[n];
    MemberState state = e.state.load(std::memory_order_acquire);
    const bool counted = state == MemberState::kDead || state == MemberState::kSwept;
    const uint64_t incarnation = e.incarnation.load(std::memory_order_relaxed);
    const Lock lock = repairs && !counted ? look_at_lock(pool, node, incarnation) : Lock::kHeld;
    if (repairs && lock == Lock::kHeld) continue;
    if (!counted) {
      bool counts = false;  // by this call
      table.view.fetch_add(1);
      while (!counts && (state == MemberState::kLive || state == MemberState::kLeaving))
        counts = e.state.compare_exchange_weak(state, MemberState::kDead, std::memory_order_acq_rel);
      table.view.fetch_add(1, std::memory_order_release);
      found.some |= counts;
      if (repairs && !counts) continue;  // it has gone on meanwhile: what was seen of its file is outdated
    }
    if (lock == Lock::kFree) continue;  // without its file no process can tell whether some of it are left
    char reason[160];
    snprintf(reason, sizeof reason, "node %u (incarnation %llu, pid %d) ended without leaving the pool", n,
             static_cast<unsigned long long>(incarnation), e.pid.load());
    fence_pool(pool, reason);
  }
  found.fenced = table.fence.load(std::memory_order_acquire) != 0;
  return found;
}

}  // namespace coherence
