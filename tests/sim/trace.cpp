#include <cstdarg>
#include <cstdio>

#include "scheduler.hpp"
#include "seams.hpp"
#include "tests/support/line_text.hpp"

namespace sim {

using coherence::Event, coherence::LineState;

bool tracing = false;

namespace {

// What tracing looks at does not count: the run goes on as it would without.
class Uncounted {
 public:
  Uncounted() : left_(accesses_left) { accesses_left = INT64_MAX; }
  ~Uncounted() { accesses_left = left_; }
  Uncounted(const Uncounted&) = delete;

 private:
  const int64_t left_;
};

}  // namespace

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
  const Uncounted uncounted;
  const bool request = e.kind == Event::Kind::kPeer, reply = e.kind == Event::Kind::kReply;
  const int from = request ? e.request.from : reply || e.kind == Event::Kind::kGone ? e.from.value : self.value;
  trace("page %2d  %-12s --%s %s from %d%s-->  %s", observer ? observer->page_of(after) : -1, text(before).c_str(),
        text(e.kind), request ? text(e.request.kind) : text(e.reply), from, e.latched ? ", latched" : "",
        text(after).c_str());
}

}  // namespace sim
