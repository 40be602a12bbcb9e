#include "coherence/trace/flight_event.hpp"

#include "coherence/message/slots.hpp"
#include "coherence/trace/line_text.hpp"

namespace coherence {
namespace {

void add_state(Text& to, MsiState msi, LineOp op) {
  to.add("%s%s%s", text(msi), op == LineOp::kIdle ? "" : " ", op == LineOp::kIdle ? "" : text(op));
}

void add_what_came(Text& to, const FlightEvent& e) {
  to.add("%s", text(e.kind));
  switch (e.kind) {
    case Event::Kind::kPeer:
      to.add(" %s from node %u (session %u, slot %u, priority %u)", text(RequestKind(e.came)), e.peer,
             unsigned(e.slot / kSlotsPerSession), unsigned(e.slot % kSlotsPerSession), e.priority);
      break;
    case Event::Kind::kReply:
      to.add(" %s from node %u", text(ReplyKind(e.came)), e.peer);
      break;
    case Event::Kind::kGone:
      to.add(": node %u", e.peer);
      break;
    case Event::Kind::kBatchDone:
      add(to.add(", the word was "), LatchWord{e.detail});
      break;
    default:
      break;
  }
  if (e.flags & FlightEvent::kLatched) to.add(", latched");
  if (e.flags & FlightEvent::kMayNotLeave) to.add(", may not leave");
  if (e.flags & FlightEvent::kAnswered) to.add(", answered early");
}

void add_what_follows(Text& to, const FlightEvent& e) {
  const char* before = "; ";
  const auto next = [&] { to.add("%s", before), before = ", "; };
  if (e.post != Post::kNone) next(), to.add("posts [%s]", text(e.post));
  if (e.post == Post::kHandOver || e.post == Post::kDowngrade) to.add(" for node %u", e.peer);
  if (e.send != RequestKind::kNone) {
    next(), to.add("asks node %u%s: %s", e.peer, e.sent > 1 ? " and others" : "", text(e.send));
    if (e.priority != 0) to.add(", priority %u", e.priority);
  }
  for (int k = 0; k <= int(ReplyKind::kHeld); k++)
    if (e.replies >> k & 1) next(), to.add("replies %s", text(ReplyKind(k)));
  if (e.reply_count > 1) to.add(" (%u replies)", e.reply_count);
  if (e.flags & FlightEvent::kFinished) next(), to.add("finished");
  if (e.flags & FlightEvent::kBlocked) next(), to.add("blocked");
  if (e.latch != LatchEnd::kKeep) next(), to.add("latch %s", text(e.latch));
  if (e.parked != 0) next(), to.add("%u parked", e.parked);
  if (e.kind != Event::Kind::kBatchDone && e.detail != 0) next(), add(to.add("waits for "), NodeSet{e.detail});
  if (e.flags & FlightEvent::kBad) next(), to.add("BAD");
}

}  // namespace

void add(Text& to, const FlightEvent& e) noexcept {
  add(to.add("page "), PageId{e.page});
  to.add("  line %u", e.line);
  if (e.kind != Event::Kind::kPeer && (e.op_before != LineOp::kIdle || e.op_after != LineOp::kIdle))
    to.add("  of session %u", unsigned(e.slot / kSlotsPerSession));
  to.add("  ");
  add_state(to, e.msi_before, e.op_before);
  add_what_came(to.add(" -- "), e);
  add_state(to.add(" --> "), e.msi_after, e.op_after);
  add_what_follows(to, e);
}

}  // namespace coherence
