// A pool that a memory node's daemon serves: who is in it is asked there.
#pragma once

#include "tools/gclctl/pool.hpp"

namespace gclctl {

// REQUIRES: memory_node_process() is not 0.
PoolState ask_memory_node(const Cluster&);

}  // namespace gclctl
