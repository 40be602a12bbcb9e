// What the checkers say.  The first one to object ends the run.
#pragma once

#include <cstdint>
#include <string>

namespace sim {

// The numbers are those of rules.md.
enum class Checker : uint8_t {
  kExclusion = 1,  // one writer or many readers
  kLastWrite = 2,  // every read returns the last write
  kHistory = 3,    // the recorded histories are sequentially consistent
  kRest = 4,       // at rest the latch words equal the sum of the MSI states
  kFairness = 5,   // no wait is longer than the bound
  kLeaks = 6,      // no frame, slot or latch is left over
  kProgress = 7,   // all users come to an end
  kFence = 8,      // a crash fences the pool, which ends every wait
  kProduct = 9,    // the product's own VERIFY
  kLog = 10,       // a changed page leaves only when its log is flushed
  kRestart = 11,   // when memory is lost, the logs make each page
};
inline constexpr Checker kLastChecker = Checker::kRestart;
const char* checker_name(Checker);

using Checkers = uint32_t;  // a set
constexpr Checkers only(Checker c) { return Checkers{1} << int(c); }
inline constexpr Checkers kAllCheckers = ~Checkers{0};

// Of the run under way.
struct Findings {
  Checkers listened_to = kAllCheckers;
  bool failed = false;
  bool over = false;  // the run ends here, failed or not
  Checker checker = Checker::kProduct;
  std::string text;
};
extern Findings findings;

// Records an objection and ends the run: does not return into a fiber, unless this checker is switched off.
[[gnu::format(printf, 2, 3)]] void object(Checker, const char* format, ...);
// The run cannot go on, even if this checker is switched off.
[[noreturn, gnu::format(printf, 2, 3)]] void give_up(Checker, const char* format, ...);

}  // namespace sim
