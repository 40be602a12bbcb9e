// The wakeup events of a primary (coherence/message/wakeup.hpp): which is for which worker.
#pragma once

#include "coherence/message/wakeup.hpp"
#include "extension/engine/ddl/ddl_words.hpp"

namespace gcl {

inline constexpr uint16_t kMemberEvent = 0;       // the member worker: waits for transactions, deadlocks
inline constexpr uint16_t kDdlLauncherEvent = 1;  // ddl/node/ddl_wakeup.hpp
inline constexpr uint16_t kDdlSlotEvent = 2;      // + slot: the apply worker that serves it
static_assert(kDdlSlotEvent + engine::kDdlSlotsMax <= coherence::kWakeupEvents);

}  // namespace gcl
