// Counting what the node's processes hold.
#include "coherence/member/held.hpp"

#include "coherence/base/os.hpp"
#include "coherence/member/arena.hpp"
#include "coherence/member/node.hpp"
#include "coherence/message/slots.hpp"

namespace coherence {

Held Node::held() const noexcept {
  Held sum;
  for (uint32_t i = 0; i < frames_; i++) {
    Line& line = lines_[i];
    const LocalWord word = line.word();
    sum.pages += line.page() != PageId{};
    sum.shared += word.shared();
    sum.exclusive += word.exclusive();
    SpinGuard guard(line.spin_, fence_);
    sum.operations += line.state_.op != LineOp::kIdle;
    sum.parked += line.state_.parked_count;
    sum.holds += line.state_.holds_shared + line.state_.holds_exclusive;
  }
  for (uint32_t i = 0; i < sessions_max_; i++) {
    const SessionSlot& session = session_slots_[i];
    sum.sessions += session.in_use.load(std::memory_order_relaxed) != 0;
    for (const RequestSlot& slot : session.slot)
      sum.request_slots += slot.state.load(std::memory_order_relaxed) != SlotState::kFree;
  }
  return sum;
}

}  // namespace coherence
