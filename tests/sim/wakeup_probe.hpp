// WakeupProbe: processes that do on all nodes what the layers above do with wakeup events (wakeup.look-again,
// wakeup.count-look-sleep): one on each node posts a batch for a peer, and wakes it; one sleeps on its node's event,
// and looks again when it is woken.  A wakeup between living nodes is not lost, and what was done before it is seen.
#pragma once

#include <array>
#include <cstdint>

#include "coherence/member/node.hpp"
#include "coherence/region/table_changes.hpp"
#include "options.hpp"
#include "scheduler.hpp"

namespace sim {

class WakeupProbe {
 public:
  static constexpr int kRegion = 3;  // of the pool: a count for each node, of what was posted for it
  static constexpr uint64_t kRegionBytes = 4096;
  static constexpr uint16_t kEvent = 7;

  // In fibers of the node, while `goes_on`.
  template <class GoesOn>
  void post(coherence::Node& node, int nodes, GoesOn goes_on) {
    coherence::Counters counters;
    const auto memory = node.open_memory(counters);
    for (;;) {
      scheduler()->sleep(scheduler()->random().between(kMs, 8 * kMs));
      if (!goes_on() || node.fenced()) return;
      post_one(node, *memory, coherence::NodeId{uint8_t(scheduler()->random().below(uint64_t(nodes)))});
    }
  }
  template <class GoesOn>
  void attend(coherence::Node& node, GoesOn goes_on) {
    coherence::Counters counters;
    const auto memory = node.open_memory(counters);
    attended_[node.id().value] = node.incarnation();
    while (goes_on() && !node.fenced()) look_and_sleep(node, *memory);
  }

  // A node has died or leaves: what was under way to it, or from it, may be lost.
  void forget(coherence::NodeId);
  // Between runs of the scheduler:
  bool pending(const coherence::TableChanges& members) const;  // a process has been woken, and has not looked
  void check(const coherence::TableChanges& members, const Options&) const;
  uint64_t woken() const { return woken_; }  // looks that found something

 private:
  struct Due {
    uint64_t count = 0, since = 0, incarnation = 0;  // since 0: nothing is
    coherence::NodeId by;
  };
  bool is_pending(size_t node, const coherence::TableChanges& members) const;
  void post_one(coherence::Node&, coherence::Memory&, coherence::NodeId to);
  void look_and_sleep(coherence::Node&, coherence::Memory&);
  std::array<Due, coherence::kNodesMax> due_;
  std::array<uint64_t, coherence::kNodesMax> seen_ = {}, attended_ = {};  // counts, incarnations
  uint64_t woken_ = 0;
};

}  // namespace sim
