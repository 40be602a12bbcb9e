// Each fault point has been the place of a death: while nodes work, while a dead one is repaired, and while a
// checkpoint is made; of one node, and of all but one.
#include <gtest/gtest.h>

#include <cstdio>
#include <string>
#include <tuple>

#include "pool_disk.hpp"
#include "proof.hpp"
#include "run.hpp"
#include "tests/support/longer.hpp"

namespace sim {
namespace {

constexpr uint64_t kTriesMax = 400;  // seeds that aim at a point; mostly one or two are enough

class FaultPoints : public testing::TestWithParam<std::tuple<Phase, bool>> {
 protected:
  static constexpr uint64_t kNever = 0;
  Phase phase() const { return std::get<0>(GetParam()); }
  bool most_die() const { return std::get<1>(GetParam()); }

  bool is_listed(FaultPoint at) const { return phase() != Phase::kWork || !is_of_repair(at); }

  // Counts the deaths of a run in which so many nodes died as are to.
  void count(const Options& o, const Outcome& out) {
    const uint64_t as_wanted = o.most_die ? uint64_t(o.nodes) - 1 : o.dies_second() ? 2 : 1;
    if (out.deaths.nodes != as_wanted) return;
    for (const Crash& crash : out.crashes)
      if (crash.phases & only(phase())) ++deaths_[size_t(crash.at)];
  }

  void play(uint64_t seed, FaultPoint at) {
    const Options o = crash_options_of(seed, at, phase(), most_die());
    const Outcome out = run(o);
    ++runs_;
    EXPECT_FALSE(out.failed) << checker_name(out.checker) << ": " << out.text << "\n  replay: " << command_of(o);
    EXPECT_FALSE(out.fenced);
    count(o, out);
    for (size_t i = 0; i < out.checkpoints_killed.size(); ++i) killed_[i] += out.checkpoints_killed[i];
    checkpoints_ += out.checkpoints;
  }

  uint64_t deaths_[kFaultPoints + 1] = {};
  uint64_t killed_[size_t(CheckpointStep::kCount)] = {};
  uint64_t runs_ = 0, checkpoints_ = 0;
};

TEST_P(FaultPoints, EachHasBeenThePlaceOfADeath) {
  const uint64_t from = uint64_t(gcl_test::seed(0)) * 1'000 * 1'000;
  for (uint64_t round = 0; round < kTriesMax * uint64_t(gcl_test::longer()); ++round)
    for (int p = 0; p < kFaultPoints; ++p)
      if (is_listed(FaultPoint(p)) && (gcl_test::longer() > 1 || deaths_[p] == kNever))
        play(from + round * kFaultPoints + uint64_t(p), FaultPoint(p));
  printf("%lu runs, %lu checkpoints\n", runs_, checkpoints_);
  for (int p = 0; p < kFaultPoints; ++p) {
    if (!is_listed(FaultPoint(p))) continue;
    printf("%6lu %s\n", deaths_[p], fault_point_name(FaultPoint(p)));
    EXPECT_NE(deaths_[p], kNever) << "no node has died at " << fault_point_name(FaultPoint(p)) << " ("
                                  << fault_point_words(FaultPoint(p)) << ")";
  }
  EXPECT_GT(checkpoints_, 0u);
  for (int s = 0; s < int(CheckpointStep::kCount); ++s)
    EXPECT_GT(killed_[s], 0u) << "no process that makes a checkpoint has died behind "
                              << checkpoint_step_name(CheckpointStep(s));
}

INSTANTIATE_TEST_SUITE_P(Sim, FaultPoints,
                         testing::Combine(testing::Values(Phase::kWork, Phase::kRepair, Phase::kCheckpoint),
                                          testing::Bool()),
                         [](const auto& info) {
                           return std::string(phase_name(std::get<0>(info.param))) +
                                  (std::get<1>(info.param) ? "_all_but_one" : "_one");
                         });

// Nodes die anywhere, and checkpoints take their time.
Options checkpoints_of(uint64_t seed) {
  Options o = pool_survivors_options_of(seed);
  o.loses_memory = o.slow_checkpoints = true;
  return o;
}

TEST(SlowCheckpoints, AreWholeThoughNodesDie) {
  for (uint64_t seed = 0; seed < 30 * uint64_t(gcl_test::longer()); ++seed) {
    const Options o = checkpoints_of(seed);
    const Outcome out = run(o);
    EXPECT_FALSE(out.failed) << checker_name(out.checker) << ": " << out.text << "\n  replay: " << command_of(o);
  }
}

class BrokenCheckpoint : public testing::TestWithParam<Proof> {};

TEST_P(BrokenCheckpoint, IsSeen) { expect_seen(GetParam(), checkpoints_of); }

INSTANTIATE_TEST_SUITE_P(Sim, BrokenCheckpoint,
                         testing::Values(Proof{Mutation::kCheckpointPagesLost, Checker::kRestart},
                                         Proof{Mutation::kCheckpointNamedFirst, Checker::kRestart, 400},
                                         Proof{Mutation::kRingsDroppedEarly, Checker::kRestart, 400},
                                         Proof{Mutation::kNotPutBack, Checker::kRestart, 400},
                                         Proof{Mutation::kHoleOverlooked, Checker::kRestart, 400}),
                         [](const auto& info) { return name_of(info.param); });

}  // namespace
}  // namespace sim
