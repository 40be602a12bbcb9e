#include "coherence/member/node.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "coherence/base/os.hpp"
#include "coherence/member/arena.hpp"
#include "coherence/pool/fence.hpp"
#include "coherence/pool/node_table.hpp"
#include "coherence/pool/pool_header.hpp"
#include "coherence/pool/pool_lock.hpp"

namespace coherence {
namespace {

int live_nodes(const Pool& pool) {
  int n = 0;
  for (uint32_t i = 0; i < pool.nodes_max(); i++)
    n += pool.table().node[i].state.load(std::memory_order_acquire) != Membership::kAbsent;
  return n;
}

// Creates, allocates, locks and maps an arena file.  The lock is there before the file has its name in the table.
Status make_arena(const char* path, uint64_t bytes, int* fd, void** base, Problem* problem) {
  *fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (*fd < 0) return problem->set(Errc::kSystem, "cannot create %s: %s", path, strerror(errno));
  if (int error = posix_fallocate(*fd, 0, off_t(bytes)); error != 0)
    return problem->set(error == ENOSPC ? Errc::kNoSpace : Errc::kSystem,
                        "cannot allocate %.0f MB of shared memory for %s: %s", double(bytes) / 1048576, path,
                        strerror(error));
  if (flock(*fd, LOCK_EX | LOCK_NB) != 0)
    return problem->set(Errc::kSystem, "cannot lock %s: %s", path, strerror(errno));
  void* mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0);
  if (mapped == MAP_FAILED) return problem->set(Errc::kSystem, "cannot map %s: %s", path, strerror(errno));
  madvise(mapped, bytes, MADV_HUGEPAGE);
  *base = mapped;
  return {};
}

// Whether the process that is in the table has our number, where numbers mean the same: it was us, or is no more.
bool joined_by_us(const NodeEntry& entry) {
  const uint64_t its_namespace = entry.pid_namespace.load();
  return entry.pid.load() == getpid() && its_namespace != 0 && its_namespace == pid_namespace();
}

}  // namespace

Result<std::unique_ptr<Node>> Node::join(Pool& pool, NodeId id, const ArenaSpec& spec, Problem* problem) {
  if (id.value >= pool.nodes_max())
    return problem->set(Errc::kNotFound, "the pool has room for nodes 0 to %u, not for %d", pool.nodes_max() - 1,
                        id.value);
  VERIFY(spec.frames > 0 && spec.sessions_max > 0 && spec.sessions_max <= uint32_t(kSessionsMax));
  PoolLock lock(pool.path());
  if (!lock.held()) return problem->set(Errc::kSystem, "cannot lock %s.lock: %s", pool.path(), strerror(errno));
  NodeTable& table = pool.table();
  NodeEntry& entry = table.node[id.value];
  if (fence_if_somebody_died(pool))  // N2: our own former incarnation included
    return problem->set(Errc::kFenced, "pool %s was not closed cleanly: %s", pool.path(),
                        coherence::fence_reason(pool));
  if (entry.state.load(std::memory_order_acquire) != Membership::kAbsent && joined_by_us(entry)) {
    fence_pool(pool, "a node joined again without having left: its server restarted after a crash");
    return problem->set(Errc::kFenced, "pool %s was not closed cleanly: %s", pool.path(),
                        coherence::fence_reason(pool));
  }
  if (entry.state.load(std::memory_order_acquire) != Membership::kAbsent)
    return problem->set(Errc::kBusy, "node %d is in use by process %d", id.value, entry.pid.load());

  ArenaLayout layout = arena_layout(spec);
  uint64_t incarnation = table.next_incarnation.fetch_add(1) + 1;
  char path[600];
  arena_path(pool, id, incarnation, path, sizeof path);
  unlink(path);
  std::unique_ptr<Node> node(new Node(pool));
  void* base = nullptr;
  Status ok = make_arena(path, layout.bytes, &node->arena_fd_, &base, problem);
  node->parts_.arena = static_cast<ArenaHeader*>(base);  // unmapped by the destructor, whatever comes
  node->arena_bytes_ = layout.bytes;
  bool first = live_nodes(pool) == 0;
  if (ok && first) ok = pool.mark_durable_in_use(problem);
  if (!ok) {
    unlink(path);
    return ok.error();
  }
  NodeParts& parts = node->parts_;
  parts.id = id;
  parts.fence = &table.fence;
  VERIFY(parts.arena != nullptr);
  auto* bytes = static_cast<std::byte*>(base);
  parts.sessions = reinterpret_cast<SessionSlot*>(bytes + layout.sessions_at);
  parts.parked = reinterpret_cast<std::atomic<uint64_t>*>(bytes + layout.parked_at);
  parts.in_flight = reinterpret_cast<std::atomic<uint8_t>*>(bytes + layout.in_flight_at);
  parts.hot = reinterpret_cast<HotPages*>(bytes + layout.hot_at);
  parts.lines = reinterpret_cast<Line*>(bytes + layout.lines_at);
  parts.frames_base = bytes + layout.frames_at;
  parts.frames = spec.frames;
  parts.sessions_max = spec.sessions_max;
  parts.incarnation = incarnation;
  node->private_ = bytes + layout.private_at;
  node->private_bytes_ = layout.private_bytes;
  parts.arena->incarnation = incarnation;
  parts.arena->layout = layout;
  parts.arena->magic = kArenaMagic;
  for (uint32_t i = 0; i < spec.frames; i++) parts.lines[i].initialise();
  flight_path(pool.path(), id, incarnation, path, sizeof path);
  node->flight_.create(path, id, incarnation, spec.sessions_max);

  pool.header().state.store(PoolState::kInUse);
  entry.pid.store(getpid(), std::memory_order_relaxed);
  entry.pid_start.store(look_at_process(getpid()).start, std::memory_order_relaxed);
  entry.pid_namespace.store(pid_namespace(), std::memory_order_relaxed);
  entry.heartbeat_ns.store(monotonic_ns(), std::memory_order_relaxed);
  entry.incarnation.store(incarnation, std::memory_order_relaxed);
  table.view.fetch_add(1);
  entry.state.store(Membership::kLive, std::memory_order_release);  // pairs with died() and Peers::at()
  table.view.fetch_add(1, std::memory_order_release);               // who looked before we were live looks again
  return node;
}

