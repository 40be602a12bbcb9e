// gclctl trace: the flight recorders of a pool's nodes, in the order of time.
#include <fmt/format.h>

#include <algorithm>
#include <ctime>

#include "coherence/base/os.hpp"
#include "coherence/inspect/flight_view.hpp"
#include "coherence/inspect/pool_view.hpp"
#include "tools/gclctl/failure.hpp"
#include "tools/gclctl/look.hpp"
#include "tools/gclctl/verbs.hpp"

namespace gclctl {
namespace {

using coherence::FlightEvent;
using coherence::NodeId;
using coherence::PoolView;

struct Told {
  uint64_t ns;  // monotonic
  NodeId node;
  uint32_t session;
  int32_t pid;  // 0: of a session that had the slot before
  FlightEvent event;
};

// What is on a server's clock, for comparison with its log.
std::string time_of_day(uint64_t monotonic_ns, uint64_t now) {
  timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  const uint64_t ns = uint64_t(t.tv_sec) * 1000000000 + uint64_t(t.tv_nsec) - (now - monotonic_ns);
  const auto seconds = time_t(ns / 1000000000);
  tm local;
  localtime_r(&seconds, &local);
  return fmt::format("{:02}:{:02}:{:02}.{:06}", local.tm_hour, local.tm_min, local.tm_sec, ns % 1000000000 / 1000);
}

// Returns whether the node has recorders.
bool collect(const PoolView& pool, NodeId node, const TraceOptions& options, coherence::PageId page,
             std::vector<Told>* to) {
  coherence::Problem problem;
  const auto flights = coherence::FlightView::open(pool, node, &problem);
  if (!flights) {
    fmt::print(stderr, "gclctl: node {}: {}\n", node.value, problem.text);
    return false;
  }
  for (uint32_t s = 0; s < (*flights)->sessions(); s++) {
    if (options.session >= 0 && s != uint32_t(options.session)) continue;
    coherence::FlightView::Recording flight;
    if (!(*flights)->recording(s, &flight)) continue;
    for (size_t i = 0; i < flight.events.size(); i++) {
      const FlightEvent& e = flight.events[i];
      if (page.valid() && e.page != page.raw) continue;
      to->push_back({flight.ns_of(e), node, s, flight.first + i < flight.began ? 0 : flight.pid, e});
    }
  }
  return true;
}

int tell(PoolView& pool, const TraceOptions& options) {
  const coherence::PageId page = options.page.empty() ? coherence::PageId{} : page_named(pool, options.page);
  const auto nodes = nodes_named(pool, options.node);
  if (nodes.empty()) fail("no node is in the pool: what a node records goes when it leaves in order");
  std::vector<Told> events;
  bool any = false;
  for (const NodeId node : nodes) any |= collect(pool, node, options, page, &events);
  if (!any) return 1;
  std::stable_sort(events.begin(), events.end(), [](const Told& a, const Told& b) { return a.ns < b.ns; });
  const size_t first = events.size() > size_t(options.last) ? events.size() - size_t(options.last) : 0;
  const uint64_t now = coherence::monotonic_ns();
  for (size_t i = first; i < events.size(); i++) {
    const Told& e = events[i];
    fmt::print("{}  node {} session {} {}  {}\n", time_of_day(e.ns, now), e.node.value, e.session,
               e.pid ? fmt::format("process {}", e.pid) : "(before)", text_of_words(e.event));
  }
  if (events.empty()) fmt::print("nothing is recorded\n");
  return 0;
}

}  // namespace

int trace(const TraceOptions& options) {
  return look_into(options.where, [&](PoolView& pool) { return tell(pool, options); });
}

}  // namespace gclctl
