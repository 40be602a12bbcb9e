// The memory node of a cluster whose primaries reach it over tcp: the daemon gcl_memnode, on this machine.
#pragma once

#include <map>
#include <string>

#include "tools/gclctl/cluster.hpp"

namespace gclctl {

// All of these do nothing where the primaries map the pool.

// Makes what it and the primaries show each other, a key that only the account can read.
void make_cluster_key(const Cluster&);
// Starts it, unless it runs; it serves the pool when this returns.
void start_memory_node(const Cluster&);
// Ends it, and waits for its end.  REQUIRES: no primary runs.
void stop_memory_node(const Cluster&);
// Where it listens, and the file with the key.
std::string memory_node_address(const Cluster&);
std::string cluster_key(const Cluster&);
// Its process; 0: there is none.
int memory_node_process(const Cluster&);
// As `gclctl status` shows it, a line; empty: there is none to show.
std::string memory_node_in_words(const Cluster&);
// What a primary's configuration says of it: names and values.
std::map<std::string, std::string> memory_node_settings(const Cluster&);

}  // namespace gclctl
