// The RDMA devices of this machine, as the kernel shows them in /sys: what transport `verbs` would find.
#pragma once

#include <string>
#include <vector>

#include "coherence/transport/net/address.hpp"

namespace gclctl {

struct RdmaPort {
  std::string device;  // "mlx5_0"
  int port = 0, gid = 0;
  std::string state;    // "ACTIVE"
  std::string file;     // what a process opens to use the device: "/dev/infiniband/uverbs0"
  bool usable = false;  // the caller may
};

bool has_rdma_devices();
// Those whose GID is that address; a device may have it several times, for versions of RoCE.
std::vector<RdmaPort> rdma_ports_of(const coherence::net::Endpoint& at);

}  // namespace gclctl
