// Starting servers.
#pragma once

#include <memory>

#include "coherence/region/pool_lock.hpp"
#include "tools/gclctl/cluster.hpp"

namespace gclctl {

// Starts those chosen that do not run, and waits until each answers, two minutes at most.  0, or 1 after it has told
// why one did not.  REQUIRES: the caller is the cluster's account.
int start_servers(const Cluster& cluster, int node);
// While it lives no other gclctl starts that primary (gclctl.one-start-at-a-time): it waits.  REQUIRES: the directory
// of its data directory is there.
std::unique_ptr<coherence::PoolLock> lock_start(const Cluster& cluster, int k);

}  // namespace gclctl
