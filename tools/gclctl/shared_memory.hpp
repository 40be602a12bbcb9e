// The shared memory of a server that was killed.
#pragma once

#include "tools/gclctl/cluster.hpp"

namespace gclctl {

// Waits until no process of primary K has it mapped, and its postmaster's number is no zombie's, at most 10 s: its
// processes see that their server is gone, and end.  PostgreSQL refuses to start a server again before that.
void wait_until_unused(const Cluster& cluster, int k);

// It would be removed by the next start, and there will be none.
void remove_shared_memory(const Cluster& cluster, int k);

}  // namespace gclctl
