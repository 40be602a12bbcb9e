// A pool that a memory node's daemon serves: who is in it is asked there.
#pragma once

#include <cstdint>

#include "tools/gclctl/pool.hpp"

namespace gclctl {

// REQUIRES: memory_node_process() is not 0.
PoolState ask_memory_node(const Cluster&);
// Whether memory node 0 has it, and knows where it is.
bool memory_node_is_here(const Cluster&, uint32_t number);

}  // namespace gclctl
