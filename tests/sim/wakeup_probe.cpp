#include "wakeup_probe.hpp"

#include "coherence/base/os.hpp"
#include "findings.hpp"
#include "mutation.hpp"
#include "seams.hpp"

namespace sim {

using namespace coherence;  // NOLINT: the simulator speaks of nothing else

namespace {

constexpr uint32_t kSleepMs = 1'000;        // so long that only a wakeup ends it in time
constexpr uint64_t kWokenNsMax = 10 * kMs;  // the way there, and a look

PoolAddress word_of(const Node& node, NodeId of) {
  const PoolAddress first = node.pool().region(WakeupProbe::kRegion).at;
  return PoolAddress::at(first.node(), first.offset() + of.value * uint64_t{8});
}

}  // namespace

// The batch is complete before the wakeup sets out (wakeup.look-again).
void WakeupProbe::post_one(Node& node, Memory& memory, NodeId to) {
  const NodeInfo there = node.info(to);
  if (there.state != MemberState::kLive || node.info(node.id()).state != MemberState::kLive) return;
  const bool overtakes = mutation == Mutation::kWakeOvertakes;
  if (overtakes) node.wake(to, kEvent);
  const auto before = memory.faa(word_of(node, to), 1);
  if (!before) return;
  if (tracing) trace("wakes node %d: %llu", to.value, static_cast<unsigned long long>(*before + 1));
  if (!overtakes) node.wake(to, kEvent);
  Due& due = due_[to.value];
  if (*before + 1 <= due.count || seen_[to.value] > *before) return;
  due.count = *before + 1;
  if (due.since == 0 || due.incarnation != there.incarnation)
    due = {due.count, scheduler()->now(), there.incarnation, node.id()};
}

void WakeupProbe::look_and_sleep(Node& node, Memory& memory) {
  WakeupEvent& event = node.event(kEvent);
  const uint32_t count = event.count.load(std::memory_order_seq_cst);
  const auto found = memory.load(word_of(node, node.id()));
  if (!found) return;
  uint64_t& seen = seen_[node.id().value];
  if (tracing) trace("looks, and sees %llu", static_cast<unsigned long long>(*found));
  if (*found > seen) {
    seen = *found;
    woken_++;
    Due& due = due_[node.id().value];
    if (due.since != 0) due.since = due.count <= seen ? 0 : scheduler()->now();
  } else {
    futex_wait(event.count, count, kSleepMs);
  }
}

void WakeupProbe::forget(NodeId node) {
  for (size_t to = 0; to < due_.size(); to++)
    if (to == node.value || due_[to].by == node) due_[to].since = 0;
}

// A node that has left since, or is about to, or only just joins, may have lost it; or one of its processes has died.
bool WakeupProbe::is_pending(size_t node, const TableChanges& members) const {
  const NodeInfo info = members.info(NodeId{uint8_t(node)});
  if (due_[node].since == 0 || scheduler()->dying(int(node)) || scheduler()->dying(due_[node].by.value)) return false;
  return info.state == MemberState::kLive && info.incarnation == due_[node].incarnation &&
         info.incarnation == attended_[node] && !members.fenced();
}

bool WakeupProbe::pending(const TableChanges& members) const {
  for (size_t n = 0; n < due_.size(); n++)
    if (is_pending(n, members)) return true;
  return false;
}

void WakeupProbe::check(const TableChanges& members, const Options& options) const {
  const uint64_t now = scheduler()->now();
  for (size_t n = 0; n < due_.size(); n++) {
    if (!is_pending(n, members)) continue;
    const Due& due = due_[n];
    uint64_t ns = kWokenNsMax + (options.pace.stall_one_in ? 4 * options.pace.stall_ns_max : 0);
    for (const int node : {int(n), int(due.by.value)})
      ns += scheduler()->paused_ns(node, due.since, now) + 2 * options.slow_stall_ns_max(node);
    if (now > due.since + ns)
      object(Checker::kProgress, "node %d was woken by node %d at %llu ns, and has not seen why", int(n), due.by.value,
             static_cast<unsigned long long>(due.since));
  }
}

}  // namespace sim
