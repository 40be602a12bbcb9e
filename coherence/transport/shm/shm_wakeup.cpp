#include "coherence/transport/shm/shm_wakeup.hpp"

#include "coherence/base/verify.hpp"
#include "coherence/member/arrival.hpp"

namespace coherence {

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
  signal_event(*there, event, otherwise);
}

}  // namespace coherence
