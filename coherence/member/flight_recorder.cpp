#include "coherence/member/flight_recorder.hpp"

#include <unistd.h>

#include "coherence/member/node.hpp"
#include "coherence/trace/flight_file.hpp"
#include "coherence/trace/line_text.hpp"

namespace coherence {
namespace {

constexpr uint64_t kEventsTold = 40;

}  // namespace

FlightRecorder::FlightRecorder(Node& node, SessionId session) noexcept
    : node_(node), session_(session), ring_(node.flight_ring(session)) {
  if (ring_) ring_->begin(getpid());
}

FlightRecorder::~FlightRecorder() {
  if (ring_) ring_->end();
}

void FlightRecorder::note(const Line& line, uint16_t op_slot, const BeforeStep& before, const LineState& after,
                          const Event& event, const Actions& actions, bool near) noexcept {
  if (!ring_) return;
  // The session has posted the batch itself, right after its last event: a look at the clock would cost more than such
  // a batch is worth.
  if (!near || event.kind != Event::Kind::kBatchDone) now_ = ticks();
  FlightEvent& e = ring_->next();
  fill(e, before, after, event, actions);
  e.ticks = now_;
  e.page = line.page().raw;
  e.line = node_.index_of(line);
  e.slot = event.kind == Event::Kind::kPeer ? event.request.slot : op_slot;
  ring_->noted();
}

void FlightRecorder::tell(Out& out) const noexcept {
  Text head;
  head.add("node %u, session %u, process %d", node_.id().value, session_.value, int(getpid()));
  if (!ring_) return out.line(head.add(": no flight recorder"));
  const uint64_t written = ring_->written.load(std::memory_order_relaxed);
  const uint64_t began = ring_->began.load(std::memory_order_relaxed);
  if (written == began) return out.line(head.add(": no protocol event yet"));
  const uint32_t last = ring_->event[(written - 1) % kFlightEvents].line;
  if (last < node_.frames()) {
    out.line(Text(head).add(": the line of the last event, %u", last));
    tell_line(out, node_, node_.line(last));
  }
  const uint64_t first = written - began > kEventsTold ? written - kEventsTold : began;
  out.line(head.add(": the last %u of %llu protocol events", unsigned(written - first),
                    static_cast<unsigned long long>(written - began)));
  const Moment now = Moment::now();
  for (uint64_t n = first; n < written; n++) {
    const FlightEvent& e = ring_->event[n % kFlightEvents];
    Text text;
    const uint64_t ns = ns_before(now, ring_->then(), e.ticks);
    add(text.add("  %8u.%03u us ago  ", unsigned(ns / 1000), unsigned(ns % 1000)), e);
    out.line(text);
  }
}

void tell_line(FailureReport::Out& out, Node& node, const Line& line) noexcept {
  const Line::Sight seen = line.sight();
  Text text;
  if (node.pool().has(seen.page)) add(text.add("  latch    "), node.pool().peek_latch(seen.page));
  out.line(text);
  Text more;
  add(more.add("  "), seen);
  out.line(more);
}

}  // namespace coherence
