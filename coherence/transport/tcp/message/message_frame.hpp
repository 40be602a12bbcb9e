// What nodes say to each other as bytes: frames on the link of two incarnations.
//
//   request:         serial | page | line | slot | kind | priority
//   reply:           more | slot | round | kind | in flight; the page, of what carries one
//   grant complete:  line
//   wakeup:          otherwise, as bits | event
//
// Words are little-endian.  A frame has one meaning and one length; a byte that says nothing is 0.  What only the
// node's own memory can tell (whether a slot asks, a line is there) is not checked here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "coherence/base/ids.hpp"
#include "coherence/base/problem.hpp"
#include "coherence/base/result.hpp"
#include "coherence/line/line_state.hpp"
#include "coherence/message/slots.hpp"
#include "coherence/message/wakeup.hpp"

namespace coherence::tcp {

// Types of frames on a link.
inline constexpr uint16_t kAskFrame = 32, kReplyFrame = 33, kGrantCompleteFrame = 34, kWakeupFrame = 35;

// Slots that a peer may have: of sessions_max of any arena.
inline constexpr uint32_t kPeerSlots = uint32_t(kSessionsMax) * kSlotsPerSession;

// A request, as the requester's slot has it.
struct AskMessage {
  uint64_t serial = 0;  // of the round; 40 bits (ReplyWord)
  PageId page;
  uint32_t line = 0;  // where a grant lands
  uint16_t slot = 0;
  RequestKind kind = RequestKind::kNone;
  uint8_t priority = 0;
};
struct ReplyMessage {
  uint64_t more = 0;  // ReplyWord::of()
  uint16_t slot = 0, round = 0;
  ReplyKind kind = ReplyKind::kNone;
  bool in_flight = false;
  const std::byte* page = nullptr;  // of what carries_page(); lies in the frame
};
struct GrantCompleteMessage {
  uint32_t line = 0;
};
struct WakeupMessage {
  uint64_t otherwise = 0;  // bit e: sleepers of event e, too, if nobody attends to the event; kNone: nobody
  uint16_t event = 0;
};

inline constexpr uint32_t kAskBytes = 24, kReplyBytes = 16, kGrantCompleteBytes = 8, kWakeupBytes = 16;

// Without the page, which follows.
void encode(const AskMessage&, std::byte (&frame)[kAskBytes]) noexcept;
void encode(const ReplyMessage&, std::byte (&frame)[kReplyBytes]) noexcept;
void encode(const GrantCompleteMessage&, std::byte (&frame)[kGrantCompleteBytes]) noexcept;
void encode(const WakeupMessage&, std::byte (&frame)[kWakeupBytes]) noexcept;

// kCorrupt: it is none, and the problem says why.
Status decode(std::span<const std::byte> frame, AskMessage*, Problem*) noexcept;
Status decode(std::span<const std::byte> frame, ReplyMessage*, Problem*) noexcept;
Status decode(std::span<const std::byte> frame, GrantCompleteMessage*, Problem*) noexcept;
Status decode(std::span<const std::byte> frame, WakeupMessage*, Problem*) noexcept;

// Whether the protocol answers such a request so.
constexpr bool may_answer(RequestKind request, ReplyKind reply) {
  switch (reply) {
    case ReplyKind::kDropped:
    case ReplyKind::kDone:
    case ReplyKind::kHeld:
      return true;
    case ReplyKind::kGrantS:
    case ReplyKind::kGrantSInPool:
      return is_reader(request);
    case ReplyKind::kGrantM:
    case ReplyKind::kGrantMInPool:
      return request == RequestKind::kPeerWr;
    case ReplyKind::kCopy:
      return request == RequestKind::kPeerCopy;
    case ReplyKind::kNone:
      break;
  }
  return false;
}

}  // namespace coherence::tcp
