// What processes have left goes to peers.
#include <bit>

#include "coherence/transport/tcp/message/peer_routes.hpp"

namespace coherence::tcp {

using State = EntryWord::State;

void PeerRoutes::take() {
  look();
  if (dial_) dial();
  const bool flush = !flushing_ && boxes_.flush_asked() != flush_seen_;
  if (flush) flush_seen_ = boxes_.flush_asked();  // first: all that was left before is taken now
  boxes_.take_peers([this](NodeId id) {
    if (id.value < boxes_.nodes_max()) take_from(peer_[id.value]);
  });
  if (flush) begin_flush();
  if (flushing_) go_on_with_flush();
}

// box.grants-in-order
void PeerRoutes::take_from(Peer& p) {
  PeerBoxes::Wakeups wakeups;
  std::vector<Item> grants;
  boxes_.take_wakeups(p.id, &wakeups);
  boxes_.take_grants(p.id, [&](const CompleteGrant& grant) {
    grants.push_back({Item::Kind::kGrant, grant.incarnation, grant.line});
  });
  boxes_.take_replies(p.id, [&](uint32_t slot) { put(p, {Item::Kind::kReply, 0, slot}); });
  boxes_.take_asks(p.id, [&](uint32_t slot) { put(p, {Item::Kind::kAsk, 0, slot}); });
  for (const Item& grant : grants) put(p, grant);
  for (uint32_t left = wakeups.events; left; left &= left - 1) {
    const auto event = uint32_t(std::countr_zero(left));
    put_wakeup(p, {Item::Kind::kWakeup, 0, event, wakeups.otherwise[event]});
  }
  pump(p);
}

void PeerRoutes::put(Peer& p, Item item) {
  p.items.push_back(item);
  p.put++;
}

// Joins one that waits, if nothing came since that it must not overtake.
void PeerRoutes::put_wakeup(Peer& p, Item wakeup) {
  for (auto last = p.items.rbegin(); last != p.items.rend() && last->kind == Item::Kind::kWakeup; ++last)
    if (last->what == wakeup.what) {
      last->otherwise |= wakeup.otherwise;
      return;
    }
  put(p, wakeup);
}

// peers.sent-in-order
void PeerRoutes::pump(Peer& p) {
  while (!p.items.empty() && send(p, p.items.front()) != Sent::kNotYet) {
    p.items.pop_front();
    p.gone++;
  }
}

PeerRoutes::Sent PeerRoutes::send(Peer& p, const Item& item) {
  switch (item.kind) {
    case Item::Kind::kAsk:
      return send_ask(p, uint16_t(item.what));
    case Item::Kind::kReply:
      return send_reply(p, item.what);
    case Item::Kind::kWakeup:
      return send_wakeup(p, item);
    case Item::Kind::kGrant:
      break;
  }
  // Behind its reply, so on the same link, or never.
  if (p.link == nullptr || uint8_t(p.incarnation()) != item.incarnation) return Sent::kNeedless;
  std::byte frame[kGrantCompleteBytes];
  encode(GrantCompleteMessage{item.what}, frame);
  const net::Link::Piece piece(frame);
  return send(p, kGrantCompleteFrame, std::span(&piece, 1));
}

// What a link that is over does not take is needless; its end is told soon.
PeerRoutes::Sent PeerRoutes::send(Peer& p, uint16_t type, std::span<const net::Link::Piece> pieces) {
  const Status sent = p.link->send(type, pieces);
  if (sent) return Sent::kSent;
  return sent.error() == Errc::kNoSpace ? Sent::kNotYet : Sent::kNeedless;
}

// The slot stays as it is: its session waits for the reply, and while the peer serves for nothing else.  Of several
// bits for one request the first counts (coherence.request-taken-once).
PeerRoutes::Sent PeerRoutes::send_ask(Peer& p, uint16_t slot) {
  RequestSlot& s = node_.slot(slot);
  std::atomic<uint64_t>& word = s.reply[p.id.value];
  ReplyWord asked{word.load(std::memory_order_acquire)};  // pairs with ProtocolDriver::fill_slot()
  if (!asked.is_open()) return Sent::kNeedless;
  if (p.link == nullptr || !asked.is_for(p.incarnation()) || !serves(p)) {
    const NodeInfo now = node_.members->info(p.id);
    return now.serves() && asked.is_for(now.incarnation) ? Sent::kNotYet : Sent::kNeedless;
  }
  const AskMessage message{.serial = asked.serial(),
                           .page = PageId{s.page.load(std::memory_order_relaxed)},
                           .line = s.line.load(std::memory_order_relaxed),
                           .slot = slot,
                           .kind = s.kind.load(std::memory_order_relaxed),
                           .priority = s.priority.load(std::memory_order_relaxed)};
  std::byte frame[kAskBytes];
  encode(message, frame);
  const net::Link::Piece piece(frame);
  const Sent sent = send(p, kAskFrame, std::span(&piece, 1));
  // Before any reply can come: this thread brings it.
  if (sent == Sent::kSent) word.compare_exchange_strong(asked.raw, asked.taken().raw, std::memory_order_relaxed);
  return sent;
}

// The entry's last use: then the slot may ask again.
PeerRoutes::Sent PeerRoutes::send_reply(Peer& p, uint32_t slot) {
  PeerEntry& entry = boxes_.entry(p.id, slot);
  const EntryWord word{entry.word.load(std::memory_order_acquire)};  // pairs with TcpMessenger::reply()
  if (!word.is(State::kReplied)) return Sent::kNeedless;
  Sent sent = Sent::kNeedless;
  if (p.link != nullptr && word.is_of(p.incarnation())) {
    std::byte frame[kReplyBytes];
    encode(ReplyMessage{.more = entry.more,
                        .slot = uint16_t(slot),
                        .round = word.round(),
                        .kind = entry.reply,
                        .in_flight = entry.in_flight},
           frame);
    const net::Link::Piece pieces[] = {frame, {boxes_.page(p.id, slot), kPageSize}};
    sent = send(p, kReplyFrame, std::span(pieces, carries_page(entry.reply) ? 2 : 1));
    if (sent == Sent::kNotYet) return sent;
  }
  free(p, slot);
  return sent;
}

PeerRoutes::Sent PeerRoutes::send_wakeup(Peer& p, const Item& item) {
  if (p.link == nullptr) return node_.members->info(p.id).serves() ? Sent::kNotYet : Sent::kNeedless;
  std::byte frame[kWakeupBytes];
  encode(WakeupMessage{item.otherwise, uint16_t(item.what)}, frame);
  const net::Link::Piece piece(frame);
  return send(p, kWakeupFrame, std::span(&piece, 1));
}

// --- Messenger::flush()

void PeerRoutes::begin_flush() {
  flushing_ = true;
  for (uint32_t n = 0; n < boxes_.nodes_max(); n++) {
    Peer& p = peer_[n];
    p.flush_put = p.put;
    p.flush_sent = false;
  }
}

bool PeerRoutes::is_flushed(Peer& p) {
  if (!p.flush_sent) {
    if (p.gone < p.flush_put) return false;
    p.flush_sent = true;
    p.flush_frame = p.link != nullptr ? p.link->last_queued() : 0;
  }
  return p.link == nullptr || p.link->over() || p.link->last_acknowledged() >= p.flush_frame;
}

void PeerRoutes::go_on_with_flush() {
  bool all = true;
  for (uint32_t n = 0; n < boxes_.nodes_max(); n++) all &= is_flushed(peer_[n]);
  if (!all) return;
  flushing_ = false;
  boxes_.flushed(flush_seen_);
}

}  // namespace coherence::tcp
