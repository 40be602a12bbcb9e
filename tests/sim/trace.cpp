#include <cstdarg>
#include <cstdio>

#include "scheduler.hpp"
#include "seams.hpp"

namespace sim {
namespace {

using coherence::Event, coherence::LineState;

const char* name(Event::Kind kind) {
  static constexpr const char* kNames[] = {"fetch shared", "fetch exclusive", "evict", "batch done",
                                           "request",      "reply",           "gone",  "serve"};
  return kNames[int(kind)];
}
const char* name(coherence::RequestKind kind) {
  static constexpr const char* kNames[] = {"", "PeerRd", "PeerWr", "PeerInv"};
  return kNames[int(kind)];
}
const char* name(coherence::ReplyKind kind) {
  static constexpr const char* kNames[] = {"", "Dropped", "Done", "GrantS", "GrantM"};
  return kNames[int(kind)];
}
const char* name(coherence::LineOp op) {
  static constexpr const char* kNames[] = {"",           "read",     "probe",   "write",    "reclaim",
                                           "upgrade",    "fallback", "release", "handover", "downgrade",
                                           "invalidate", "WaitS",    "WaitX",   "WaitU"};
  return kNames[int(op)];
}

}  // namespace

bool tracing = false;

void trace(const char* format, ...) {
  const Scheduler& s = *scheduler();
  printf("%12.3f us  node %2d fiber %3d  ", double(s.now()) / 1e3, s.node(), s.fiber());
  va_list arguments;
  va_start(arguments, format);
  vprintf(format, arguments);
  va_end(arguments);
  printf("\n");
}

void trace_step(LineState before, coherence::NodeId self, const Event& e, const LineState& after) {
  static constexpr char kMemo[] = {'I', 'S', 'M'};
  const bool request = e.kind == Event::Kind::kPeer, reply = e.kind == Event::Kind::kReply;
  const int from = request ? e.request.from : reply || e.kind == Event::Kind::kGone ? e.from.value : self.value;
  trace("page %2d  %c %-10s --%s %s from %d%s-->  %c %s, parked %d", observer ? observer->page_of(after) : -1,
        kMemo[int(before.memo)], name(before.op), name(e.kind), request ? name(e.request.kind) : name(e.reply), from,
        e.latched ? ", latched" : "", kMemo[int(after.memo)], name(after.op), after.parked_count);
}

}  // namespace sim
