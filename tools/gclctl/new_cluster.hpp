// A cluster that is about to be made in a new directory, by init or out of a backup.
#pragma once

#include <functional>
#include <string>

#include "tools/gclctl/cluster.hpp"
#include "tools/gclctl/prefix.hpp"

namespace gclctl {

struct NewCluster {
  std::string dir, memory_dir;
  int port = 0;
};

// Its directories, account and id; the rest is for the caller to say.
Cluster describe_new(const NewCluster& options);

// Takes the directory, which is new or empty, and has `fill` fill it, as the cluster's account.  Nothing is left of it
// if that fails.  `fill` returns 0.
int make_cluster(const Cluster& cluster, const std::function<int(const ExtensionFiles&)>& fill);

}  // namespace gclctl
