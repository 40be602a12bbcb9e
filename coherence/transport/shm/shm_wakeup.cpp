#include "coherence/transport/shm/shm_wakeup.hpp"

#include <climits>

#include "coherence/base/os.hpp"
#include "coherence/base/verify.hpp"

namespace coherence {

static void signal(WakeupEvent& event) noexcept {
  event.count.fetch_add(1, std::memory_order_seq_cst);
  futex_wake(event.count, INT_MAX);
}

Peers& peers_of(const NodeParts& node) noexcept {
  auto* wakeup = dynamic_cast<ShmWakeup*>(node.wakeup);
  VERIFY(wakeup != nullptr);
  return wakeup->peers();
}

void ShmWakeup::wake(NodeId to, uint16_t event, uint16_t otherwise) noexcept {
  VERIFY(event < kWakeupEvents && otherwise <= kNone);
  ArenaHeader* there = node_.arena;
  if (to != node_.id) {
    const auto mapped = peers_.at(to);
    if (!mapped) return;
    there = &(*mapped)->header();
  }
  signal(there->event[event]);
  // Behind the count: a process that ceases to attend has withdrawn, and looks once more or tells another one.
  if (otherwise != kNone && there->event[event].attended.load(std::memory_order_seq_cst) == 0)
    signal(there->event[otherwise]);
}

}  // namespace coherence
