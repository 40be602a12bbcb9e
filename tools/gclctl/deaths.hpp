// Primaries that are in the pool as its node table has it, and have died, or seem to: what their repair waits for. Read
// from outside (gclctl.looks-change-nothing), so it can be told while no server answers.
#pragma once

#include <map>
#include <string>

#include "tools/gclctl/cluster.hpp"

namespace gclctl {

// By primary, in words; without those that are in order.  Empty if the pool is not in memory, or cannot be read.
std::map<int, std::string> deaths_in(const Cluster& cluster);

}  // namespace gclctl
