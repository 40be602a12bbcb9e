// What the product's coherence meets instead of a machine and a network: a transport with the costs of Network, and its
// operating system calls, linked in place of base/os.cpp and base/verify.cpp.  Two functions are met on their way
// (CMakeLists.txt, --wrap): what MessageServer::serve_parked() and complete() do for peers, a fiber of its own does
// (paper.asynchronous-completions).
#pragma once

#include <vector>

#include "bench/paper/network.hpp"
#include "coherence/transport/shm/shm_transport.hpp"

namespace coherence {
class MessageServer;
class Node;
class RequestHandler;
}  // namespace coherence

namespace paper {

// A node's session that serves: whichever session takes a request, this one's batches are posted for it.
struct Worker {
  coherence::MessageServer* server;
  coherence::RequestHandler* handler;  // the same
  const coherence::Memory* memory;
  const coherence::Node* node;
};

struct Seams {
  Network* network = nullptr;
  std::vector<Crew> crews;  // of each compute node
  std::vector<Worker> workers;
};
extern Seams seams;
void forget_errands();  // of a run that is over
coherence::Transport& network_transport();

}  // namespace paper
