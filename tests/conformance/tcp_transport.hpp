// The transports over networks: two memory nodes, a network worker, and users in threads and processes.
#pragma once

#include <memory>

#include "transport.hpp"

namespace conformance {

// Protected connections: to one memory node over loopback, to the other over a unix socket.
std::unique_ptr<Transport> make_tcp();
// Batches by queue pairs, of the devices of gcl_test::rdma_addresses(), which there are.
std::unique_ptr<Transport> make_verbs();
// Connections that break again and again; their links do not (tcp.exactly-once).
std::unique_ptr<Transport> make_tcp_over_broken_connections();

}  // namespace conformance
