// What must be true of the machine before a cluster is made or started; each fails with a plain message.
#pragma once

#include "tools/gclctl/cluster.hpp"

namespace gclctl {

// No process listens on the port of primary K, neither on localhost nor in the socket directory.
void check_port_free(const Cluster& cluster, int k);
// So many bytes fit into tmpfs and into the memory that is free now.  `what` needs them; `or_else`: what to do with
// less.
void check_memory(const fs::path& tmpfs, uint64_t bytes, const std::string& what, const std::string& or_else);
// The same for a pool that is not in memory (0 bytes: it is) and the frames of so many primaries.
void check_memory(const Cluster& cluster, int primaries, uint64_t pool_bytes);
// The account may enter every directory above `path`.
void check_reachable(const std::string& account, const fs::path& path);

}  // namespace gclctl
