#include "coherence/inspect/flight_view.hpp"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "coherence/inspect/pool_view.hpp"
#include "coherence/message/slots.hpp"

namespace coherence {
namespace {

constexpr uint64_t kHeadBytes = offsetof(FlightRing, event);
static_assert(sizeof(FlightRing) == kHeadBytes + sizeof(FlightRing::event));

// The head of a ring: all of it but the events.
struct Head {
  alignas(FlightRing) std::byte bytes[kHeadBytes];
  const FlightRing& ring() const { return *reinterpret_cast<const FlightRing*>(bytes); }
};

constexpr int kVersionAt = 56;  // bits of the magic number below it are the name

bool is_of_later_version(uint64_t magic) {
  constexpr uint64_t kName = (uint64_t{1} << kVersionAt) - 1;
  return (magic & kName) == (kFlightMagic & kName) && magic > kFlightMagic;
}

}  // namespace

Result<std::unique_ptr<FlightView>> FlightView::open(const PoolView& pool, NodeId node, Problem* problem) {
  if (node.value >= pool.header().nodes_max)
    return problem->set(Errc::kNotFound, "the pool has room for nodes 0 to %u, not for %u", pool.header().nodes_max - 1,
                        node.value);
  const NodeEntry& entry = pool.table().node[node.value];
  if (entry.state.load(std::memory_order_relaxed) == MemberState::kAbsent)
    return problem->set(Errc::kNotFound, "node %u is not in the pool", node.value);
  char path[600];
  flight_path(pool.path().c_str(), node, entry.incarnation.load(std::memory_order_relaxed), path, sizeof path);
  return open(path, problem);
}

Result<std::unique_ptr<FlightView>> FlightView::open(const char* path, Problem* problem) {
  std::unique_ptr<FlightView> view(new FlightView(::open(path, O_RDONLY | O_CLOEXEC)));
  if (!view->file_.open())
    return problem->set(errno == ENOENT ? Errc::kNotFound : Errc::kSystem, "cannot read %s: %s", path, strerror(errno));
  FlightHeader& h = view->header_;
  const bool read = read_all(view->file_.fd(), reinterpret_cast<std::byte*>(&h), sizeof h, 0);
  if (read && is_of_later_version(h.magic))
    return problem->set(Errc::kIncompatible,
                        "%s has version %c, and version %c is read here: use gclctl of that version", path,
                        char(h.magic >> kVersionAt), char(kFlightMagic >> kVersionAt));
  if (!read || h.magic != kFlightMagic || h.event_bytes != sizeof(FlightEvent) || h.events != kFlightEvents ||
      h.sessions > uint32_t(kSessionsMax))
    return problem->set(Errc::kCorrupt, "%s is not a file of flight recorders, or of a former version", path);
  return view;
}

// The writer may go on meanwhile: what it may have written over since `written` was read first is dropped.
bool FlightView::recording(uint32_t session, Recording* to) const {
  const auto read = [&](uint64_t at, void* there, uint64_t bytes) {
    return read_all(file_.fd(), static_cast<std::byte*>(there), bytes, flight_ring_at(session) + at);
  };
  Head head;
  if (session >= sessions() || !read(0, head.bytes, kHeadBytes)) return false;
  const uint64_t written = head.ring().written.load(std::memory_order_relaxed);
  std::vector<FlightEvent> ring(kFlightEvents);
  Head later;
  if (head.ring().pid.load(std::memory_order_relaxed) == 0 ||
      !read(kHeadBytes, ring.data(), sizeof(FlightRing::event)) || !read(0, later.bytes, kHeadBytes))
    return false;
  to->pid = head.ring().pid.load(std::memory_order_relaxed);
  to->ended = head.ring().ended.load(std::memory_order_relaxed) != 0;
  to->began = head.ring().began.load(std::memory_order_relaxed);
  to->then = head.ring().then();
  to->now = Moment::now();
  to->written = written;
  to->first = std::min(written, first_whole(later.ring().written.load(std::memory_order_relaxed)));
  to->events.clear();
  for (uint64_t n = to->first; n < written; n++) to->events.push_back(ring[n % kFlightEvents]);
  return true;
}

}  // namespace coherence
