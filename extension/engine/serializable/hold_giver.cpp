#include "extension/engine/serializable/hold_giver.hpp"

#include <algorithm>

#include "extension/engine/serializable/given_up.hpp"
#include "extension/engine/stop/stop_point.hpp"

namespace engine {

namespace {

// Nothing tells when a session becomes idle.  A quarter of its patience is how exactly that is seen.
constexpr uint32_t kLookMsMin = 1, kLookMsMax = 50;
uint32_t look_ms(int32_t patience) { return std::clamp(uint32_t(patience) / 4, kLookMsMin, kLookMsMax); }

}  // namespace

Result<std::optional<uint32_t>> HoldGiver::round() {
  std::optional<uint32_t> due;
  bool read = false;
  for (uint32_t i = 0; i < table_.sessions(); ++i) {
    const HolderWord word = table_.holder(i).word();
    if (word.state() == HolderState::kNone) continue;
    if (!read) GCL_TRY(txns_.wanted_holds(txns_.node(), table_.sessions(), wanted_.data()));
    read = true;
    if (wanted_[i] != HoldWord::wanted(word.by())) continue;
    const auto next = look_at({uint16_t(i)}, word.by(), word.state());
    if (!next) return next.error();
    if (*next) due = std::min(due.value_or(kLookMsMax), **next);
  }
  return due;
}

Result<std::optional<uint32_t>> HoldGiver::look_at(SessionId session, TxnId by, HolderState state) {
  std::optional<uint32_t> due;
  Holder& holder = table_.holder(session.value);
  const int32_t patience = holder.patience_ms();
  holder.note_wanted();
  if (state == HolderState::kKeeps) return due;  // its end wakes the waiters
  if (state == HolderState::kHolds) {
    if (patience == kPatienceForever) return due;
    const auto idle = idleness_.idle_ms(session, holder);
    if (!idle) return std::optional(look_ms(patience));
    if (*idle < uint32_t(patience)) return std::optional(std::min(uint32_t(patience) - *idle, kLookMsMax));
    stop_at(txns_.session(), StopPoint::kHoldsUnmarked);
    if (!holder.take(by, *idle)) return due;
    table_.counts().given_up.fetch_add(1, std::memory_order_relaxed);
    stop_at(txns_.session(), StopPoint::kHoldsMarked);
  }
  GCL_TRY(let_go_given_up(txns_, table_, session, by));  // again, where a former round could not tell
  return due;
}

}  // namespace engine
