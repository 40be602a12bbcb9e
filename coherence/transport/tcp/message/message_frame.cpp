#include "coherence/transport/tcp/message/message_frame.hpp"

#include <bit>
#include <cstring>

namespace coherence::tcp {
namespace {

static_assert(std::endian::native == std::endian::little);
static_assert(kPeerSlots <= 1u << 16);

// As they lie in a frame.
struct AskFields {
  uint64_t serial, page;
  uint32_t line;
  uint16_t slot;
  uint8_t kind, priority;
};
struct ReplyFields {
  uint64_t more;
  uint16_t slot, round;
  uint8_t kind, in_flight;
  uint16_t zero;
};
struct GrantCompleteFields {
  uint32_t line, zero;
};
struct WakeupFields {
  uint64_t otherwise;
  uint16_t event, zero[3];
};
static_assert(sizeof(AskFields) == kAskBytes && sizeof(ReplyFields) == kReplyBytes);
static_assert(sizeof(GrantCompleteFields) == kGrantCompleteBytes && sizeof(WakeupFields) == kWakeupBytes);

constexpr uint64_t kFortyBits = (uint64_t{1} << 40) - 1;
static_assert(kHolderBits == 40);

Errc wrong(Problem* problem, const char* what) { return problem->set(Errc::kCorrupt, "%s", what); }

}  // namespace

void encode(const AskMessage& m, std::byte (&frame)[kAskBytes]) noexcept {
  const AskFields fields{m.serial, m.page.raw, m.line, m.slot, uint8_t(m.kind), m.priority};
  memcpy(frame, &fields, sizeof fields);
}

void encode(const ReplyMessage& m, std::byte (&frame)[kReplyBytes]) noexcept {
  const ReplyFields fields{m.more, m.slot, m.round, uint8_t(m.kind), m.in_flight, 0};
  memcpy(frame, &fields, sizeof fields);
}

void encode(const GrantCompleteMessage& m, std::byte (&frame)[kGrantCompleteBytes]) noexcept {
  const GrantCompleteFields fields{m.line, 0};
  memcpy(frame, &fields, sizeof fields);
}

void encode(const WakeupMessage& m, std::byte (&frame)[kWakeupBytes]) noexcept {
  const WakeupFields fields{m.otherwise, m.event, {}};
  memcpy(frame, &fields, sizeof fields);
}

Status decode(std::span<const std::byte> frame, AskMessage* to, Problem* problem) noexcept {
  AskFields f;
  if (frame.size() != sizeof f) return wrong(problem, "a request of another length");
  memcpy(&f, frame.data(), sizeof f);
  const PageId page{f.page};
  if (f.serial > kFortyBits) return wrong(problem, "a request whose number is none");
  if (f.page >> 48 != 0 || page.node().value >= kMemoryNodesMax) return wrong(problem, "a request for no page");
  if (f.slot >= kPeerSlots) return wrong(problem, "a request of a slot that there is not");
  if (f.kind == 0 || f.kind > uint8_t(RequestKind::kPeerJoin)) return wrong(problem, "a request that there is not");
  *to = {f.serial, page, f.line, f.slot, RequestKind(f.kind), f.priority};
  return {};
}

Status decode(std::span<const std::byte> frame, ReplyMessage* to, Problem* problem) noexcept {
  ReplyFields f;
  if (frame.size() < sizeof f) return wrong(problem, "a reply of another length");
  memcpy(&f, frame.data(), sizeof f);
  const auto kind = ReplyKind(f.kind);
  if (f.kind == 0 || f.kind > uint8_t(ReplyKind::kHeld)) return wrong(problem, "a reply that there is not");
  const bool page = carries_page(kind);
  if (frame.size() != sizeof f + (page ? kPageSize : 0)) return wrong(problem, "a reply of another length");
  if (f.slot >= kPeerSlots) return wrong(problem, "a reply to a slot that there is not");
  if (f.more > (kind == ReplyKind::kHeld ? kFortyBits : uint64_t{kNodesMax}))
    return wrong(problem, "a reply that names a node that there is not");
  if (f.in_flight > 1 || (f.in_flight == 1 && (!page || kind == ReplyKind::kCopy)) || f.zero != 0)
    return wrong(problem, "a reply of another format");
  *to = {f.more, f.slot, f.round, kind, f.in_flight == 1, page ? frame.data() + sizeof f : nullptr};
  return {};
}

Status decode(std::span<const std::byte> frame, GrantCompleteMessage* to, Problem* problem) noexcept {
  GrantCompleteFields f;
  if (frame.size() != sizeof f) return wrong(problem, "a grant's end of another length");
  memcpy(&f, frame.data(), sizeof f);
  if (f.zero != 0) return wrong(problem, "a grant's end of another format");
  *to = {f.line};
  return {};
}

Status decode(std::span<const std::byte> frame, WakeupMessage* to, Problem* problem) noexcept {
  WakeupFields f;
  if (frame.size() != sizeof f) return wrong(problem, "a wakeup of another length");
  memcpy(&f, frame.data(), sizeof f);
  if (f.event >= kWakeupEvents || f.otherwise == 0 || f.otherwise >> (Wakeup::kNone + 1) != 0)
    return wrong(problem, "a wakeup of an event that there is not");
  if ((f.zero[0] | f.zero[1] | f.zero[2]) != 0) return wrong(problem, "a wakeup of another format");
  *to = {f.otherwise, f.event};
  return {};
}

}  // namespace coherence::tcp