Node::~Node() {
  if (parts_.arena) munmap(parts_.arena, arena_bytes_);
  if (arena_fd_ >= 0) close(arena_fd_);
}

const Counters& Node::counters(SessionId s) const { return parts_.sessions[s.value].counters; }
void Node::fence(const char* reason) noexcept { fence_pool(parts_.pool, reason); }
const char* Node::fence_reason() const noexcept { return fenced() ? coherence::fence_reason(parts_.pool) : ""; }
uint32_t Node::hot_pages(HotPage* to, uint32_t room) const noexcept { return parts_.hot->top(to, room, parts_.fence); }
void Node::reset_hot_pages() noexcept { parts_.hot->reset(parts_.fence); }
void Node::ring() const noexcept { parts_.ring_worker(); }
void Node::share_mapping(Node& peer) { peers_.share(peer.id(), *peer.parts_.arena); }

NodeInfo Node::info(NodeId n) const noexcept {
  const NodeEntry& e = parts_.pool.table().node[n.value];
  return {NodeInfo::State(e.state.load(std::memory_order_acquire)), e.incarnation.load(std::memory_order_relaxed),
          e.pid.load(std::memory_order_relaxed)};
}

NodeSet Node::live() const noexcept {
  NodeSet set;
  for (uint32_t n = 0; n < parts_.pool.nodes_max(); n++)
    if (NodeId node{uint8_t(n)}; info(node).state == NodeInfo::State::kLive) set = set.with(node);
  return set;
}

Status Node::withdraw(bool* last, Problem* problem) {
  if (fenced()) return problem->set(Errc::kFenced, "%s", fence_reason());
  NodeTable& table = parts_.pool.table();
  table.view.fetch_add(1);
  table.node[parts_.id.value].state.store(Membership::kAbsent,
                                          std::memory_order_release);  // our last reply came before
  table.view.fetch_add(1, std::memory_order_release);                  // who looked before looks again (N7)
  left_ = true;
  char path[600];
  arena_path(parts_.pool, parts_.id, parts_.incarnation, path, sizeof path);
  unlink(path);
  flight_path(parts_.pool.path(), parts_.id, parts_.incarnation, path, sizeof path);
  unlink(path);
  *last = live_nodes(parts_.pool) == 0;
  if (!*last) return {};
  if (parts_.pool.durable_path()) return parts_.pool.save(problem);
  parts_.pool.header().state.store(PoolState::kClean);
  return {};
}

}  // namespace coherence
