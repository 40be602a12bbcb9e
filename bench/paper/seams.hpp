// What the product's coherence meets instead of a machine and a network: its operating system calls, its transport and
// its messages, with the costs of Network.  Linked in place of base/os.cpp, base/verify.cpp, stats/hot_pages.cpp and
// transport/shm/shm_memory.cpp; three functions are met on their way (CMakeLists.txt, --wrap):
//
//   Node::peer()             a message leaves for a peer: the fiber travels with it
//   Session::receive()       a message is there: a fiber of its own handles it (A5)
//   Session::serve_parked()  what an unlocker or the worker hands over, a fiber of its own hands over
#pragma once

#include <vector>

#include "bench/paper/network.hpp"

namespace paper {

struct Seams {
  Network* network = nullptr;
  std::vector<Crew> crews;  // of each compute node
};
extern Seams seams;
void forget_errands();  // of a run that is over

}  // namespace paper
