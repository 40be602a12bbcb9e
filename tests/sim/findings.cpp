#include "findings.hpp"

#include <cstdarg>
#include <cstdio>
#include <cstdlib>

#include "scheduler.hpp"

namespace sim {

Findings findings;

const char* checker_name(Checker checker) {
  static constexpr const char* kNames[] = {"",         "exclusion", "last write", "history", "rest", "fairness",
                                           "no leaks", "progress",  "fence",      "VERIFY",  "log",  "restart"};
  return kNames[int(checker)];
}

namespace {

void record(Checker checker, const char* format, va_list arguments) {
  if (findings.failed || !(findings.listened_to & only(checker))) return;
  char text[600];
  vsnprintf(text, sizeof text, format, arguments);
  findings.failed = findings.over = true;
  findings.checker = checker;
  findings.text = text;
  if (const Scheduler* s = scheduler())
    findings.text += " (node " + std::to_string(s->node()) + ", fiber " + std::to_string(s->fiber()) + ", at " +
                     std::to_string(s->now()) + " ns)";
}

void end_fiber() {
  scheduler()->stop();
  scheduler()->kill_self();
}

}  // namespace

void object(Checker checker, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  record(checker, format, arguments);
  va_end(arguments);
  if (findings.failed && scheduler() && scheduler()->in_fiber()) end_fiber();
}

void give_up(Checker checker, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  record(checker, format, arguments);
  if (!scheduler() || !scheduler()->in_fiber()) {  // there is nowhere to go on
    vfprintf(stderr, format, arguments);
    abort();
  }
  va_end(arguments);
  findings.over = true;
  end_fiber();
  abort();
}

}  // namespace sim
