// The product finds pages in its cache as often as true LRU does, but for two accesses in a hundred.
#include <gtest/gtest.h>

#include "replay.hpp"
#include "traces.hpp"

namespace gcl_test {
namespace {

using bufmgr::FrameMarks;
using bufmgr::Replacement;
using bufmgr::ReplacementKind;

// Points.  The clock, which is not the default, is a little worse beside a scan.
constexpr double kBelowLruMax = 2, kClockBelowLruMax = 3;

// Any frame: what a policy must be better than.
class Anything final : public Replacement {
 public:
  explicit Anything(uint32_t frames) : frames_(frames) {}
  int propose(uint32_t* frames, int wanted, int) noexcept override {
    for (int i = 0; i < wanted; ++i) frames[i] = uint32_t(random_() % frames_);
    return wanted;
  }
  void evicted(int) noexcept override {}

 private:
  uint32_t frames_;
  std::mt19937_64 random_{7};
};

std::unique_ptr<Replacement> sampling(FrameMarks marks) {
  return std::make_unique<bufmgr::EpochSampling>(marks, 2654435761u + 1);
}
std::unique_ptr<Replacement> second_chance(FrameMarks marks) { return std::make_unique<bufmgr::SecondChance>(marks); }
std::unique_ptr<Replacement> anything(FrameMarks marks) { return std::make_unique<Anything>(marks.frames()); }

// A tenth of a trace's pages, a quarter, half, three quarters.
std::vector<uint32_t> sizes_for(const NamedTrace& trace) {
  return {trace.distinct / 10, trace.distinct / 4, trace.distinct / 2, trace.distinct * 3 / 4};
}

class Traces : public testing::TestWithParam<NamedTrace (*)()> {
 protected:
  Traces() : trace_(GetParam()()) {}
  void expect_as_good_as_lru(const char* what, uint32_t frames, double hits, double below_max = kBelowLruMax) {
    const double lru = hit_ratio(trace_.pages, TrueLru(frames));
    printf("%-20s %5u of %5u pages: LRU %5.1f, %s %5.1f\n", trace_.name, frames, trace_.distinct, lru, what, hits);
    EXPECT_GE(hits, lru - below_max) << what << ", " << frames << " frames";
  }
  NamedTrace trace_;
};

INSTANTIATE_TEST_SUITE_P(Replacement, Traces,
                         testing::Values(tpcb_like, select_only, index_build, look_ups_and_a_scan, zipf,
                                         zipf_that_moves, zipf_and_loop, loop));

TEST_P(Traces, BothPoliciesAreAsGoodAsTrueLru) {
  for (const uint32_t frames : sizes_for(trace_)) {
    expect_as_good_as_lru("EpochSampling", frames, hit_ratio(trace_.pages, PolicyCache(frames, sampling)));
    expect_as_good_as_lru("SecondChance", frames, hit_ratio(trace_.pages, PolicyCache(frames, second_chance)),
                          kClockBelowLruMax);
  }
}

// The policy tells pages that come back from pages that come once; LRU keeps both alike.
TEST(Skewed, EpochSamplingIsBetterThanTrueLru) {
  const struct {
    NamedTrace (*trace)();
    double better;  // points, at a tenth and at a quarter of the pages
  } loads[] = {{zipf, 2}, {zipf_that_moves, 1.5}, {zipf_and_loop, 4}, {select_only, 3}, {look_ups_and_a_scan, 1.5}};
  for (const auto& load : loads) {
    const NamedTrace trace = load.trace();
    for (const uint32_t frames : {trace.distinct / 10, trace.distinct / 4}) {
      const double lru = hit_ratio(trace.pages, TrueLru(frames));
      EXPECT_GT(hit_ratio(trace.pages, PolicyCache(frames, sampling)), lru + load.better)
          << trace.name << ", " << frames << " frames";
    }
  }
}

TEST_P(Traces, SoIsTheWholePool) {
  for (const uint32_t frames : sizes_for(trace_))
    expect_as_good_as_lru("the pool", frames,
                          hit_ratio(trace_.pages, WholePool(frames, trace_.distinct, ReplacementKind::kEpochSampling)));
}

TEST_P(Traces, NoAccessOfTheEngineIsMissing) {
  EXPECT_EQ(trace_.pages.size(), trace_.accesses ? trace_.accesses : 100000);
}

// Frames taken at random miss the bar, and so does a policy that is not told of hits.
TEST(Bar, WhatIsTakenAtRandomOrUnmarkedIsBelowIt) {
  for (const auto& make : {zipf_and_loop, zipf}) {
    const NamedTrace trace = make();
    const uint32_t frames = trace.distinct / 10;
    const double lru = hit_ratio(trace.pages, TrueLru(frames));
    const double random = hit_ratio(trace.pages, PolicyCache(frames, anything));
    const double unmarked = hit_ratio(trace.pages, PolicyCache(frames, sampling), false);
    const double clock = hit_ratio(trace.pages, PolicyCache(frames, second_chance), false);
    printf("%-20s %5u of %5u pages: LRU %5.1f, at random %5.1f, unmarked %5.1f, unmarked clock %5.1f\n", trace.name,
           frames, trace.distinct, lru, random, unmarked, clock);
    EXPECT_LT(random, lru - kClockBelowLruMax) << trace.name;
    EXPECT_LT(unmarked, lru - kBelowLruMax) << trace.name;
    EXPECT_LT(clock, lru - kClockBelowLruMax) << trace.name;
  }
}

}  // namespace
}  // namespace gcl_test
