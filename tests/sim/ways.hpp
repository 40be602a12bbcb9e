// Ways: the Network of the simulator: a way takes virtual time, connections break, and what comes to a node that has
// died is delayed until its next incarnation is there.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "coherence/base/ids.hpp"
#include "options.hpp"
#include "tests/support/far_memory.hpp"

namespace sim {

class Ways final : public gcl_test::Network {
 public:
  explicit Ways(const Options&);
  void carry(std::function<void()> arrival) override;
  void wait() override;
  std::optional<int> breaks_after(int operations) override;
  coherence::BatchState broken() override;
  bool one_in(uint32_t n) override;
  coherence::NodeSet nodes() const { return nodes_; }  // that a connection broke for
  uint64_t first_ns() const { return first_ns_; }      // when; 0: none did
  // kCutOffGoesOn: called, in a fiber of nobody, with the node that its peers are to take for dead.
  std::function<void(coherence::NodeId)> takes_for_dead;

  // --- of members ----------------------------------------------------------------------------------------------------
  // Some time later, within kTableNsMax, in a fiber of that node, unless it has died meanwhile.  Scheduler::kNobody: in
  // any case, whatever becomes of the sender.
  void carry_to(int node, std::function<void()> arrival);
  // The same, much later than what is sent now.
  void carry_late(std::function<void()> arrival);
  void wait_for_answer();
  // The connection of a call breaks before, or after, it has been carried out.
  enum class CallBreaks : uint8_t { kNot, kBefore, kAfter };
  CallBreaks call_breaks();
  uint64_t calls_broken = 0;

  // --- messages to nodes that have died ------------------------------------------------------------------------------
  void page_sets_out(coherence::NodeId to);
  void delay(coherence::NodeId to, std::function<void()> arrival) { delayed_[to.value].push_back(std::move(arrival)); }
  void deliver_delayed(coherence::NodeId to);
  void comes_again(coherence::NodeId node) { coming_ = coming_.with(node); }  // until what was delayed is delivered
  bool is_away(coherence::NodeId) const;
  uint64_t answers_delayed = 0;

 private:
  void note_broken();
  void go_on_cut_off();
  const uint32_t break_one_in_, call_breaks_;
  const bool breaks_once_;
  const coherence::NodeId crash_node_;
  uint64_t pages_until_crash_;
  coherence::NodeSet nodes_, coming_;
  uint64_t first_ns_ = 0;
  std::array<std::vector<std::function<void()>>, coherence::kNodesMax> delayed_;
};

}  // namespace sim
