// Seeds of buffer pools, and proofs that the checkers see what breaks them.
#include "bufmgr/session.hpp"
#include "proof.hpp"
#include "tests/support/longer.hpp"

namespace sim {
namespace {

using bufmgr::Count;

constexpr uint64_t kPoolSeeds = 300, kPoolGroups = 3;

// ./check runs 300 seeds, in groups; GCL_LONGER and GCL_SEED ask for more and for others.
class PoolSeeds : public testing::TestWithParam<uint64_t> {};

TEST_P(PoolSeeds, HoldWhatIsPromised) {
  const uint64_t count = kPoolSeeds / kPoolGroups * uint64_t(gcl_test::longer());
  const uint64_t from = uint64_t(gcl_test::seed(0)) * 1'000 * 1'000 + GetParam() * count;
  std::vector<uint64_t> counts(size_t(bufmgr::kCounts), 0);
  uint64_t fenced = 0;
  for (uint64_t seed = from; seed < from + count; seed++) {
    const Options o = pool_options_of(seed);
    const Outcome out = run(o);
    EXPECT_FALSE(out.failed) << checker_name(out.checker) << ": " << out.text << "\n  replay: " << command_of(o);
    fenced += out.fenced;
    for (size_t c = 0; c < counts.size(); c++) counts[c] += out.buffer_counts[c];
  }
  EXPECT_GT(fenced, 0u);
  for (int c = 0; c < bufmgr::kCounts; c++) {  // what bufmgr can do, has been done
    if (Count(c) == Count::kPagesAllocated || Count(c) == Count::kPagesFreed) continue;
    EXPECT_GT(counts[size_t(c)], 0u) << bufmgr::count_name(Count(c));
  }
}

INSTANTIATE_TEST_SUITE_P(Sim, PoolSeeds, testing::Range(uint64_t{0}, kPoolGroups));

// A node dies, perhaps a second one while it is repaired; the first one may join again.  Survivors read every change
// that is whole in a ring, the pool is not fenced, and all come to rest.
class PoolSurvivorSeeds : public testing::TestWithParam<uint64_t> {};

TEST_P(PoolSurvivorSeeds, RepairWhatTheDeadHad) {
  const uint64_t count = kPoolSeeds / kPoolGroups * uint64_t(gcl_test::longer());
  const uint64_t from = uint64_t(gcl_test::seed(0)) * 1'000 * 1'000 + GetParam() * count;
  (void)expect_repaired(from, count, pool_survivors_options_of, 1);
}

INSTANTIATE_TEST_SUITE_P(Sim, PoolSurvivorSeeds, testing::Range(uint64_t{0}, kPoolGroups));

TEST(PoolSim, ASeedIsOneRun) {
  for (uint64_t seed : {3u, 7u, 24u, 31u, 40u}) {
    const Outcome one = run(pool_options_of(seed));
    const Outcome other = run(pool_options_of(seed + 1));  // leaves other memory behind
    const Outcome again = run(pool_options_of(seed));
    EXPECT_EQ(one.hash, again.hash) << "seed " << seed;
    EXPECT_EQ(one.yields, again.yields);
    EXPECT_NE(one.hash, other.hash);
  }
}

class PoolBroken : public testing::TestWithParam<Proof> {};

TEST_P(PoolBroken, IsSeen) { expect_seen(GetParam(), pool_options_of); }

INSTANTIATE_TEST_SUITE_P(
    Sim, PoolBroken,
    testing::Values(
        Proof{Mutation::kUnpublishedFirst, Checker::kExclusion, 100},
        Proof{Mutation::kNotValidated, Checker::kLastWrite, 400}, Proof{Mutation::kNoWriteBack, Checker::kLastWrite},
        Proof{Mutation::kNoWriteBack, Checker::kHistory, 400}, Proof{Mutation::kGrantLost, Checker::kRest},
        Proof{Mutation::kNotUnpublished, Checker::kLeaks}, Proof{Mutation::kUnpublishedFirst, Checker::kLeaks},
        Proof{Mutation::kUncounted, Checker::kLeaks, 300}, Proof{Mutation::kWakeupLost, Checker::kProgress},
        Proof{Mutation::kNobodyWatches, Checker::kFence}, Proof{Mutation::kLatchedFreed, Checker::kProduct},
        Proof{Mutation::kCountedAsWritten, Checker::kProduct, 100}, Proof{Mutation::kLogIgnored, Checker::kLog}),
    [](const auto& info) { return name_of(info.param); });

class PoolBrokenRepair : public testing::TestWithParam<Proof> {};

TEST_P(PoolBrokenRepair, IsSeen) { expect_seen(GetParam(), pool_survivors_options_of); }

INSTANTIATE_TEST_SUITE_P(Sim, PoolBrokenRepair,
                         testing::Values(Proof{Mutation::kRedoForgotten, Checker::kLastWrite},
                                         Proof{Mutation::kOneRedo, Checker::kLastWrite, 400},
                                         Proof{Mutation::kSweptUnwritten, Checker::kLastWrite, 400},
                                         Proof{Mutation::kCopiesInRing, Checker::kLastWrite, 400},
                                         Proof{Mutation::kDeathUnrecorded, Checker::kRestart, 100},
                                         Proof{Mutation::kHoleOverlooked, Checker::kRestart, 400},
                                         Proof{Mutation::kRecordingWaits, Checker::kProgress, 400},
                                         Proof{Mutation::kJoinUnrecorded, Checker::kRestart},
                                         Proof{Mutation::kLogsApart, Checker::kRestart},
                                         Proof{Mutation::kAppliedAgain, Checker::kRestart, 100},
                                         Proof{Mutation::kGapApplied, Checker::kRestart, 100},
                                         Proof{Mutation::kGroupTorn, Checker::kRestart, 400},
                                         Proof{Mutation::kDeathRecordedLate, Checker::kRestart},
                                         Proof{Mutation::kVersionFirst, Checker::kLastWrite, 400},
                                         Proof{Mutation::kRangeLost, Checker::kLastWrite, 400}),
                         [](const auto& info) { return name_of(info.param); });

}  // namespace
}  // namespace sim
