// The memory nodes of a cluster whose primaries reach them over tcp: daemons gcl_memnode, on this machine.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "coherence/region/pool_lock.hpp"
#include "tools/gclctl/cluster.hpp"

namespace gclctl {

// All of these do nothing where the primaries map the pool.

// Makes what it and the primaries show each other, a key that only the account can read.
void make_cluster_key(const Cluster&);
// While it lives no other gclctl starts or stops memory nodes: a second daemon of one would be refused, and its process
// be the one that is noted.
std::unique_ptr<coherence::PoolLock> lock_memory_nodes(const Cluster&);
// A command that was killed may have left number 0, which loads the pool: waits until that serves, or ends.
void wait_while_memory_node_loads(const Cluster&);
// Starts those that do not run; they serve the pool when this returns.  REQUIRES: the lock.
void start_memory_nodes(const Cluster&);
// Starts one that the pool does not have yet, with so many bytes of pages; the pool has it when this returns. REQUIRES:
// memory node 0 runs.
void start_new_memory_node(const Cluster&, uint64_t pages_bytes);
// Waits until all primaries reach a memory node; after a while says why that is not so: what is wrong, and what to do.
std::string wait_until_used(const Cluster&, uint32_t number);
// Ends them, and waits for their ends.  REQUIRES: no primary runs; the lock, unless the cluster goes.
void stop_memory_nodes(const Cluster&);
// Where number 0 listens, and the file with the key.
std::string memory_node_address(const Cluster&);
std::string cluster_key(const Cluster&);
// A memory node's process; 0: there is none.
int memory_node_process(const Cluster&, uint32_t number = 0);
// As `gclctl status` shows them, a line each; empty: there is none to show.
struct MemoryNodesInWords {
  std::string text;
  bool all_serve = true;
};
MemoryNodesInWords memory_nodes_in_words(const Cluster&);
// What the configuration of primary K says of them: names and values.
std::map<std::string, std::string> memory_node_settings(const Cluster&, int k);

}  // namespace gclctl
