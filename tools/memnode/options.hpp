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
  int patience_s = 2;
  bool check = false;
};

}  // namespace memnode
