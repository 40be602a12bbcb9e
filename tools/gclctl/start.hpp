// Starting servers.
#pragma once

#include "tools/gclctl/cluster.hpp"

namespace gclctl {

// Starts those chosen that do not run, and waits until each answers, two minutes at most.  0, or 1 after it has told
// why one did not.  REQUIRES: the caller is the cluster's account.
int start_servers(const Cluster& cluster, int node);

}  // namespace gclctl
