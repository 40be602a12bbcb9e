#include "coherence/member/node.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

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
  node->arena_ = static_cast<ArenaHeader*>(base);  // unmapped by the destructor, whatever comes
  node->arena_bytes_ = layout.bytes;
  bool first = live_nodes(pool) == 0;
  if (ok && first) ok = pool.mark_durable_in_use(problem);
  if (!ok) {
    unlink(path);
    return ok.error();
  }
  node->id_ = id;
  node->incarnation_ = incarnation;
  node->fence_ = &table.fence;
  VERIFY(node->arena_ != nullptr);
  auto* bytes = static_cast<std::byte*>(base);
  node->session_slots_ = reinterpret_cast<SessionSlot*>(bytes + layout.sessions_at);
  node->parked_ = reinterpret_cast<std::atomic<uint64_t>*>(bytes + layout.parked_at);
  node->hot_ = reinterpret_cast<HotPages*>(bytes + layout.hot_at);
  node->lines_ = reinterpret_cast<Line*>(bytes + layout.lines_at);
  node->frames_base_ = bytes + layout.frames_at;
  node->private_ = bytes + layout.private_at;
  node->private_bytes_ = layout.private_bytes;
  node->frames_ = spec.frames;
  node->sessions_max_ = spec.sessions_max;
  node->arena_->incarnation = incarnation;
  node->arena_->layout = layout;
  node->arena_->magic = kArenaMagic;
  for (uint32_t i = 0; i < spec.frames; i++) node->lines_[i].initialise();
  flight_path(pool.path(), id, incarnation, path, sizeof path);
  node->flight_.create(path, id, incarnation, spec.sessions_max);

  pool.header().state.store(PoolState::kInUse);
  entry.pid.store(getpid(), std::memory_order_relaxed);
  entry.pid_start.store(look_at_process(getpid()).start, std::memory_order_relaxed);
  entry.pid_namespace.store(pid_namespace(), std::memory_order_relaxed);
  entry.heartbeat_ns.store(monotonic_ns(), std::memory_order_relaxed);
  entry.incarnation.store(incarnation, std::memory_order_relaxed);
  entry.joined_view.store(table.view.fetch_add(1) + 1, std::memory_order_relaxed);
  entry.state.store(Membership::kLive, std::memory_order_release);  // pairs with died() and peer()
  table.view.fetch_add(1, std::memory_order_release);               // who looked before we were live looks again
  return node;
}

namespace {

void unmap(PeerArena* first) {
  while (first) {
    PeerArena* next = first->next;
    delete first;
    first = next;
  }
}

}  // namespace

Node::~Node() {
  for (auto& p : peers_) unmap(p.load());
  unmap(forgotten_);
  if (arena_) munmap(arena_, arena_bytes_);
  if (arena_fd_ >= 0) close(arena_fd_);
}

const Counters& Node::counters(SessionId s) const { return session_slots_[s.value].counters; }
void Node::fence(const char* reason) noexcept { fence_pool(pool_, reason); }
const char* Node::fence_reason() const noexcept { return fenced() ? coherence::fence_reason(pool_) : ""; }
uint32_t Node::hot_pages(HotPage* to, uint32_t room) const noexcept { return hot_->top(to, room, fence_); }
void Node::reset_hot_pages() noexcept { hot_->reset(fence_); }
void Node::ring() const noexcept { coherence::ring(*arena_); }

NodeInfo Node::info(NodeId n) const noexcept {
  const NodeEntry& e = pool_.table().node[n.value];
  return {NodeInfo::State(e.state.load(std::memory_order_acquire)), e.incarnation.load(std::memory_order_relaxed),
          e.pid.load(std::memory_order_relaxed)};
}

NodeSet Node::live() const noexcept {
  NodeSet set;
  for (uint32_t n = 0; n < pool_.nodes_max(); n++)
    if (NodeId node{uint8_t(n)}; info(node).state == NodeInfo::State::kLive) set = set.with(node);
  return set;
}

Result<PeerArena*> Node::peer(NodeId n) noexcept {
  if (n.value >= pool_.nodes_max()) return Errc::kNotFound;
  const NodeEntry& e = pool_.table().node[n.value];
  for (uint64_t tried = 0;;) {
    Membership state = e.state.load(std::memory_order_acquire);
    if (state != Membership::kLive && state != Membership::kLeaving) return Errc::kNotFound;
    uint64_t incarnation = e.incarnation.load(std::memory_order_relaxed);
    PeerArena* known = peers_[n.value].load(std::memory_order_acquire);  // pairs with the store below
    if (known && known->incarnation() == incarnation) return known;
    if (incarnation == tried) return Errc::kNoMemory;  // still there, so its file is, too
    tried = incarnation;
    SpinGuard guard(peers_spin_);  // other threads of this process; a process of PostgreSQL has one
    known = peers_[n.value].load(std::memory_order_relaxed);
    if (known && known->incarnation() == incarnation) return known;
    if (PeerArena* fresh = PeerArena::map(pool_, n, incarnation)) {
      forget(n);
      peers_[n.value].store(fresh, std::memory_order_release);
    }
  }
}

void Node::forget(NodeId n) noexcept {
  PeerArena* known = peers_[n.value].exchange(nullptr, std::memory_order_acq_rel);
  if (known == nullptr) return;
  known->next = forgotten_;
  forgotten_ = known;
}

// Whoever is alone in his process is here, and not in the middle of a message; of several somebody may be.
void Node::unmap_forgotten() noexcept {
  if (sessions_here_.load(std::memory_order_acquire) > 1) return;
  PeerArena* all;
  {
    SpinGuard guard(peers_spin_);
    all = std::exchange(forgotten_, nullptr);
  }
  unmap(all);
}

bool Node::reach_peers() noexcept {
  const uint64_t view = pool_.table().view.load(std::memory_order_acquire);  // pairs with join()
  if (reached_view_.load(std::memory_order_relaxed) == view) return true;
  for (uint32_t n = 0; n < pool_.nodes_max(); n++) {
    NodeId node{uint8_t(n)};
    if (node == id_) continue;
    const auto mapped = peer(node);
    if (mapped) continue;
    if (mapped.error() == Errc::kNoMemory) return false;
    SpinGuard guard(peers_spin_);
    forget(node);
  }
  unmap_forgotten();
  reached_view_.store(view, std::memory_order_relaxed);
  return true;
}

void Node::share_mapping(Node& peer) {
  SpinGuard guard(peers_spin_);
  forget(peer.id_);
  peers_[peer.id_.value].store(PeerArena::alias(*peer.arena_), std::memory_order_release);
}

Status Node::withdraw(bool* last, Problem* problem) {
  if (fenced()) return problem->set(Errc::kFenced, "%s", fence_reason());
  NodeTable& table = pool_.table();
  table.view.fetch_add(1);
  table.node[id_.value].state.store(Membership::kAbsent, std::memory_order_release);  // our last reply came before
  table.view.fetch_add(1, std::memory_order_release);  // who looked before looks again (N7)
  left_ = true;
  char path[600];
  arena_path(pool_, id_, incarnation_, path, sizeof path);
  unlink(path);
  flight_path(pool_.path(), id_, incarnation_, path, sizeof path);
  unlink(path);
  *last = live_nodes(pool_) == 0;
  if (!*last) return {};
  if (pool_.durable_path()) return pool_.save(problem);
  pool_.header().state.store(PoolState::kClean);
  return {};
}

}  // namespace coherence
