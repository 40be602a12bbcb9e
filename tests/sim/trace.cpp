#include <cstdarg>
#include <cstdio>

#include "scheduler.hpp"
#include "seams.hpp"
#include "tests/support/line_text.hpp"

namespace sim {

using coherence::Event, coherence::LineState;

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
  const bool request = e.kind == Event::Kind::kPeer, reply = e.kind == Event::Kind::kReply;
  const int from = request ? e.request.from : reply || e.kind == Event::Kind::kGone ? e.from.value : self.value;
  trace("page %2d  %-12s --%s %s from %d%s-->  %s", observer ? observer->page_of(after) : -1, text(before).c_str(),
        text(e.kind), request ? text(e.request.kind) : text(e.reply), from, e.latched ? ", latched" : "",
        text(after).c_str());
}

}  // namespace sim
