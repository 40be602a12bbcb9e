// The step function explored: safe and live as it is, refuted when a rule of the protocol is broken around it.
//   test_model --gtest_filter=*            all; prints one line per variant
#include <gtest/gtest.h>

#include <chrono>

#include "model.hpp"
#include "tests/support/longer.hpp"

namespace coherence::model {

// A sanitizer looks at the code, not at the protocol: a part of each exploration is enough for it.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr size_t kEnough = 20'000, kMost = 20'000;
constexpr bool kWhole = false;
#else
constexpr size_t kEnough = 150'000, kMost = 12'000'000;
constexpr bool kWhole = true;
#endif

class Explored : public testing::TestWithParam<Variant> {};

std::string name_of(const testing::TestParamInfo<Variant>& info) {
  std::string name(info.param.name);
  for (char& c : name)
    if (c == '-') c = '_';
  return name;
}

TEST_P(Explored, AsExpected) {
  const Variant& variant = GetParam();
  auto begin = std::chrono::steady_clock::now();
  Exploration result = explore(variant, kEnough, gcl_test::longer() == 1 ? kMost : 5 * kMost);
  double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  printf("%-20s %8zu states%s  %-24s starvable: %s  %.1f s\n", variant.name, result.states, result.cut ? " (cut)" : "",
         result.broken.empty() ? "safe, live" : result.broken.c_str(), result.starved.c_str(), seconds);
  if (!*variant.expect) {
    EXPECT_EQ(result.broken, "") << result.trace;
    EXPECT_EQ(result.cut, !kWhole);
    return;
  }
  if (!kWhole) return;
  std::string wanted(variant.expect);
  bool refuted = false;
  for (size_t i = 0; i + 1 < wanted.size(); i += 3)
    refuted |= result.broken.find(wanted.substr(i, 2)) != std::string::npos;
  EXPECT_TRUE(refuted) << "the checker is blind: " << result.broken;
}

constexpr Features without(Feature f) { return Features::all().without(f); }
// Hints multiply what there is to explore; where the rest is large already, it is explored without them.
constexpr Features kNoHints = without(Feature::kHints).without(Feature::kJoin).without(Feature::kEarlyAnswers);
constexpr Features kPapers = kNoHints.without(Feature::kClaim);

// What is switched off may cost time, never bytes.
INSTANTIATE_TEST_SUITE_P(
    Product, Explored,
    testing::Values(Variant{.name = "crash-twice", .crashes = 2, .evicts = false, .guards = false, .on = kNoHints},
                    Variant{.name = "plain", .guards = false}, Variant{.name = "guards"},
                    Variant{.name = "copies", .hold = true, .copies = true, .guards = false},
                    Variant{.name = "log", .log = true, .guards = false},
                    Variant{.name = "crash", .crashes = 1, .guards = false, .on = kNoHints},
                    Variant{.name = "crash-join",
                            .crashes = 1,
                            .evicts = false,
                            .guards = false,
                            .on = without(Feature::kHints).without(Feature::kEarlyAnswers)},
                    Variant{.name = "early", .guards = false, .on = Features::all()},
                    Variant{.name = "outdated", .evicts = false, .guards = false, .outdated = {1, 2}},
                    Variant{.name = "leaves",
                            .guards = false,
                            .on = without(Feature::kHints).without(Feature::kEarlyAnswers),
                            .leaver = 2},
                    Variant{.name = "papers", .guards = false, .on = kPapers},
                    Variant{.name = "lies", .guards = false, .lies = true},
                    Variant{.name = "nothing", .guards = false, .on = Features::none()},
                    Variant{.name = "mixed", .guards = false, .mixed = true, .priorities = true}),
    name_of);

// Each switch alone, and widenings of the environment together: minutes and gigabytes, only with GCL_LONGER.
std::vector<Variant> together() {
  if (gcl_test::longer() == 1) return {};
  return {
      {.name = "no-forwarding", .guards = false, .on = without(Feature::kForwarding)},
      {.name = "no-hand-over", .guards = false, .on = without(Feature::kHandOver)},
      {.name = "no-claim", .guards = false, .on = without(Feature::kClaim)},
      {.name = "no-hints", .guards = false, .on = without(Feature::kHints)},
      {.name = "no-join", .guards = false, .on = without(Feature::kJoin)},
      {.name = "crash-hints", .crashes = 1, .guards = false},
      {.name = "papers-hold", .hold = true, .copies = true, .guards = false, .on = kPapers},
      {.name = "papers-crash", .crashes = 1, .guards = false, .on = kPapers},
      {.name = "no-upgrade", .guards = false, .on = without(Feature::kUpgrade)},
      {.name = "no-tie-break", .guards = false, .on = without(Feature::kTieBreak)},
      {.name = "matching", .guards = false, .priorities = true},
      {.name = "hold", .hold = true, .guards = false},
      {.name = "outdated-evict", .guards = false, .on = kNoHints, .outdated = {1, 2}},
      {.name = "leaves-outdated", .evicts = false, .guards = false, .on = kNoHints, .outdated = {1, 2}, .leaver = 2},
      {.name = "outdated-down", .guards = false, .on = kNoHints, .outdated = {2, 1}},
      {.name = "copies-nothing", .hold = true, .copies = true, .guards = false, .on = Features::none()},
      {.name = "hold-log", .log = true, .hold = true, .guards = false},
      {.name = "crash-log", .crashes = 1, .log = true, .guards = false},
      {.name = "crash-hold", .crashes = 1, .hold = true, .guards = false, .on = kNoHints},
      {.name = "crash-nothing", .crashes = 1, .guards = false, .on = Features::none()},
      {.name = "guards-hold", .hold = true},
      {.name = "guards-log", .log = true},
      {.name = "guards-hold-log", .log = true, .hold = true},
      {.name = "guards-crash", .crashes = 1},
      {.name = "early-crash", .crashes = 1, .guards = false, .on = without(Feature::kHints)},
      {.name = "early-crash-twice", .crashes = 2, .evicts = false, .guards = false, .on = without(Feature::kHints)},
      {.name = "early-log", .log = true, .guards = false, .on = Features::all()},
      {.name = "early-copies", .hold = true, .copies = true, .guards = false, .on = Features::all()},
      {.name = "early-guards", .on = Features::all()}};
}
INSTANTIATE_TEST_SUITE_P(Together, Explored, testing::ValuesIn(together()), name_of);

INSTANTIATE_TEST_SUITE_P(
    Mutations, Explored,
    testing::Values(
        Variant{.name = "forward-first",
                .guards = false,
                .on = Features::all(),
                .forward_first = true,
                .expect = "X1 X2 X3 X5"},
        Variant{.name = "transient-bits", .guards = false, .transient_bits = true, .expect = "X1 X2 X5"},
        Variant{.name = "caseless", .guards = false, .on = kPapers, .caseless = true, .expect = "X1 X2 X6 X7"},
        Variant{.name = "join-forgotten", .guards = false, .join_forgotten = true, .expect = "X6 X7"},
        Variant{.name = "join-twice", .crashes = 1, .guards = false, .join_twice = true, .expect = "X5 X6 X7"},
        Variant{.name = "claim-refused", .guards = false, .claim_refused = true, .expect = "X1 X2"},
        Variant{.name = "no-write-back", .guards = false, .no_write_back = true, .expect = "X4"},
        Variant{.name = "free-before-write", .guards = false, .free_before_write = true, .expect = "X2"},
        Variant{.name = "steal", .guards = false, .steal = true, .expect = "L2"},
        Variant{.name = "upgrade-forever", .guards = false, .on = kPapers, .upgrade_forever = true, .expect = "L1 L2"},
        Variant{.name = "old-request-acted",
                .evicts = false,
                .guards = false,
                .outdated = {1, 2},
                .old_request_acted = true,
                .expect = "X0 X6"},
        Variant{.name = "old-reply-acted",
                .evicts = false,
                .guards = false,
                .outdated = {1, 2},
                .old_reply_acted = true,
                .expect = "X1 X2 X6 X7"},
        Variant{.name = "former-request-taken",
                .guards = false,
                .on = kNoHints,
                .leaver = 2,
                .former_request_taken = true,
                .expect = "X1 X2 X3 X4 X6 X7"},
        Variant{.name = "former-reply-acted",
                .evicts = false,
                .guards = false,
                .on = kNoHints,
                .outdated = {1, 2},
                .leaver = 2,
                .former_reply_acted = true,
                .expect = "X0 X1 X2 X6 X7"},
        Variant{.name = "copy-kept",
                .hold = true,
                .copies = true,
                .guards = false,
                .copy_kept = true,
                .expect = "X1 X2 X6"},
        Variant{.name = "pending-kept",
                .hold = true,
                .copies = true,
                .guards = false,
                .pending_kept = true,
                .expect = "X7 L1 L2"},
        Variant{.name = "hold-ignored", .hold = true, .guards = false, .hold_ignored = true, .expect = "X8"},
        Variant{.name = "abandon", .guards = false, .abandon = true, .expect = "X1 X2 X6 X7"},
        Variant{.name = "no-quiesce",
                .crashes = 1,
                .guards = false,
                .on = Features::all(),
                .no_quiesce = true,
                .expect = "X1 X4 X6"},
        Variant{.name = "no-redo", .crashes = 1, .guards = false, .no_redo = true, .expect = "X2 X3"},
        Variant{.name = "one-redo",
                .crashes = 2,
                .evicts = false,
                .guards = false,
                .on = kNoHints,
                .one_redo = true,
                .expect = "X2 X3"},
        Variant{.name = "blind-take", .crashes = 1, .guards = false, .blind_take = true, .expect = "X1 X2 X3"},
        Variant{.name = "bits-kept", .crashes = 1, .guards = false, .bits_kept = true, .expect = "X1 X2 X6"},
        Variant{.name = "no-fence", .crashes = 1, .guards = false, .no_fence = true, .expect = "X1 X2 X3 X5"}),
    name_of);

}  // namespace coherence::model
