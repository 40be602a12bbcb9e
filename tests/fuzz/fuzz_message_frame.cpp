// What a node takes for a message of a peer, of any bytes, is one: it has that frame and no other, and names nothing
// that there is not in any node.  The first byte is the frame's type.
#include <cstring>
#include <span>
#include <vector>

#include "coherence/transport/tcp/message/message_frame.hpp"

namespace {

using namespace coherence;       // NOLINT
using namespace coherence::tcp;  // NOLINT
using Bytes = std::span<const std::byte>;

// Whether it is one; then its head is `frame` again.
template <size_t head, class Message>
bool is_one(Bytes frame, Message* message) {
  Problem problem;
  if (!decode(frame, message, &problem)) {
    VERIFY(problem.text[0] != 0);
    return false;
  }
  std::byte again[head];
  encode(*message, again);
  VERIFY(frame.size() >= head && memcmp(again, frame.data(), head) == 0);
  return true;
}

void ask(Bytes frame) {
  AskMessage message;
  if (!is_one<kAskBytes>(frame, &message)) return;
  VERIFY(frame.size() == kAskBytes && message.slot < kPeerSlots && message.page.valid());
  VERIFY(message.page.node().value < kMemoryNodesMax);
  VERIFY(ReplyWord::asked(message.serial, 1).serial() == message.serial);
  VERIFY(may_answer(message.kind, ReplyKind::kDropped));
}

void reply(Bytes frame) {
  ReplyMessage message;
  if (!is_one<kReplyBytes>(frame, &message)) return;
  const bool page = carries_page(message.kind);
  VERIFY(frame.size() == kReplyBytes + (page ? kPageSize : 0) && (message.page != nullptr) == page);
  VERIFY(!page || message.page + kPageSize == frame.data() + frame.size());
  VERIFY(message.slot < kPeerSlots && (!message.in_flight || page));
  const ReplyWord word = ReplyWord::of(message.round, message.kind, message.more);
  VERIFY(word.is_reply() && word.kind() == message.kind && word.round() == message.round);
  const NodeId next = word.passed_to();
  VERIFY(message.kind == ReplyKind::kHeld ? word.held_by() == message.more : message.more == 0 || next.valid());
}

void grant_complete(Bytes frame) {
  GrantCompleteMessage message;
  VERIFY(!is_one<kGrantCompleteBytes>(frame, &message) || frame.size() == kGrantCompleteBytes);
}

void wakeup(Bytes frame) {
  WakeupMessage message;
  if (!is_one<kWakeupBytes>(frame, &message)) return;
  VERIFY(frame.size() == kWakeupBytes && message.event < kWakeupEvents && message.otherwise != 0);
  VERIFY(message.otherwise >> (Wakeup::kNone + 1) == 0);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::vector<std::byte> frame(reinterpret_cast<const std::byte*>(data + 1),
                                     reinterpret_cast<const std::byte*>(data + size));  // aligned, as a link's are
  switch (data[0]) {
    case kAskFrame:
      ask(frame);
      break;
    case kReplyFrame:
      reply(frame);
      break;
    case kGrantCompleteFrame:
      grant_complete(frame);
      break;
    case kWakeupFrame:
      wakeup(frame);
      break;
    default:
      break;
  }
  return 0;
}
