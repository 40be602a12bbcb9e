// What a message does to the node that it reaches: words in that node's arena, and the processes that are woken.  The
// same whether a peer that has the arena mapped brings it, or a process of the node itself.
#pragma once

#include <atomic>
#include <cstdint>

#include "coherence/base/ids.hpp"
#include "coherence/member/arena.hpp"
#include "coherence/message/messenger.hpp"
#include "coherence/message/slots.hpp"

namespace coherence {

// `from` asks with that slot of its own.
void leave_request(ArenaHeader& arena, NodeId from, uint16_t slot) noexcept;
// Calls the handler for all that were left; whether one was.
bool take_requests(ArenaHeader& arena, RequestHandler& handler) noexcept;
// Behind the page, if one comes with it.
void leave_reply(ArenaHeader& arena, RequestSlot& slot, NodeId from, ReplyWord word) noexcept;
// The word names the node by now, and the page may leave it.  It could not before, so the line has it still.
void end_in_flight(ArenaHeader& arena, std::atomic<uint8_t>& mark) noexcept;
// As Wakeup::wake().
void signal_event(ArenaHeader& arena, uint16_t event, uint16_t otherwise) noexcept;

}  // namespace coherence
