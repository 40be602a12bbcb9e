// One run: a seed's cluster from its first join to its last leave, or to its fence.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "findings.hpp"
#include "options.hpp"
#include "seams.hpp"

namespace sim {

struct Outcome {
  bool failed = false;
  Checker checker = Checker::kProduct;
  std::string text;   // what was wrong
  uint64_t hash = 0;  // of all that happened, in its order
  bool fenced = false;
  uint64_t sections = 0, yields = 0, switches = 0, virtual_ns = 0, longest_wait_ns = 0, allowed_wait_ns = 0;
  Batches batches;
  std::vector<Crash> crashes;  // in their order; those that the seed has a point for
  Deaths deaths;
  Members members;
  std::vector<uint64_t> counters;            // coherence's, over all nodes
  std::vector<uint64_t> buffer_counts;       // bufmgr's, where the users go through it
  uint64_t checkpoints = 0;                  // that took the place of the one before
  std::vector<uint64_t> checkpoints_killed;  // whose process died, by CheckpointStep
};

Outcome run(const Options&);

}  // namespace sim
