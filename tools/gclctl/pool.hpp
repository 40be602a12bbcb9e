// The pool of a cluster, through the layers that own its format.
#pragma once

#include <string>

#include "tools/gclctl/cluster.hpp"

namespace gclctl {

// Makes the pool and its durable copy, for the server in the private prefix.
void create_pool(const Cluster& cluster);

struct PoolState {
  enum class Kind { kClean, kInUse, kUnclean, kAbsent } kind;
  std::string text;  // why, for kUnclean and kAbsent
};
// What the pool's files say.  Fails when they were written for a server that differs from this cluster's.
PoolState inspect_pool(const Cluster& cluster);

}  // namespace gclctl
