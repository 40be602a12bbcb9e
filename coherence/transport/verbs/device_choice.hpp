// Which device, port and GID a process uses: as it is told, or found.
//
// verbs.gid-of-address: What is not told is found: of the ports that are active the one that has the address at which
//     this process is reached, and the GID that is this address (RoCE v2 before v1).  If no port has it, as over
//     InfiniBand or on a network of its own, the only port that there is.  Of several none is guessed.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "coherence/base/problem.hpp"
#include "coherence/base/result.hpp"
#include "coherence/transport/net/address.hpp"

namespace coherence::verbs {

// As a server's settings, or a tool's options, say it.
struct DeviceSettings {
  std::string device;  // its name; empty: to be found
  int port = 0;        // 0: likewise
  int gid_index = -1;  // likewise
};

// One entry of the GID table of a port.
struct PortGid {
  std::string device;
  uint8_t port = 1;
  bool active = true;
  bool infiniband = false;  // else RoCE
  bool v2 = true;           // of RoCE
  int index = 0;
  uint8_t gid[16] = {};
};

// The place in `all`.  `near`: where this process is reached; kNotFound: there is no such port or GID, or more than
// one that it may be.
Result<size_t> choose_gid(std::span<const PortGid> all, const DeviceSettings&, const net::Endpoint& near, Problem*);

// "10.0.0.2", "fe80::1".
struct GidText {
  explicit GidText(const uint8_t (&gid)[16]) noexcept;
  char text[46];
};

}  // namespace coherence::verbs
