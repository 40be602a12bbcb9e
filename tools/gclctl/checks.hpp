// What must be true of the machine before a cluster is made or started; each fails with a plain message.
#pragma once

#include "tools/gclctl/cluster.hpp"

namespace gclctl {

// Nobody listens on the port of primary K, neither on localhost nor in the socket directory.
void check_port_free(const Cluster& cluster, int k);
// Pool and frames fit into tmpfs and into the memory that is free now.
void check_memory(const Cluster& cluster, int primaries, bool with_pool);
// The account may enter every directory above `path`.
void check_reachable(const std::string& account, const fs::path& path);

}  // namespace gclctl
