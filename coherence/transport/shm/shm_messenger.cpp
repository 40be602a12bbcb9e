#include "coherence/transport/shm/shm_messenger.hpp"

#include "coherence/base/racy_copy.hpp"
#include "coherence/base/verify.hpp"
#include "coherence/member/arrival.hpp"
#include "coherence/message/message_counters.hpp"

namespace coherence {

// Null: the node is not in the pool any more.  The session has reached all peers (coherence.peers-reached-first) but
// those that have joined since.  One that cannot be mapped then would wait without end, or let a session wait: that
// ends the process (repair.no-memory-is-a-crash).
PeerArena* ShmMessenger::reach(NodeId node) noexcept {
  const auto mapped = peers_.at(node);
  if (mapped) return *mapped;
  if (mapped.error() == Errc::kNoMemory) end_process("it has no room to map a peer that has just joined");
  return nullptr;
}

void ShmMessenger::ask(NodeId to, uint16_t slot, PageId page) noexcept {
  PeerArena* there = reach(to);
  node_.hot->count(page, PageMessage::kRequestSent, node_.fence);
  if (!there) return;
  leave_request(there->header(), node_.id, slot);  // of any incarnation: each takes only what is for it
}

bool ShmMessenger::receive(RequestHandler& handler) noexcept { return take_requests(*node_.arena, handler); }

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
  leave_reply(there->header(), *s, node_.id, ReplyWord::of(request.id, reply.kind, reply.more));
  return line;
}

void ShmMessenger::grant_complete(NodeId to, uint8_t incarnation, uint32_t line) noexcept {
  PeerArena* there = reach(to);
  if (!there || uint8_t(there->incarnation()) != incarnation) return;
  end_in_flight(there->header(), *there->in_flight(line));
}

}  // namespace coherence
