// FlightEvent: one call of step() as the flight recorder keeps it: plain bytes, which a tool reads from outside.
#pragma once

#include <cstdint>

#include "coherence/base/ids.hpp"
#include "coherence/base/text.hpp"
#include "coherence/line/line_machine.hpp"

namespace coherence {

struct FlightEvent {
  // Bits of `flags`.
  static constexpr uint8_t kFinished = 1, kBlocked = 2, kBad = 4, kLatched = 8, kMayNotLeave = 16, kAnswered = 32;

  uint64_t ticks;    // of a batch that was complete at once: when it was posted
  uint64_t page;     // raw
  uint64_t detail;   // batch done: the word before; otherwise the nodes whose replies the line waits for afterwards
  uint32_t line;     // index in the node's arena
  uint16_t slot;     // of the operation, or of the request: session * kSlotsPerSession + n
  uint16_t replies;  // bit k: a ReplyKind k is sent
  Event::Kind kind;
  MsiState msi_before, msi_after;
  LineOp op_before, op_after;
  Post post;
  RequestKind send;
  uint8_t sent;  // to so many nodes
  uint8_t peer;  // who asks, replies or is gone; else whom we ask, or give the page; 0xff: nobody
  uint8_t came;  // a RequestKind or a ReplyKind, as `kind` says
  uint8_t reply_count;
  uint8_t parked;  // requests that wait at the line afterwards
  LatchEnd latch;
  uint8_t flags;
  uint8_t priority;  // of the request that came; else of our own
  uint8_t unused;
};
static_assert(sizeof(FlightEvent) == 48);

// What is seen of a line before the step.
struct BeforeStep {
  MsiState msi;
  LineOp op;
  explicit BeforeStep(const LineState& s) : msi(s.msi), op(s.op) {}
};

// Where it will lie: nothing is copied.  Without time, page, line and slot.
inline void fill(FlightEvent& e, const BeforeStep& before, const LineState& after, const Event& event,
                 const Actions& actions) noexcept {
  const bool request = event.kind == Event::Kind::kPeer;
  const bool asks = actions.send != RequestKind::kNone;
  uint32_t replies = 0;
  for (int i = 0; i < actions.reply_count; i++) replies |= 1u << int(actions.replies[i].kind);
  e.detail = event.kind == Event::Kind::kBatchDone ? event.old : after.waiting.bits;
  e.replies = uint16_t(replies);
  e.kind = event.kind;
  e.msi_before = before.msi;
  e.msi_after = after.msi;
  e.op_before = before.op;
  e.op_after = after.op;
  e.post = actions.post;
  e.send = actions.send;
  e.sent = asks ? uint8_t(actions.send_to.count()) : 0;
  e.peer = request              ? event.request.from
           : event.from.valid() ? event.from.value
           : asks               ? actions.send_to.first().value
                                : actions.to.value;
  e.came = request ? uint8_t(event.request.kind) : uint8_t(event.reply);
  e.reply_count = actions.reply_count;
  e.parked = after.parked_count;
  e.latch = actions.latch;
  e.flags = uint8_t(actions.finished * FlightEvent::kFinished | actions.blocked * FlightEvent::kBlocked |
                    actions.bad * FlightEvent::kBad | event.latched * FlightEvent::kLatched |
                    !event.may_leave * FlightEvent::kMayNotLeave | event.answered * FlightEvent::kAnswered);
  e.priority = request ? event.request.priority : after.priority;
  e.unused = 0;
}

// "page 0:7  line 3  I -- fetch shared --> I read; posts [FAA +b; READ]".  Without the time.
void add(Text& to, const FlightEvent& event) noexcept;

}  // namespace coherence
