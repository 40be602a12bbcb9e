// What the daemon was told on its command line.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace memnode {

struct Options {
  std::string file;
  std::string saved;  // the pool's durable copy, of all memory nodes; empty: it has none
  std::vector<std::string> listen;
  std::string first;                                    // of another memory node than 0: where that one is
  std::string address;                                  // where primaries reach it; empty: where it listens first
  uint64_t pages_bytes = 0;                             // of a memory node that the pool does not have yet
  std::string key;                                      // of the cluster
  std::string certificate, certificate_key, authority;  // or these
  bool plain = false;                                   // or none, on local addresses
  bool verbs = false;                                   // primaries reach the memory by RDMA
  std::string device;                                   // with this device; empty: found, as what follows
  int device_port = 0;
  int gid_index = -1;
  uint32_t patience_s = 2;  // at least; longer if the nodes in the pool know a longer one
  bool check = false;
};

}  // namespace memnode
