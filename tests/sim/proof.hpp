// Proofs that the checkers see: a mutation, and a checker that must see it when all others are switched off.
#pragma once

#include <gtest/gtest.h>

#include <cctype>
#include <string>

#include "coherence/line/features.hpp"
#include "coherence/stats/counters.hpp"
#include "run.hpp"

namespace sim {

struct Proof {
  Mutation mutation;
  Checker checker;
  int seeds_max = 40;
};

inline void expect_seen(const Proof& proof, Options (*options_of)(uint64_t)) {
  using coherence::Feature;
  for (int seed = 0; seed < proof.seeds_max; seed++) {
    Options o = options_of(uint64_t(seed));
    o.mutation = proof.mutation;
    o.checkers = only(proof.checker);
    if (proof.checker != Checker::kFence && !o.survives) o.crash_node = -1;
    if (proof.checker == Checker::kFairness && o.victim < 0) continue;
    // What helps the starved requester, too, would hide it.
    if (proof.checker == Checker::kFairness)
      o.off = 1u << int(Feature::kMatching) | 1u << int(Feature::kResendInterval);
    if (const Outcome out = run(o); out.failed) {
      printf("seen at seed %d: %s\n", seed, out.text.c_str());
      return;
    }
  }
  ADD_FAILURE() << "not seen in " << proof.seeds_max << " seeds";
}

// Seeds of survivors: no checker sees anything, the pool is not fenced, and what is to happen happens.  At least one
// page in `seeds_per_repair` seeds is taken over.  Returns what is known of far members.
inline Members expect_repaired(uint64_t from, uint64_t count, Options (*options_of)(uint64_t),
                               uint64_t seeds_per_repair) {
  Members members;
  uint64_t deaths = 0, in_repair = 0, repairs = 0, rejoined = 0, answers_delayed = 0, far = 0;
  for (uint64_t seed = from; seed < from + count; seed++) {
    const Options o = options_of(seed);
    const Outcome out = run(o);
    EXPECT_FALSE(out.failed) << checker_name(out.checker) << ": " << out.text << "\n  replay: " << command_of(o);
    EXPECT_FALSE(out.fenced);
    deaths += out.deaths.nodes;
    in_repair += out.deaths.in_repair;
    rejoined += out.deaths.rejoined;
    answers_delayed += out.deaths.answers_delayed;
    far += o.far;
    repairs += out.counters[size_t(coherence::Counter::kRepairs)];
    members.skipped += out.members.skipped;
    members.joins_waited += out.members.joins_waited;
    members.former_sayings += out.members.former_sayings;
    members.calls_broken += out.members.calls_broken;
    members.woken += out.members.woken;
    members.cut_off += out.members.cut_off;
  }
  EXPECT_GT(deaths, count / 2);
  EXPECT_GT(in_repair, 0u);  // one of the two has taken over pages of the other
  EXPECT_GT(rejoined, count / 10);
  EXPECT_GT(repairs, count / seeds_per_repair);
  EXPECT_GE(answers_delayed, far / 8);  // they came to a node's next incarnation
  return members;
}

inline std::string name_of(const Proof& proof) {
  std::string name = std::string(mutation_name(proof.mutation)) + "_by_" + checker_name(proof.checker);
  for (char& c : name)
    if (!isalnum(static_cast<unsigned char>(c))) c = '_';
  return name;
}

}  // namespace sim
