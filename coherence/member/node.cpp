#include "coherence/member/node.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "coherence/base/os.hpp"
#include "coherence/base/verify.hpp"
#include "coherence/member/arena.hpp"

namespace coherence {
namespace {

// Creates, allocates and maps an arena file.
Status make_arena(const char* path, uint64_t bytes, int* fd, void** base, Problem* problem) {
  *fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (*fd < 0) return problem->set(Errc::kSystem, "cannot create %s: %s", path, strerror(errno));
  if (int error = posix_fallocate(*fd, 0, off_t(bytes)); error != 0)
    return problem->set(error == ENOSPC ? Errc::kNoSpace : Errc::kSystem,
                        "cannot allocate %.0f MB of shared memory for %s: %s", double(bytes) / 1048576, path,
                        strerror(error));
  void* mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0);
  if (mapped == MAP_FAILED) return problem->set(Errc::kSystem, "cannot map %s: %s", path, strerror(errno));
  madvise(mapped, bytes, MADV_HUGEPAGE);
  *base = mapped;
  return {};
}

}  // namespace

Node::Node(Pool& pool, Transport& transport)
    : parts_(pool),
      transport_(&transport),
      members_(transport.open_membership(pool)),
      wakeup_(transport.open_wakeup(parts_)) {
  parts_.members = members_.get();
  parts_.wakeup = wakeup_.get();
  parts_.fence = &members_->fence_word();
}

Result<std::unique_ptr<Node>> Node::join(Pool& pool, NodeId id, const ArenaSpec& spec, Problem* problem,
                                         Transport& transport, PoolRepair* alone) {
  VERIFY(spec.frames > 0 && spec.sessions_max > 0 && spec.sessions_max <= uint32_t(kSessionsMax));
  std::unique_ptr<Node> node(new Node(pool, transport));
  Membership& members = *node->members_;
  GCL_TRY(members.begin_change(Membership::Patience::kWait, problem));
  GCL_TRY(pool.check_protocol(problem));
  if (alone != nullptr)
    if (const NodeSet dead = members.all_dead(); !dead.empty()) {
      const Status repaired = node->repair_alone(dead, *alone, problem);
      if (repaired.error() == Errc::kFenced && !node->fenced()) return Errc::kUnreached;  // a batch without an outcome
      GCL_TRY(repaired);
    }
  auto incarnation = members.reserve(id, problem);
  if (!incarnation) return incarnation.error();
  node->parts_.id = id;
  node->parts_.incarnation = *incarnation;
  const ArenaLayout layout = arena_layout(spec);
  char path[600];
  arena_path(pool, id, *incarnation, path, sizeof path);
  unlink(path);
  void* base = nullptr;
  Status ok = make_arena(path, layout.bytes, &node->arena_fd_, &base, problem);
  node->parts_.arena = static_cast<ArenaHeader*>(base);  // unmapped by the destructor, whatever comes
  node->arena_bytes_ = layout.bytes;
  if (ok) {
    VERIFY(base != nullptr);
    node->lay_out(static_cast<std::byte*>(base), layout);
    flight_path(pool.path(), id, *incarnation, path, sizeof path);
    node->flight_.create(path, id, *incarnation, spec.sessions_max);
    ok = members.publish(node->arena_fd_, problem);
  }
  members.end_change();
  if (ok) return node;
  node->unlink_files();
  return ok.error();
}

void Node::lay_out(std::byte* arena, const ArenaLayout& layout) noexcept {
  parts_.sessions = reinterpret_cast<SessionSlot*>(arena + layout.sessions_at);
  parts_.parked = reinterpret_cast<std::atomic<uint64_t>*>(arena + layout.parked_at);
  parts_.in_flight = reinterpret_cast<std::atomic<uint8_t>*>(arena + layout.in_flight_at);
  parts_.hot = reinterpret_cast<HotPages*>(arena + layout.hot_at);
  parts_.lines = reinterpret_cast<Line*>(arena + layout.lines_at);
  parts_.frames_base = arena + layout.frames_at;
  parts_.frames = layout.frames;
  parts_.sessions_max = layout.sessions_max;
  private_ = arena + layout.private_at;
  private_bytes_ = layout.private_bytes;
  parts_.arena->incarnation = parts_.incarnation;
  parts_.arena->layout = layout;
  parts_.arena->magic = kArenaMagic;
  for (uint32_t i = 0; i < layout.frames; i++) parts_.lines[i].initialise();
}

Node::~Node() {
  if (parts_.arena) munmap(parts_.arena, arena_bytes_);
  if (arena_fd_ >= 0) close(arena_fd_);
}

void Node::give_up() noexcept {
  const ArenaLayout layout = parts_.arena->layout;
  give_memory_back(arena_fd_, layout.shared_until(), layout.bytes);
  members_->give_up();
}

const Counters& Node::counters(SessionId s) const { return parts_.sessions[s.value].counters; }
void Node::fence(const char* reason) noexcept { members_->fence(reason); }
const char* Node::fence_reason() const noexcept { return fenced() ? members_->fence_reason() : ""; }
uint32_t Node::hot_pages(HotPage* to, uint32_t room) const noexcept { return parts_.hot->top(to, room, parts_.fence); }
void Node::reset_hot_pages() noexcept { parts_.hot->reset(parts_.fence); }
bool Node::swept(NodeId dead, uint64_t incarnation) noexcept {
  if (!members_->swept(dead, incarnation)) return false;
  wakeup_->ring_workers();
  ring();
  return true;
}
void Node::ring() const noexcept { parts_.ring_worker(); }

NodeSet Node::live() const noexcept {
  NodeSet set;
  for (uint32_t n = 0; n < members_->nodes_max(); n++)
    if (NodeId node{uint8_t(n)}; info(node).state == MemberState::kLive) set = set.with(node);
  return set;
}

Status Node::withdraw(bool* last, Problem* problem) {
  auto empty = members_->withdraw(problem);
  if (!empty) return empty.error();
  left_ = true;
  unlink_files();
  *last = *empty;
  return *last ? members_->close(problem) : Status();
}

void Node::unlink_files() const noexcept { unlink_node_files(parts_.pool, parts_.id, parts_.incarnation); }

}  // namespace coherence
