// The shared memory of a server that was killed.
#pragma once

#include "tools/gclctl/cluster.hpp"

namespace gclctl {

// Waits until no process of primary K has it mapped, and its postmaster's number is no zombie's: its processes see that
// their server is gone, and end.  PostgreSQL refuses to start a server again before that.  One that has not ended after
// 10 s stands still, or waits for a lock that a killed process had: it is killed, and that is said.
// REQUIRES: the postmaster is gone, and nobody starts another one meanwhile (start.cpp).
// Whether it is so now.
bool wait_until_unused(const Cluster& cluster, int k);

// It would be removed by the next start, and there will be none.
void remove_shared_memory(const Cluster& cluster, int k);

}  // namespace gclctl
