// Seeds, and proofs that the checkers see: see rules.md.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "coherence/eviction_window.hpp"
#include "coherence/line/features.hpp"
#include "coherence/session/protocol_driver.hpp"
#include "coherence/stats/counters.hpp"
#include "proof.hpp"
#include "run.hpp"
#include "tests/support/longer.hpp"

namespace sim {
namespace {

constexpr uint64_t kSeeds = 1'000, kSurvivorSeeds = 500, kGroups = 5;  // large enough that each meets what is rare
constexpr uint64_t kMemberSeeds = 300, kMemberGroups = 3;

// ./check runs 1000 seeds, in groups; GCL_LONGER and GCL_SEED ask for more and for others.
class Seeds : public testing::TestWithParam<uint64_t> {};

TEST_P(Seeds, HoldWhatIsPromised) {
  const uint64_t count = kSeeds / kGroups * uint64_t(gcl_test::longer());
  const uint64_t from = uint64_t(gcl_test::seed(0)) * 1'000 * 1'000 + GetParam() * count;
  std::vector<uint64_t> counters(size_t(coherence::kCounters), 0);
  uint64_t fenced = 0, asked_for_leaving = 0;
  Batches batches;
  for (uint64_t seed = from; seed < from + count; seed++) {
    const Options o = options_of(seed);
    const Outcome out = run(o);
    EXPECT_FALSE(out.failed) << checker_name(out.checker) << ": " << out.text << "\n  replay: " << command_of(o);
    fenced += out.fenced;
    asked_for_leaving += out.batches.asked_for_leaving;
    batches.at_once = std::max(batches.at_once, out.batches.at_once);
    batches.of_window = std::max(batches.of_window, out.batches.of_window);
    for (size_t c = 0; c < counters.size(); c++) counters[c] += out.counters[c];
  }
  EXPECT_GT(fenced, 0u);
  EXPECT_GT(asked_for_leaving, 0u);
  EXPECT_GE(batches.of_window, 2);
  EXPECT_LE(batches.of_window, coherence::EvictionWindow::kBatches);
  EXPECT_GE(batches.at_once, 2);
  EXPECT_LE(batches.at_once, coherence::ProtocolDriver::kUnderWayMax);
  counters[size_t(coherence::Counter::kRepairs)]++;  // SurvivorSeeds
  for (size_t c = 0; c < counters.size(); c++)       // what the protocol can do, has been done
    EXPECT_GT(counters[c], 0u) << coherence::counter_name(coherence::Counter(c));
}

INSTANTIATE_TEST_SUITE_P(Sim, Seeds, testing::Range(uint64_t{0}, kGroups));

// A node dies, perhaps a second one while it is repaired; the first one may join again.  No checker may see anything,
// the pool is not fenced, and pages are taken over.
class SurvivorSeeds : public testing::TestWithParam<uint64_t> {};

TEST_P(SurvivorSeeds, RepairWhatTheDeadHad) {
  const uint64_t count = kSurvivorSeeds / kGroups * uint64_t(gcl_test::longer());
  const uint64_t from = uint64_t(gcl_test::seed(0)) * 1'000 * 1'000 + GetParam() * count;
  (void)expect_repaired(from, count, survivors_options_of, 4);
}

INSTANTIATE_TEST_SUITE_P(Sim, SurvivorSeeds, testing::Range(uint64_t{0}, kGroups));

// Each showed a defect, of the product or of the simulator.
TEST(Sim, SeedsOfSurvivorsThatOnceFailed) {
  for (const uint64_t seed : {13u, 113u, 204u, 3942u}) {
    const Options o = survivors_options_of(seed);
    const Outcome out = run(o);
    EXPECT_FALSE(out.failed) << checker_name(out.checker) << ": " << out.text << "\n  replay: " << command_of(o);
  }
}

// The same where each node hears of the others late, and all that a node says of them, and its joins and leaves, are on
// their way for some time.
class MemberSeeds : public testing::TestWithParam<uint64_t> {};

TEST_P(MemberSeeds, RepairAndJoinThoughNewsAreLate) {
  const uint64_t count = kMemberSeeds / kMemberGroups * uint64_t(gcl_test::longer());
  const uint64_t from = uint64_t(gcl_test::seed(0)) * 1'000 * 1'000 + GetParam() * count;
  const Members seen = expect_repaired(from, count, members_options_of, 4);
  EXPECT_GT(seen.skipped, count / 2);
  EXPECT_GT(seen.joins_waited, count / 4);
  EXPECT_GT(seen.former_sayings, count / 10);
  EXPECT_GT(seen.calls_broken, count / 10);
  EXPECT_GT(seen.woken, count);
  EXPECT_GT(seen.cut_off, 0u);
}

INSTANTIATE_TEST_SUITE_P(Sim, MemberSeeds, testing::Range(uint64_t{0}, kMemberGroups));

// Many pages are evicted in small groups while peers want them, over a slow network.  A session posts nothing beside
// its window (eviction.waits-for-batches): so it never has more under way (eviction.few-under-way).
TEST(Sim, AWindowOfEvictionsIsFullAndNeverMore) {
  int at_once = 0;
  uint64_t asked_for_leaving = 0;
  for (uint64_t seed = 0; seed < 200; seed++) {
    Options o = options_of(seed);
    o.nodes = 3, o.threads = 2;
    o.pages = o.frames = 12;
    o.writes_percent = 30;
    o.victim = o.crash_node = o.leaver = o.slow_node = -1;
    o.break_one_in = 0;
    o.pace.late_one_in = 1;
    o.pace.verb_ns_max = 5'000;
    const Outcome out = run(o);
    EXPECT_FALSE(out.failed) << checker_name(out.checker) << ": " << out.text << "\n  replay: " << command_of(o);
    at_once = std::max(at_once, out.batches.of_window);
    asked_for_leaving += out.batches.asked_for_leaving;
  }
  EXPECT_EQ(at_once, coherence::EvictionWindow::kBatches);
  EXPECT_GT(asked_for_leaving, 100u);
}

TEST(Sim, ASeedIsOneRun) {
  std::set<uint64_t> hashes;
  for (uint64_t seed : {3u, 7u, 24u, 31u, 40u}) {
    const Outcome one = run(options_of(seed));
    const Outcome other = run(options_of(seed + 1));  // leaves other memory behind
    const Outcome again = run(options_of(seed));
    EXPECT_EQ(one.hash, again.hash) << "seed " << seed;
    EXPECT_EQ(one.yields, again.yields);
    EXPECT_EQ(one.virtual_ns, again.virtual_ns);
    hashes.insert({one.hash, other.hash});
  }
  EXPECT_EQ(hashes.size(), 10u);
}

TEST(Sim, ATracedRunIsTheSameRun) {
  for (const auto of_seed : {options_of, survivors_options_of, pool_options_of, pool_survivors_options_of}) {
    Options o = of_seed(7);
    const Outcome out = run(o);
    o.trace = true;
    testing::internal::CaptureStdout();
    const Outcome traced = run(o);
    EXPECT_FALSE(testing::internal::GetCapturedStdout().empty());
    EXPECT_EQ(out.hash, traced.hash) << command_of(o);
    EXPECT_EQ(out.yields, traced.yields);
  }
}

// A node that leaves and joins again among nodes that want its pages, while what was said before comes again.
Options former_of(uint64_t seed) {
  Options o = options_of(seed);
  o.nodes = 3 + int(seed % 2), o.threads = 2;
  o.pages = 2, o.frames = 2;
  o.operations = 60;
  o.writes_percent = 50;
  o.far = o.former = true;
  o.break_one_in = 0;
  o.victim = o.crash_node = o.slow_node = -1;
  o.leaver = 0;
  o.lazy_log = false;
  o.pauses = 0;
  return o;
}

TEST(Sim, WhatWasSaidToAFormerIncarnationHasNoEffect) {
  for (uint64_t seed = 0; seed < 100; seed++) {
    const Options o = former_of(seed);
    const Outcome out = run(o);
    EXPECT_FALSE(out.failed) << checker_name(out.checker) << ": " << out.text << "\n  replay: " << command_of(o);
  }
}

class Former : public testing::TestWithParam<Proof> {};

TEST_P(Former, IsSeen) { expect_seen(GetParam(), former_of); }

INSTANTIATE_TEST_SUITE_P(Sim, Former,
                         testing::Values(Proof{Mutation::kFormerRequestTaken, Checker::kRest, 200},
                                         Proof{Mutation::kFormerReplyActed, Checker::kProgress}),
                         [](const auto& info) { return name_of(info.param); });

// The same batch, in the same run: as it is, and counted as done.
TEST(Sim, AnUnknownOutcomeThatCountsAsSuccessLosesAWrite) {
  for (uint64_t seed = 0; seed < 1'000; seed++) {
    Options o = options_of(seed);
    if (o.break_one_in == 0) continue;
    const Outcome out = run(o);
    ASSERT_FALSE(out.failed) << checker_name(out.checker) << ": " << out.text << "\n  replay: " << command_of(o);
    o.mutation = Mutation::kUnknownSucceeds;
    const Outcome taken = run(o);
    if (!out.fenced || !taken.failed || taken.checker != Checker::kLastWrite) continue;
    printf("seen at seed %llu: %s\n", static_cast<unsigned long long>(seed), taken.text.c_str());
    EXPECT_FALSE(taken.fenced);
    return;
  }
  FAIL() << "not seen";
}

bool parse_words(std::vector<std::string> words, Options* o) {
  std::vector<char*> pointers;
  for (std::string& w : words) pointers.push_back(w.data());
  return parse(int(pointers.size()), pointers.data(), o);
}

TEST(Sim, ASeedIsReadWhereverItStands) {
  const std::string expected = command_of(options_of(17)) + " --nodes 5";
  for (const auto& words : {std::vector<std::string>{"--seed", "17", "--nodes", "5", "--trace"},
                            {"--trace", "--seed", "17", "--nodes", "5"},
                            {"--nodes", "5", "--trace", "--seed", "17"}}) {
    Options read;
    ASSERT_TRUE(parse_words(words, &read));
    EXPECT_TRUE(read.trace);
    EXPECT_EQ(command_of(read), expected);
    EXPECT_EQ(read.think_ns_max, options_of(17).think_ns_max);
  }
}

TEST(Sim, ThePrintedCommandReplaysTheRun) {
  Options o = options_of(11);
  o.nodes = 4;
  o.crash_node = -1;
  o.mutation = Mutation::kKeptShare;
  std::string command = command_of(o);
  std::vector<std::string> words;
  for (size_t at = command.find("--"); at != std::string::npos && at < command.size();) {
    const size_t end = std::min(command.find(' ', at), command.size());
    words.push_back(command.substr(at, end - at));
    at = end + 1;
  }
  Options read;
  ASSERT_TRUE(parse_words(words, &read)) << command;
  EXPECT_EQ(run(o).hash, run(read).hash) << command;
}

class Broken : public testing::TestWithParam<Proof> {};

TEST_P(Broken, IsSeen) { expect_seen(GetParam(), options_of); }

INSTANTIATE_TEST_SUITE_P(
    Sim, Broken,
    testing::Values(
        Proof{Mutation::kFalseGrant, Checker::kExclusion}, Proof{Mutation::kClaimRefused, Checker::kExclusion, 400},
        Proof{Mutation::kClaimRefused, Checker::kLastWrite, 400}, Proof{Mutation::kErrorsIgnored, Checker::kExclusion},
        Proof{Mutation::kJoinForgotten, Checker::kExclusion, 400},
        Proof{Mutation::kLostPendingReader, Checker::kExclusion}, Proof{Mutation::kPageStolen, Checker::kExclusion},
        Proof{Mutation::kKeptShare, Checker::kLastWrite}, Proof{Mutation::kNoWriteBack, Checker::kLastWrite},
        Proof{Mutation::kFreedBeforeWritten, Checker::kLastWrite},
        Proof{Mutation::kReleasedBeforeUse, Checker::kLastWrite}, Proof{Mutation::kTakenTwice, Checker::kLastWrite},
        Proof{Mutation::kNoWriteBack, Checker::kHistory}, Proof{Mutation::kDowngradeFirst, Checker::kRest},
        Proof{Mutation::kGrantLost, Checker::kRest}, Proof{Mutation::kGrantLost, Checker::kLeaks},
        Proof{Mutation::kLatchKept, Checker::kLeaks}, Proof{Mutation::kGrantLost, Checker::kProgress},
        Proof{Mutation::kNobodyWatches, Checker::kFence}, Proof{Mutation::kLongSleeps, Checker::kFence},
        Proof{Mutation::kForwardFirst, Checker::kProduct}, Proof{Mutation::kInFlightLeaves, Checker::kProduct, 400},
        Proof{Mutation::kInFlightLeaves, Checker::kLastWrite, 400}, Proof{Mutation::kTransientBits, Checker::kProduct},
        Proof{Mutation::kDoubleAdd, Checker::kProduct}, Proof{Mutation::kLogIgnored, Checker::kLog},
        Proof{Mutation::kEventFirst, Checker::kProduct}, Proof{Mutation::kEventFirst, Checker::kExclusion},
        Proof{Mutation::kEventFirst, Checker::kLastWrite}, Proof{Mutation::kUnknownSucceeds, Checker::kFence, 400},
        Proof{Mutation::kUnknownSucceeds, Checker::kExclusion, 3000},
        Proof{Mutation::kUnknownSucceeds, Checker::kLastWrite, 400},
        Proof{Mutation::kNoTurnLimit, Checker::kFairness, 400}, Proof{Mutation::kNoAging, Checker::kFairness, 8000}),
    [](const auto& info) { return name_of(info.param); });

class BrokenRepair : public testing::TestWithParam<Proof> {};

TEST_P(BrokenRepair, IsSeen) { expect_seen(GetParam(), survivors_options_of); }

INSTANTIATE_TEST_SUITE_P(Sim, BrokenRepair,
                         testing::Values(Proof{Mutation::kRedoForgotten, Checker::kLastWrite},
                                         Proof{Mutation::kOneRedo, Checker::kLastWrite, 400},
                                         Proof{Mutation::kSweptUnwritten, Checker::kLastWrite, 400},
                                         Proof{Mutation::kFormerGrantLands, Checker::kLastWrite, 400},
                                         Proof{Mutation::kFormerGrantLands, Checker::kProgress},
                                         Proof{Mutation::kFormerRequestTaken, Checker::kRest, 800},
                                         Proof{Mutation::kBitDroppedLate, Checker::kRest}),
                         [](const auto& info) { return name_of(info.param); });

class BrokenMembers : public testing::TestWithParam<Proof> {};

TEST_P(BrokenMembers, IsSeen) { expect_seen(GetParam(), members_options_of); }

INSTANTIATE_TEST_SUITE_P(Sim, BrokenMembers,
                         testing::Values(Proof{Mutation::kJoinUnseen, Checker::kProgress},
                                         Proof{Mutation::kSayingFormer, Checker::kLastWrite, 400},
                                         Proof{Mutation::kSayingFormer, Checker::kProgress, 800},
                                         Proof{Mutation::kRepairableEarly, Checker::kProgress, 400},
                                         Proof{Mutation::kForgottenEarly, Checker::kLastWrite, 400},
                                         Proof{Mutation::kJoinAbandoned, Checker::kProgress, 400},
                                         Proof{Mutation::kUnknownLeaveCounts, Checker::kLeaks, 1600},
                                         Proof{Mutation::kCutOffGoesOn, Checker::kLastWrite, 400},
                                         Proof{Mutation::kCutOffGoesOn, Checker::kRest, 400},
                                         Proof{Mutation::kWakeLost, Checker::kProgress},
                                         Proof{Mutation::kWakeOvertakes, Checker::kProgress},
                                         Proof{Mutation::kTableLost, Checker::kProgress}),
                         [](const auto& info) { return name_of(info.param); });

}  // namespace
}  // namespace sim
