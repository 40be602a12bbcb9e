// What peers say is done here (peers.home-does-it).
#include <algorithm>
#include <bit>

#include "coherence/base/racy_copy.hpp"
#include "coherence/base/text.hpp"
#include "coherence/base/verify.hpp"
#include "coherence/member/arrival.hpp"
#include "coherence/transport/tcp/message/peer_routes.hpp"

namespace coherence::tcp {
namespace {

using State = EntryWord::State;

Errc refused(Problem* problem, const char* what) { return problem->set(Errc::kCorrupt, "%s", what); }

}  // namespace

// What is said by a node that does not serve is for nobody.
void PeerRoutes::Peer::frame(net::Link& l, uint16_t type, std::span<const std::byte> payload) {
  of->look();
  if (&l != link || !of->serves(*this)) return;
  Problem problem;
  if (of->receive(*this, type, payload, &problem)) return;
  Text text;  // tcp.nothing-believed
  of->log_.line(text.add("ends the link to %s, which sent %s", l.peer().name().text, problem.text).c_str());
  of->cut(*this, problem.text);
}

Status PeerRoutes::receive(Peer& p, uint16_t type, std::span<const std::byte> payload, Problem* problem) {
  switch (type) {
    case kAskFrame: {
      AskMessage message;
      GCL_TRY(decode(payload, &message, problem));
      return asked(p, message, problem);
    }
    case kReplyFrame: {
      ReplyMessage message;
      GCL_TRY(decode(payload, &message, problem));
      return replied(p, message, problem);
    }
    case kGrantCompleteFrame: {
      GrantCompleteMessage message;
      GCL_TRY(decode(payload, &message, problem));
      return grant_complete(p, message, problem);
    }
    case kWakeupFrame: {
      WakeupMessage message;
      GCL_TRY(decode(payload, &message, problem));
      wake(message);
      return {};
    }
    default:
      return problem->set(Errc::kCorrupt, "a frame of type %u", unsigned{type});
  }
}

Status PeerRoutes::asked(Peer& p, const AskMessage& message, Problem* problem) {
  const EntryWord word{boxes_.entry(p.id, message.slot).word.load(std::memory_order_acquire)};
  if (word.is(State::kFree)) {
    install(p, message);
    return {};
  }
  if (word.is_of(p.incarnation()) || std::any_of(p.waiting.begin(), p.waiting.end(),
                                                 [&](const AskMessage& other) { return other.slot == message.slot; }))
    return refused(problem, "a second request of one slot");
  p.waiting.push_back(message);
  return {};
}

// A process whose entry this was may be reading (TcpMessenger::take_request()): what it sees of this it sees behind the
// word that was freed.
void PeerRoutes::install(Peer& p, const AskMessage& message) {
  PeerEntry& entry = boxes_.entry(p.id, message.slot);
  entry.page.store(message.page.raw, std::memory_order_release);
  entry.line.store(message.line, std::memory_order_release);
  entry.kind.store(message.kind, std::memory_order_release);
  entry.priority.store(message.priority, std::memory_order_release);
  p.open[message.slot / 64] |= uint64_t{1} << message.slot % 64;
  const EntryWord word = EntryWord::asked(message.serial, p.incarnation());
  entry.word.store(word.raw, std::memory_order_release);  // pairs with TcpMessenger::take_request()
  leave_request(*node_.arena, p.id, message.slot);
}

void PeerRoutes::free(Peer& p, uint32_t slot) {
  boxes_.entry(p.id, slot).word.store(0, std::memory_order_release);
  p.open[slot / 64] &= ~(uint64_t{1} << slot % 64);
  const auto next = std::find_if(p.waiting.begin(), p.waiting.end(),
                                 [slot](const AskMessage& message) { return message.slot == slot; });
  if (next == p.waiting.end()) return;
  install(p, *next);
  p.waiting.erase(next);
}

// The slot waits for this reply alone until it is here, or the peer is gone: then its link is over.
Status PeerRoutes::replied(Peer& p, const ReplyMessage& message, Problem* problem) {
  if (message.slot >= node_.sessions_max * kSlotsPerSession)
    return refused(problem, "a reply to a slot that there is not");
  RequestSlot& s = node_.slot(message.slot);
  const ReplyWord word{s.reply[p.id.value].load(std::memory_order_acquire)};  // pairs with ProtocolDriver::fill_slot()
  if (!word.is_taken() || !word.is_for(p.incarnation()) || uint16_t(word.serial()) != message.round)
    return refused(problem, "a reply to what was not asked");
  if (!may_answer(s.kind.load(std::memory_order_relaxed), message.kind))
    return refused(problem, "a reply that such a request does not get");
  const uint32_t line = s.line.load(std::memory_order_relaxed);
  VERIFY(line < node_.frames);
  // Published by the reply.
  if (message.in_flight) node_.in_flight[line].store(in_flight_of(p.id), std::memory_order_relaxed);
  if (message.page != nullptr) racy_copy(node_.frames_base + uint64_t(line) * kPageSize, message.page, kPageSize);
  leave_reply(*node_.arena, s, p.id, ReplyWord::of(message.round, message.kind, message.more));
  return {};
}

Status PeerRoutes::grant_complete(Peer& p, const GrantCompleteMessage& message, Problem* problem) {
  if (message.line >= node_.frames) return refused(problem, "a grant's end for a line that there is not");
  std::atomic<uint8_t>& mark = node_.in_flight[message.line];
  if (mark.load(std::memory_order_relaxed) != in_flight_of(p.id))
    return refused(problem, "a grant's end for a line that it has not granted");
  end_in_flight(*node_.arena, mark);
  return {};
}

void PeerRoutes::wake(const WakeupMessage& message) {
  for (uint64_t left = message.otherwise; left; left &= left - 1)
    signal_event(*node_.arena, message.event, uint16_t(std::countr_zero(left)));
}

}  // namespace coherence::tcp
