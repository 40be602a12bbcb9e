// The transport over RDMA verbs: tcp's, whose batches go by queue pairs.
#pragma once

#include <memory>

#include "coherence/member/transport.hpp"
#include "coherence/transport/settings.hpp"

namespace coherence::verbs {

// Errors as TcpTransport::make(); which device there is is seen when the node's worker begins.
Result<std::unique_ptr<Transport>> make_transport(const TransportSettings&, Problem*);

}  // namespace coherence::verbs
