#include "coherence/member/arrival.hpp"

#include <bit>
#include <climits>

#include "coherence/base/os.hpp"
#include "coherence/message/wakeup.hpp"

namespace coherence {

void leave_request(ArenaHeader& arena, NodeId from, uint16_t slot) noexcept {
  Inbox& inbox = arena.inbox[from.value];
  // Publishes the slot; pairs with the exchanges of take_requests().  The order of the three is its order backwards.
  inbox.bits[slot / 64].fetch_or(uint64_t{1} << slot % 64, std::memory_order_seq_cst);
  inbox.words_set.fetch_or(uint64_t{1} << slot / 64, std::memory_order_seq_cst);
  arena.inbox_peers.fetch_or(NodeSet::of(from).bits, std::memory_order_seq_cst);
  ring(arena);
}

bool take_requests(ArenaHeader& arena, RequestHandler& handler) noexcept {
  NodeSet peers{arena.inbox_peers.exchange(0, std::memory_order_seq_cst)};
  const bool any = !peers.empty();
  for (; !peers.empty(); peers = peers.without(peers.first())) {
    Inbox& inbox = arena.inbox[peers.first().value];
    for (uint64_t words = inbox.words_set.exchange(0, std::memory_order_seq_cst); words; words &= words - 1) {
      int w = std::countr_zero(words);
      for (uint64_t bits = inbox.bits[w].exchange(0, std::memory_order_seq_cst); bits; bits &= bits - 1)
        handler.receive(peers.first(), uint16_t(w * 64 + std::countr_zero(bits)));
    }
  }
  return any;
}

void leave_reply(ArenaHeader& arena, RequestSlot& slot, NodeId from, ReplyWord word) noexcept {
  slot.reply[from.value].store(word.raw, std::memory_order_release);  // pairs with ProtocolDriver::collect()
  slot.wakeup.fetch_add(1, std::memory_order_seq_cst);
  if (slot.sleeping.load(std::memory_order_seq_cst)) futex_wake(slot.wakeup, 1);  // pairs with Requester::await()
  if (slot.state.load(std::memory_order_seq_cst) == SlotState::kAbandoned) ring(arena);
}

// One of this and MessageServer::wait_to_leave() sees the other.
void end_in_flight(ArenaHeader& arena, std::atomic<uint8_t>& mark) noexcept {
  mark.store(0, std::memory_order_seq_cst);
  ring(arena);
}

static void signal(WakeupEvent& event) noexcept {
  event.count.fetch_add(1, std::memory_order_seq_cst);
  futex_wake(event.count, INT_MAX);
}

void signal_event(ArenaHeader& arena, uint16_t event, uint16_t otherwise) noexcept {
  signal(arena.event[event]);
  // Behind the count: a process that ceases to attend has withdrawn, and looks once more or tells another one.
  if (otherwise != Wakeup::kNone && arena.event[event].attended.load(std::memory_order_seq_cst) == 0)
    signal(arena.event[otherwise]);
}

}  // namespace coherence
