// Proofs that the checkers see: a mutation, and a checker that must see it when all others are switched off.
#pragma once

#include <gtest/gtest.h>

#include <cctype>
#include <string>

#include "coherence/line/features.hpp"
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
    if (proof.checker != Checker::kFence) o.crash_node = -1;
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

inline std::string name_of(const Proof& proof) {
  std::string name = std::string(mutation_name(proof.mutation)) + "_by_" + checker_name(proof.checker);
  for (char& c : name)
    if (!isalnum(static_cast<unsigned char>(c))) c = '_';
  return name;
}

}  // namespace sim
