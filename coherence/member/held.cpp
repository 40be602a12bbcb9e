#include "coherence/member/held.hpp"

#include "coherence/base/os.hpp"
#include "coherence/member/arena.hpp"
#include "coherence/member/node.hpp"
#include "coherence/message/slots.hpp"

namespace coherence {

Held Node::held() const noexcept {
  Held sum;
  for (uint32_t i = 0; i < parts_.frames; i++) {
    Line& line = parts_.lines[i];
    const LocalWord word = line.word();
    sum.pages += line.page() != PageId{};
    sum.shared += word.shared();
    sum.exclusive += word.exclusive();
    SpinGuard guard(fields(line).spin, parts_.fence);
    sum.operations += fields(line).state.op != LineOp::kIdle;
    sum.parked += fields(line).state.parked_count;
    sum.holds += fields(line).state.holds_shared + fields(line).state.holds_exclusive;
  }
  for (uint32_t i = 0; i < parts_.sessions_max; i++) {
    const SessionSlot& session = parts_.sessions[i];
    sum.sessions += session.in_use.load(std::memory_order_relaxed) != 0;
    for (const RequestSlot& slot : session.slot)
      sum.request_slots += slot.state.load(std::memory_order_relaxed) != SlotState::kFree;
  }
  return sum;
}

}  // namespace coherence
