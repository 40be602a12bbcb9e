// What the product's coherence meets instead of a machine and a network: a transport with the costs of Network, and its
// operating system calls, linked in place of base/os.cpp and base/verify.cpp.  One function is met on its way
// (CMakeLists.txt, --wrap): what MessageServer::serve_parked() hands over, a fiber of its own hands over
// (paper.asynchronous-completions).
#pragma once

#include <vector>

#include "bench/paper/network.hpp"
#include "coherence/member/shm_transport.hpp"

namespace paper {

struct Seams {
  Network* network = nullptr;
  std::vector<Crew> crews;  // of each compute node
};
extern Seams seams;
void forget_errands();  // of a run that is over
coherence::Transport& network_transport();

}  // namespace paper
