#include "coherence/member/arena.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <new>

#include "coherence/base/os.hpp"

namespace coherence {

ArenaLayout arena_layout(const ArenaSpec& spec) {
  auto page_aligned = [](uint64_t n) { return (n + 4095) / 4096 * 4096; };
  ArenaLayout l{};
  l.frames = spec.frames;
  l.sessions_max = spec.sessions_max;
  l.private_bytes = page_aligned(spec.private_bytes);
  l.sessions_at = page_aligned(sizeof(ArenaHeader));
  l.parked_at = page_aligned(l.sessions_at + spec.sessions_max * sizeof(SessionSlot));
  l.hot_at = page_aligned(l.parked_at + (uint64_t(spec.frames) + 63) / 64 * 8);
  l.lines_at = page_aligned(l.hot_at + sizeof(HotPages));
  l.frames_at = page_aligned(l.lines_at + uint64_t(spec.frames) * sizeof(Line));
  l.private_at = l.frames_at + uint64_t(spec.frames) * kPageSize;
  l.bytes = l.private_at + l.private_bytes;
  return l;
}

void arena_path(const Pool& pool, NodeId node, uint64_t incarnation, char* out, size_t bytes) {
  snprintf(out, bytes, "%s.node%d.%llu", pool.path(), node.value, static_cast<unsigned long long>(incarnation));
}

PeerArena* PeerArena::map(const Pool& pool, NodeId node, uint64_t incarnation) noexcept {
  std::unique_ptr<PeerArena> arena(new (std::nothrow) PeerArena);
  if (!arena) return nullptr;
  char path[600];
  arena_path(pool, node, incarnation, path, sizeof path);
  int fd = open(path, O_RDWR | O_CLOEXEC);
  if (fd < 0) return nullptr;
  struct stat s;
  void* base = MAP_FAILED;
  if (fstat(fd, &s) == 0 && uint64_t(s.st_size) >= sizeof(ArenaHeader))
    base = mmap(nullptr, size_t(s.st_size), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  if (base == MAP_FAILED) return nullptr;
  arena->base_ = static_cast<std::byte*>(base);
  arena->bytes_ = uint64_t(s.st_size);
  arena->header_ = static_cast<ArenaHeader*>(base);
  arena->incarnation_ = incarnation;
  const bool right = arena->header_->magic == kArenaMagic && arena->header_->incarnation == incarnation &&
                     arena->header_->layout.bytes <= arena->bytes_;
  return right ? arena.release() : nullptr;
}

PeerArena* PeerArena::alias(ArenaHeader& mapped) {
  auto* arena = new PeerArena;
  arena->base_ = reinterpret_cast<std::byte*>(&mapped);
  arena->incarnation_ = mapped.incarnation;
  arena->header_ = &mapped;
  return arena;
}

PeerArena::~PeerArena() {
  if (bytes_ > 0) munmap(base_, bytes_);
}

RequestSlot* PeerArena::slot(uint32_t index) {
  const ArenaLayout& l = header_->layout;
  if (index / kSlotsPerSession >= l.sessions_max) return nullptr;
  auto* sessions = reinterpret_cast<SessionSlot*>(base_ + l.sessions_at);
  return &sessions[index / kSlotsPerSession].slot[index % kSlotsPerSession];
}

std::byte* PeerArena::frame(uint32_t line) {
  const ArenaLayout& l = header_->layout;
  return line < l.frames ? base_ + l.frames_at + uint64_t(line) * kPageSize : nullptr;
}

Line* PeerArena::line(uint32_t index) {
  const ArenaLayout& l = header_->layout;
  return index < l.frames ? reinterpret_cast<Line*>(base_ + l.lines_at) + index : nullptr;
}

void ring(ArenaHeader& arena) noexcept {
  // Pairs with the worker's store of `sleeping` before its last look: one of the two sees the other (S5).
  if (arena.sleeping.load(std::memory_order_seq_cst) == 0) return;
  arena.bell.fetch_add(1, std::memory_order_seq_cst);
  futex_wake(arena.bell, 1);
}

// The process that joined is gone, its number perhaps another's by now.  N5: what cannot be told is no death.
static bool joiner_gone(const NodeEntry& e) noexcept {
  const uint64_t its_namespace = e.pid_namespace.load(std::memory_order_relaxed);
  if (its_namespace == 0 || its_namespace != pid_namespace()) return false;
  const ProcessSight seen = look_at_process(e.pid.load(std::memory_order_relaxed));
  const uint64_t start = e.pid_start.load(std::memory_order_relaxed);
  return seen.is == ProcessSight::Is::kGone ||
         (seen.is == ProcessSight::Is::kThere && start != 0 && seen.start != start);
}

bool died(const Pool& pool, NodeId n) noexcept {
  NodeEntry& e = pool.table().node[n.value];
  Membership state = e.state.load(std::memory_order_acquire);  // pairs with join() and leave()
  if (state == Membership::kDead) return true;
  if (state == Membership::kAbsent) return false;
  uint64_t incarnation = e.incarnation.load(std::memory_order_acquire);
  auto still_there = [&] {
    Membership now = e.state.load(std::memory_order_acquire);
    return (now == Membership::kLive || now == Membership::kLeaving) &&
           e.incarnation.load(std::memory_order_acquire) == incarnation;
  };
  if (joiner_gone(e)) return still_there();
  char path[600];
  arena_path(pool, n, incarnation, path, sizeof path);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return errno == ENOENT && still_there();
  bool free = flock(fd, LOCK_SH | LOCK_NB) == 0;
  close(fd);
  return free && still_there();
}

// The fence must never wait for anybody, so it may be up before its reason is written.
void fence_pool(const Pool& pool, const char* reason) noexcept {
  NodeTable& table = pool.table();
  uint32_t nobody = kReasonNone;
  if (table.reason_state.compare_exchange_strong(nobody, kReasonClaimed, std::memory_order_acq_rel)) {
    snprintf(table.fence_reason, sizeof table.fence_reason, "%s", reason);
    table.reason_state.store(kReasonWritten, std::memory_order_release);  // pairs with fence_reason()
  }
  table.fence.store(1, std::memory_order_release);  // pairs with Node::fenced()
}

const char* fence_reason(const Pool& pool) noexcept {
  NodeTable& table = pool.table();
  bool written = table.reason_state.load(std::memory_order_acquire) == kReasonWritten;
  return written ? table.fence_reason : "a node ended without leaving the pool";
}

bool fence_if_somebody_died(const Pool& pool, NodeId self) noexcept {
  NodeTable& table = pool.table();
  for (uint32_t n = 0; n < pool.nodes_max(); n++) {
    NodeId node{uint8_t(n)};
    if (node == self || !died(pool, node)) continue;
    Membership live = Membership::kLive, leaving = Membership::kLeaving;
    NodeEntry& e = table.node[n];
    if (!e.state.compare_exchange_strong(live, Membership::kDead, std::memory_order_acq_rel))
      e.state.compare_exchange_strong(leaving, Membership::kDead, std::memory_order_acq_rel);
    char reason[160];
    snprintf(reason, sizeof reason, "node %u (incarnation %llu, pid %d) ended without leaving the pool", n,
             static_cast<unsigned long long>(e.incarnation.load()), e.pid.load());
    fence_pool(pool, reason);
  }
  return table.fence.load(std::memory_order_acquire) != 0;
}

}  // namespace coherence
