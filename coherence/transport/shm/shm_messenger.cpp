#include "coherence/transport/shm/shm_messenger.hpp"

#include <bit>

#include "coherence/base/os.hpp"
#include "coherence/base/racy_copy.hpp"
#include "coherence/base/verify.hpp"
#include "coherence/message/message_counters.hpp"

namespace coherence {

// Null: the node is not in the pool any more.  The session has reached all peers (coherence.peers-reached-first) but
// those that have joined since.  One that cannot be mapped then would wait without end, or let a session wait: that
// fences the pool.
PeerArena* ShmMessenger::reach(NodeId node) noexcept {
  const auto mapped = peers_.at(node);
  if (mapped) return *mapped;
  if (mapped.error() == Errc::kNoMemory)
    node_.members->fence("a process has no room to map a peer that has just joined");
  return nullptr;
}

void ShmMessenger::ask(NodeId to, uint16_t slot, PageId page) noexcept {
  PeerArena* there = reach(to);
  node_.hot->count(page, PageMessage::kRequestSent, node_.fence);
  if (!there) return;
  ArenaHeader& arena = there->header();  // of any incarnation: each takes only what is for it
  Inbox& inbox = arena.inbox[node_.id.value];
  // Publishes the slot; pairs with the exchanges of receive().  The order of the three is its order backwards.
  inbox.bits[slot / 64].fetch_or(uint64_t{1} << slot % 64, std::memory_order_seq_cst);
  inbox.words_set.fetch_or(uint64_t{1} << slot / 64, std::memory_order_seq_cst);
  arena.inbox_peers.fetch_or(NodeSet::of(node_.id).bits, std::memory_order_seq_cst);
  ring(arena);
}

bool ShmMessenger::receive(RequestHandler& handler) noexcept {
  NodeSet peers{node_.arena->inbox_peers.exchange(0, std::memory_order_seq_cst)};
  const bool any = !peers.empty();
  for (; !peers.empty(); peers = peers.without(peers.first())) {
    Inbox& inbox = node_.arena->inbox[peers.first().value];
    for (uint64_t words = inbox.words_set.exchange(0, std::memory_order_seq_cst); words; words &= words - 1) {
      int w = std::countr_zero(words);
      for (uint64_t bits = inbox.bits[w].exchange(0, std::memory_order_seq_cst); bits; bits &= bits - 1)
        handler.receive(peers.first(), uint16_t(w * 64 + std::countr_zero(bits)));
    }
  }
  return any;
}

// coherence.request-taken-once, coherence.messages-for-incarnation.
bool ShmMessenger::take_request(NodeId from, uint16_t slot, PeerRequest* request, PageId* page) noexcept {
  PeerArena* there = reach(from);
  RequestSlot* s = there ? there->slot(slot) : nullptr;
  if (!s) return false;
  std::atomic<uint64_t>& word = s->reply[node_.id.value];
  ReplyWord asked{word.load(std::memory_order_relaxed)};
  const ReplyWord taken = asked.taken();
  if (!asked.is_open() || !asked.is_for(node_.incarnation) ||
      !word.compare_exchange_strong(asked.raw, taken.raw, std::memory_order_acquire)) {
    counters_.add(Counter::kOutdated);
    return false;
  }
  *page = PageId{s->page.load(std::memory_order_relaxed)};  // the acquire pairs with fill_slot()
  *request = {from.value,
              s->kind.load(std::memory_order_relaxed),
              s->priority.load(std::memory_order_relaxed),
              uint8_t(there->incarnation()),
              slot,
              uint16_t(asked.serial())};
  return true;
}

// A late reply is not written (coherence.messages-for-incarnation).
uint32_t ShmMessenger::reply(const PeerRequest& request, const Reply& reply) noexcept {
  PeerArena* there = reach(NodeId{request.from});
  if (!there || uint8_t(there->incarnation()) != request.incarnation) return kNowhere;
  RequestSlot* s = there->slot(request.slot);
  VERIFY(s);
  const uint32_t line = s->line.load(std::memory_order_relaxed);
  // Published by the reply.
  if (reply.in_flight) there->in_flight(line)->store(in_flight_of(node_.id), std::memory_order_relaxed);
  if (carries_page(reply.kind)) {
    node_.hot->count(PageId{s->page.load(std::memory_order_relaxed)}, PageMessage::kPageSent, node_.fence);
    racy_copy(there->frame(line), reply.page, kPageSize);
  }
  counters_.add(reply_counter(reply.kind, true));
  const ReplyWord word = ReplyWord::of(request.id, reply.kind, reply.more);
  s->reply[node_.id.value].store(word.raw, std::memory_order_release);  // pairs with ProtocolDriver::collect()
  s->wakeup.fetch_add(1, std::memory_order_seq_cst);
  if (s->sleeping.load(std::memory_order_seq_cst)) futex_wake(s->wakeup, 1);  // pairs with Requester::await()
  if (s->state.load(std::memory_order_seq_cst) == SlotState::kAbandoned) ring(there->header());
  return line;
}

// The word names the node by now, and the page may leave it.  It could not before, so the line has it still.
void ShmMessenger::grant_complete(NodeId to, uint8_t incarnation, uint32_t line) noexcept {
  PeerArena* there = reach(to);
  if (!there || uint8_t(there->incarnation()) != incarnation) return;
  // One of this and MessageServer::wait_to_leave() sees the other.
  there->in_flight(line)->store(0, std::memory_order_seq_cst);
  ring(there->header());
}

}  // namespace coherence
