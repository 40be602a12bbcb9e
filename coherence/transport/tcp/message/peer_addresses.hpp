// PeerAddresses: where peers listen.
#pragma once

#include <cstddef>
#include <cstdint>

#include "coherence/base/ids.hpp"

namespace coherence::tcp {

class PeerAddresses {
 public:
  // "ip:port" or "unix:/path" (net.names-looked-up-first), with its end.  False: of that incarnation nothing is known.
  virtual bool address_of(NodeId, uint64_t incarnation, char* to, size_t bytes) const noexcept = 0;

 protected:
  ~PeerAddresses() = default;
};

}  // namespace coherence::tcp
