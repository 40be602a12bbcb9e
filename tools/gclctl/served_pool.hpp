// A pool that a memory node's daemon serves: which nodes are in it is asked there.
#pragma once

#include <cstdint>
#include <string>

#include "coherence/transport/tcp/member/member_frames.hpp"
#include "tools/gclctl/pool.hpp"

namespace gclctl {

// What memory node 0 says of members and memory nodes; false: it says nothing, and `why` is the reason.  Some seconds
// at most.
bool ask_for_table(const Cluster&, coherence::tcp::Table* table, std::string* why);
// `clean`: no node is in the pool, and it is saved.
bool ask_for_table(const Cluster&, coherence::tcp::Table* table, bool* clean, std::string* why);
PoolState ask_memory_node(const Cluster&);
// Whether memory node 0 has it, and knows where it is.
bool memory_node_is_here(const Cluster&, uint32_t number);
// Why it has no pages yet (tcp.pages-where-all-reach): "primary 2 does not reach it at 10.0.0.7:7401"; empty: it is
// used, or memory node 0 says nothing.
std::string why_unused(const Cluster&, uint32_t number);

}  // namespace gclctl
