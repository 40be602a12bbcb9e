#include "coherence/transport/shm/deaths.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "coherence/base/os.hpp"
#include "coherence/member/arena.hpp"
#include "coherence/region/table_changes.hpp"
#include "coherence/transport/shm/mapped_pool.hpp"

namespace coherence {
namespace {

// Whether the process that joined is gone, its number perhaps another's by now.  What cannot be told is no death
// (node.certain-death-only).
bool joiner_gone(const NodeEntry& e) noexcept {
  const uint64_t its_namespace = e.pid_namespace.load(std::memory_order_relaxed);
  if (its_namespace == 0 || its_namespace != pid_namespace()) return false;
  const ProcessSight seen = look_at_process(e.pid.load(std::memory_order_relaxed));
  const uint64_t start = e.pid_start.load(std::memory_order_relaxed);
  return seen.is == ProcessSight::Is::kGone ||
         (seen.is == ProcessSight::Is::kThere && start != 0 && seen.start != start);
}

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
  // A process that serves the pool keeps others from opening it (LocalPool::serve): so its links are over, and no
  // batch comes.
  if (e.by_links.load(std::memory_order_relaxed) != 0) return still_there();
  if (joiner_gone(e)) return still_there();
  return look_at_lock(pool, n, incarnation) != Lock::kHeld && still_there();
}

Deceased look_for_dead(const MappedPool& pool, NodeId self) noexcept {
  NodeTable& table = pool.table();
  TableChanges changes(table, pool.nodes_max());
  const bool repairs = table.repairs_deaths();
  Deceased found;
  for (uint32_t n = 0; n < pool.nodes_max(); n++) {
    NodeId node{uint8_t(n)};
    if (node == self || !died(pool, node)) continue;
    NodeEntry& e = table.node[n];
    const MemberState state = e.state.load(std::memory_order_acquire);
    const bool counted = state == MemberState::kDead || state == MemberState::kSwept;
    const uint64_t incarnation = e.incarnation.load(std::memory_order_relaxed);
    const bool by_links = e.by_links.load(std::memory_order_relaxed) != 0;
    Lock lock = Lock::kHeld;
    if (repairs && !counted) lock = by_links ? Lock::kFree : look_at_lock(pool, node, incarnation);
    if (repairs && lock == Lock::kHeld) continue;
    if (!counted) {
      const bool counts = changes.died(node);  // by this call
      found.some |= counts;
      if (repairs && !counts) continue;  // it has gone on meanwhile: what was seen of its file is outdated
    }
    if (lock == Lock::kFree) continue;  // without its file no process can tell whether some of it are left
    char reason[160];
    snprintf(reason, sizeof reason, "node %u (incarnation %llu, pid %d) ended without leaving the pool", n,
             static_cast<unsigned long long>(incarnation), e.pid.load());
    changes.fence(reason);
  }
  found.fenced = changes.fenced();
  return found;
}

}  // namespace coherence
