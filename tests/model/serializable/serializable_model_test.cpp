// Both protocols explored: serializable and never stuck as they are, refuted when a rule is broken.
//   test_serializable_model --gtest_filter=*            all; prints one line per variant
#include <gtest/gtest.h>

#include <chrono>

#include "model.hpp"
#include "tests/support/longer.hpp"

namespace serializable_model {

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr int kEvery = 500;  // a sanitizer looks at the code, not at the protocols
#else
constexpr int kEvery = 1;
#endif

constexpr const char* kNoOrder = "no serial order";
constexpr const char* kStuck = "nobody can go on";
constexpr const char* kNobody = "nobody has committed";

struct Variant {
  const char* name;
  Make make;
  Rules rules{};
  const char* expect = "";
  int every = 1;  // one of so many configurations
};

class Explored : public testing::TestWithParam<Variant> {};

std::string name_of(const testing::TestParamInfo<Variant>& info) { return info.param.name; }

TEST_P(Explored, AsExpected) {
  const Variant& v = GetParam();
  const auto begin = std::chrono::steady_clock::now();
  // Longer: a third operation, of which a part of all programs.
  const bool longer = gcl_test::longer() > 1;
  const int nodes = v.make == make_holds ? 2 : 1;  // validation knows no nodes, and no READ ONLY but reading alone
  const Verdict verdict =
      explore(v.make, v.rules, longer ? 3 : 2, nodes, nodes > 1, longer ? 10 * v.every : v.every * kEvery);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  printf("%-40s %6zu configurations %9zu states %8zu ends  %.1f s  %s\n", v.name, verdict.configurations,
         verdict.states, verdict.ends, seconds, verdict.broken.c_str());
  if (kEvery > 1 && *v.expect != 0) return;
  EXPECT_EQ(verdict.broken, v.expect) << verdict.trace;
}

INSTANTIATE_TEST_SUITE_P(
    Holds, Explored,
    testing::Values(Variant{"AsInTheRules", make_holds},
                    Variant{"OfAnEndlessPatience", make_holds, {.gives_up = false}, "", 7},
                    Variant{"WithoutRefusingTheSecondWriter", make_holds, {.refuses_second = false}, "", 7}),
    name_of);

INSTANTIATE_TEST_SUITE_P(
    Validation, Explored,
    testing::Values(Variant{"InTheOrderOfTimestamps", make_validation},
                    Variant{"ThatWaitsForAllThatCommit", make_validation, {.doubt = Rules::Doubt::kWait}}),
    name_of);

INSTANTIATE_TEST_SUITE_P(
    HoldsWhere, Explored,
    testing::Values(Variant{"ReadsAreNotHeld", make_holds, {.holds_reads = false}, kNoOrder},
                    Variant{"ReadsAreHeldForAMoment", make_holds, {.holds_until_end = false}, kNoOrder},
                    Variant{"TheLeafOfARangeIsNotHeld", make_holds, {.leaf_of_range = false}, kNoOrder},
                    Variant{"TheLeafOfAnInsertIsNotHeld", make_holds, {.leaf_of_insert = false}, kNoOrder},
                    Variant{"AReaderLetsGoToWrite", make_holds, {.keeps_while_upgrading = false}, kNoOrder},
                    Variant{"HoldsEndBeforeTheCommit", make_holds, {.strict = false}, kNoOrder},
                    Variant{"WhatIsNewerIsNoConflict", make_holds, {.newer_is_conflict = false}, kNoOrder},
                    Variant{"TheClockComesBeforeCommitting", make_holds, {.committing_before_clock = false}, kNoOrder},
                    Variant{"AGivenUpWriterCommits", make_holds, {.given_up_commits_nothing = false}, kNoOrder},
                    Variant{"AGivenUpReaderWrites", make_holds, {.given_up_writes_nothing = false}, kNoOrder},
                    Variant{"ReadOnlyReadsWhatIsNewest", make_holds, {.read_only_by_snapshot = false}, kNoOrder},
                    Variant{"ReadOnlyFinishesNoCommit", make_holds, {.wait_for_doubt = false}, kNoOrder},
                    Variant{"NobodyLooksForDeadlocks", make_holds, {.detects_deadlocks = false}, kStuck}),
    name_of);

INSTANTIATE_TEST_SUITE_P(
    ValidationWhere, Explored,
    testing::Values(Variant{"NothingIsValidated", make_validation, {.commit = "PCAF"}, kNoOrder},
                    Variant{"ItComesBeforePrepared", make_validation, {.commit = "VVPCAF"}, kNoOrder},
                    Variant{"ItComesBeforeTheClock", make_validation, {.commit = "PVVCAF"}, kNoOrder},
                    Variant{"TheClockComesBeforePrepared", make_validation, {.commit = "CPAVVF"}, kNoOrder},
                    Variant{"TheCommitHasALaterTimestamp", make_validation, {.commit = "PCAVVCF"}, kNoOrder},
                    Variant{"ARunningVersionProves", make_validation, {.running_proves_nothing = false}, kNoOrder},
                    Variant{"ANewerVersionProves", make_validation, {.newer_proves_nothing = false}, kNoOrder},
                    Variant{"ChangesOfAPageAreNotNoted", make_validation, {.changes_are_noted = false}, kNoOrder},
                    Variant{"AnInsertIsNoChange", make_validation, {.insert_is_change = false}, kNoOrder},
                    Variant{"TheLeafOfARangeIsNotLookedAt", make_validation, {.leaf_of_range = false}, kNoOrder},
                    Variant{"WhatIsNewerIsWritten", make_validation, {.first_updater_wins = false}, kNoOrder},
                    Variant{"RowsAreNotLocked", make_validation, {.locks_rows = false}, kNoOrder},
                    Variant{"ReadersDoNotWaitForDoubt", make_validation, {.wait_for_doubt = false}, kNoOrder},
                    Variant{"ReadersReadWhatIsNewest", make_validation, {.read_only_by_snapshot = false}, kNoOrder},
                    Variant{"AllThatCommitIsAConflict", make_validation, {.doubt = Rules::Doubt::kAbort}, kNobody},
                    Variant{"NobodyLooksForDeadlocks", make_validation, {.detects_deadlocks = false}, kStuck}),
    name_of);

}  // namespace serializable_model
