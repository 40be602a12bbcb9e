#include "verdict.hpp"

#include <cstdarg>
#include <cstdio>
#include <cstdlib>

#include "scheduler.hpp"

namespace sim {

Verdict verdict;

const char* checker_name(Checker checker) {
  static constexpr const char* kNames[] = {"",         "exclusion", "last write", "history", "rest", "fairness",
                                           "no leaks", "progress",  "fence",      "VERIFY",  "log",  "restart"};
  return kNames[int(checker)];
}

namespace {

void record(Checker checker, const char* format, va_list arguments) {
  if (verdict.failed || !(verdict.listened_to & only(checker))) return;
  char text[600];
  vsnprintf(text, sizeof text, format, arguments);
  verdict.failed = verdict.over = true;
  verdict.checker = checker;
  verdict.text = text;
  if (const Scheduler* s = scheduler())
    verdict.text += " (node " + std::to_string(s->node()) + ", fiber " + std::to_string(s->fiber()) + ", at " +
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
  if (verdict.failed && scheduler() && scheduler()->in_fiber()) end_fiber();
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
  verdict.over = true;
  end_fiber();
  abort();
}

}  // namespace sim
