#include "coherence/transport/tcp/message/tcp_messenger.hpp"

#include "coherence/base/racy_copy.hpp"
#include "coherence/base/verify.hpp"
#include "coherence/member/arrival.hpp"
#include "coherence/message/message_counters.hpp"

namespace coherence::tcp {

using State = EntryWord::State;

void TcpMessenger::ask(NodeId to, uint16_t slot, PageId page) noexcept {
  node_.hot->count(page, PageMessage::kRequestSent, node_.fence);
  if (to.value < boxes_.nodes_max() && node_.members->info(to).serves()) boxes_.leave_ask(to, slot);
}

bool TcpMessenger::receive(RequestHandler& handler) noexcept { return take_requests(*node_.arena, handler); }

// coherence.request-taken-once, coherence.messages-for-incarnation: the link says which node asks, and which is asked.
bool TcpMessenger::take_request(NodeId from, uint16_t slot, PeerRequest* request, PageId* page) noexcept {
  if (from.value >= boxes_.nodes_max() || slot >= kPeerSlots) return false;
  const NodeInfo asks = node_.members->info(from);
  if (!asks.serves()) return false;
  PeerEntry& entry = boxes_.entry(from, slot);
  EntryWord word{entry.word.load(std::memory_order_relaxed)};
  const EntryWord taken = word.as(State::kTaken);
  bool mine = word.is(State::kAsked) && word.is_of(asks.incarnation) &&
              entry.word.compare_exchange_strong(word.raw, taken.raw, std::memory_order_acquire);
  if (mine) {  // each load that sees the next request's sees that the word is another one, too
    *page = PageId{entry.page.load(std::memory_order_acquire)};  // these pair with PeerRoutes::install()
    *request = {from.value,
                entry.kind.load(std::memory_order_acquire),
                entry.priority.load(std::memory_order_acquire),
                uint8_t(asks.incarnation),
                slot,
                taken.round()};
    mine = entry.word.load(std::memory_order_relaxed) == taken.raw;
  }
  if (!mine) counters_.add(Counter::kOutdated);
  return mine;
}

// What is not this request's entry any more stays as it is (box.entry-of-an-incarnation).
uint32_t TcpMessenger::reply(const PeerRequest& request, const Reply& reply) noexcept {
  const NodeId to{request.from};
  if (to.value >= boxes_.nodes_max()) return kNowhere;
  const NodeInfo asked = node_.members->info(to);
  if (!asked.serves() || uint8_t(asked.incarnation) != request.incarnation) return kNowhere;
  PeerEntry& entry = boxes_.entry(to, request.slot);
  EntryWord word{entry.word.load(std::memory_order_relaxed)};
  if (!word.is(State::kTaken) || !word.names(request)) return kNowhere;
  const EntryWord replying = word.as(State::kReplying);
  if (!entry.word.compare_exchange_strong(word.raw, replying.raw, std::memory_order_acquire)) return kNowhere;
  const uint32_t line = entry.line.load(std::memory_order_relaxed);
  entry.reply = reply.kind;
  entry.in_flight = reply.in_flight;
  entry.more = reply.more;
  if (carries_page(reply.kind)) {
    node_.hot->count(PageId{entry.page.load(std::memory_order_relaxed)}, PageMessage::kPageSent, node_.fence);
    racy_copy(boxes_.page(to, request.slot), reply.page, kPageSize);
  }
  counters_.add(reply_counter(reply.kind, true));
  entry.word.store(word.as(State::kReplied).raw, std::memory_order_release);  // pairs with PeerRoutes::send()
  boxes_.leave_reply(to, request.slot);
  return line;
}

void TcpMessenger::grant_complete(NodeId to, uint8_t incarnation, uint32_t line) noexcept {
  if (to.value >= boxes_.nodes_max()) return;
  const NodeInfo granted = node_.members->info(to);
  if (!granted.serves() || uint8_t(granted.incarnation) != incarnation) return;
  boxes_.leave_grant(to, {line, incarnation}, *node_.fence);
}

void TcpWakeup::wake(NodeId to, uint16_t event, uint16_t otherwise) noexcept {
  VERIFY(event < kWakeupEvents && otherwise <= kNone);
  if (to == node_.id) return signal_event(*node_.arena, event, otherwise);
  if (to.value < boxes_.nodes_max() && node_.members->info(to).serves()) boxes_.leave_wakeup(to, event, otherwise);
}

}  // namespace coherence::tcp
