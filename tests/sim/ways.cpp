#include "ways.hpp"

#include <utility>

#include "mutation.hpp"
#include "scheduler.hpp"

namespace sim {

using namespace coherence;  // NOLINT: the simulator speaks of nothing else

namespace {

constexpr uint64_t kDelayedNsMax = 4'000 * kUs;  // while the next incarnation is at work
constexpr uint64_t kCutOffNs = 60 * kMs;         // kCutOffGoesOn: half of them its peers repair

// A few are as late as kTableNsMax allows.
uint64_t way_of_members() {
  Random& random = scheduler()->random();
  if (random.one_in(16)) return random.below(kTableNsMax);
  return random.below(random.one_in(4) ? kWayNsMax : kWayNsMax / 16);
}

}  // namespace

Ways::Ways(const Options& o)
    : break_one_in_(o.break_one_in),
      call_breaks_(o.call_breaks),
      breaks_once_(o.survives),
      crash_node_{uint8_t(o.crash_node)},
      pages_until_crash_(o.crash_under_page) {}

void Ways::carry(std::function<void()> arrival) {
  if (!scheduler()->in_fiber()) return arrival();
  scheduler()->spawn_verbs([arrival = std::move(arrival)] {
    Random& random = scheduler()->random();
    scheduler()->sleep(random.below(random.one_in(32) ? kWayNsMax : kWayNsMax / 16));
    arrival();
  });
}

void Ways::wait() {
  if (scheduler()->in_fiber()) scheduler()->spin(scheduler()->random().below(2 * kUs));
}

std::optional<int> Ways::breaks_after(int operations) {
  if (!scheduler()->in_fiber() || (breaks_once_ && !nodes_.empty())) return std::nullopt;
  if (!scheduler()->random().one_in(break_one_in_)) return std::nullopt;
  if (mutation == Mutation::kCutOffGoesOn && takes_for_dead) {
    go_on_cut_off();
    return std::nullopt;
  }
  return int(scheduler()->random().below(uint64_t(operations) + 1));
}

void Ways::note_broken() {
  nodes_ = nodes_.with(NodeId{uint8_t(scheduler()->node())});
  if (first_ns_ == 0) first_ns_ = scheduler()->now();
}

// It stands still while its peers repair what it had, and goes on where it was; its batches take place.  So it is with
// a process that was stopped, where neither it nor the memory nodes look (tcp.lease).
void Ways::go_on_cut_off() {
  note_broken();
  const int node = scheduler()->node();
  scheduler()->pause_node(node, scheduler()->now(), kCutOffNs / 2);
  scheduler()->spawn_verbs(Scheduler::kNobody, [this, node] {
    takes_for_dead(NodeId{uint8_t(node)});
    scheduler()->sleep(kCutOffNs);
    scheduler()->crash(node);
  });
}

BatchState Ways::broken() {
  note_broken();
  return mutation == Mutation::kUnknownSucceeds ? BatchState::kDone : BatchState::kUnknown;
}

bool Ways::one_in(uint32_t n) { return scheduler()->in_fiber() && scheduler()->random().one_in(n); }

void Ways::carry_to(int node, std::function<void()> arrival) {
  if (!scheduler()->in_fiber()) return arrival();
  scheduler()->spawn_verbs(node, [arrival = std::move(arrival)] {
    scheduler()->sleep(way_of_members());
    arrival();
  });
}

void Ways::carry_late(std::function<void()> arrival) {
  scheduler()->spawn_verbs(Scheduler::kNobody, [arrival = std::move(arrival)] {
    scheduler()->sleep(scheduler()->random().below(kDelayedNsMax));
    arrival();
  });
}

void Ways::wait_for_answer() {
  if (scheduler()->in_fiber()) scheduler()->spin(scheduler()->random().below(20 * kUs));
}

Ways::CallBreaks Ways::call_breaks() {
  if (!scheduler()->in_fiber() || !scheduler()->random().one_in(call_breaks_)) return CallBreaks::kNot;
  calls_broken++;
  return scheduler()->random().one_in(2) ? CallBreaks::kBefore : CallBreaks::kAfter;
}

void Ways::page_sets_out(NodeId to) {
  if (to == crash_node_ && pages_until_crash_ > 0 && --pages_until_crash_ == 0) scheduler()->crash(to.value);
}

bool Ways::is_away(NodeId node) const {
  return scheduler()->in_fiber() && (scheduler()->crashed(node.value) || coming_.has(node));
}

void Ways::deliver_delayed(NodeId to) {
  coming_ = coming_.without(to);
  for (auto& arrival : std::exchange(delayed_[to.value], {}))
    scheduler()->spawn_verbs([arrival = std::move(arrival)] {
      scheduler()->sleep(scheduler()->random().below(kDelayedNsMax));
      arrival();
    });
}

}  // namespace sim
