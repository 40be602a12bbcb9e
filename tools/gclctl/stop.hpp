// Stopping servers.
#pragma once

#include <vector>

#include "tools/gclctl/cluster.hpp"

namespace gclctl {

// Signals the postmasters of those that run, and waits until they are gone.  Fails if one stays for two minutes.
void signal_and_wait(const Cluster& cluster, const std::vector<int>& nodes, int signal);

}  // namespace gclctl
