// What `gclctl status` asks a running primary, in one glance.  Never hangs: a server that does not answer within a few
// seconds is shown as one.
#pragma once

#include <optional>
#include <string>

#include "tools/gclctl/cluster.hpp"

namespace gclctl {

struct Glance {
  std::string primary;              // of this primary: connections, transactions, cache
  std::optional<std::string> pool;  // of the pool and its DDL lock, as this primary sees them
  bool fenced = false;
};

// *database: where the extension's views were found last; empty: not yet.  Others are visited until they are found.
Glance glance_at(const Cluster& cluster, int k, std::string* database);

}  // namespace gclctl
