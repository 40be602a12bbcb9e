#include "coherence/inspect/arena_view.hpp"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "coherence/inspect/pool_view.hpp"

namespace coherence {
namespace {

constexpr uint32_t kLinesAtOnce = 256;

// Whether the parts lie one behind the other, in memory that can be counted: what is read by it stays within bounds.
bool makes_sense(const ArenaLayout& l) {
  return l.frames > 0 && l.sessions_max <= uint32_t(kSessionsMax) && l.sessions_at <= l.parked_at &&
         l.parked_at <= l.hot_at && l.hot_at <= l.lines_at && l.lines_at <= l.frames_at &&
         l.frames_at <= l.private_at && l.private_at <= l.bytes &&
         l.lines_at + uint64_t{l.frames} * sizeof(Line) <= l.frames_at &&
         l.frames_at + uint64_t{l.frames} * kPageSize <= l.private_at;
}

}  // namespace

Result<std::unique_ptr<ArenaView>> ArenaView::open(const PoolView& pool, NodeId node, Problem* problem) {
  if (node.value >= pool.header().nodes_max)
    return problem->set(Errc::kNotFound, "the pool has room for nodes 0 to %u, not for %u", pool.header().nodes_max - 1,
                        node.value);
  const NodeEntry& entry = pool.table().node[node.value];
  if (entry.state.load(std::memory_order_relaxed) == MemberState::kAbsent)
    return problem->set(Errc::kNotFound, "node %u is not in the pool", node.value);
  char path[600];
  const uint64_t incarnation = entry.incarnation.load(std::memory_order_relaxed);
  arena_path(pool.path().c_str(), node, incarnation, path, sizeof path);
  std::unique_ptr<ArenaView> view(new ArenaView(::open(path, O_RDONLY | O_CLOEXEC)));
  if (!view->file_.open())
    return problem->set(errno == ENOENT ? Errc::kNotFound : Errc::kSystem, "cannot read %s: %s", path, strerror(errno));
  view->path_ = path;
  if (!view->read(0, &view->header_, sizeof view->header_) || view->header_.magic != kArenaMagic ||
      view->header_.incarnation != incarnation || !makes_sense(view->header_.layout))
    return problem->set(Errc::kCorrupt, "%s is not the arena of node %u, or of another version", path, node.value);
  return view;
}

bool ArenaView::read(uint64_t at, void* to, uint64_t bytes) const {
  return read_all(file_.fd(), static_cast<std::byte*>(to), bytes, at);
}

bool ArenaView::line(uint32_t index, Line::Sight* to) const {
  alignas(Line) std::byte bytes[sizeof(Line)];
  if (index >= layout().frames || !read(layout().lines_at + uint64_t{index} * sizeof(Line), bytes, sizeof bytes))
    return false;
  *to = reinterpret_cast<const Line*>(bytes)->sight();
  return true;
}

void ArenaView::for_lines(const std::function<bool(uint32_t, const Line::Sight&)>& visit) const {
  struct alignas(Line) Room {
    std::byte bytes[sizeof(Line)];
  };
  std::vector<Room> some(kLinesAtOnce);
  for (uint32_t first = 0; first < layout().frames; first += kLinesAtOnce) {
    const uint32_t count = std::min(kLinesAtOnce, layout().frames - first);
    if (!read(layout().lines_at + uint64_t{first} * sizeof(Line), some.data(), count * sizeof(Line))) return;
    for (uint32_t i = 0; i < count; i++)
      if (!visit(first + i, reinterpret_cast<const Line*>(some[i].bytes)->sight())) return;
  }
}

bool ArenaView::session(uint32_t index, SessionSlot* to) const {
  return index < layout().sessions_max &&
         read(layout().sessions_at + uint64_t{index} * sizeof(SessionSlot), to, sizeof *to);
}

bool ArenaView::frame(uint32_t index, std::byte* to) const {
  return index < layout().frames && read(layout().frames_at + uint64_t{index} * kPageSize, to, kPageSize);
}

}  // namespace coherence
