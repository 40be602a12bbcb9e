// What the daemon was told on its command line.
#pragma once

#include <string>
#include <vector>

namespace memnode {

struct Options {
  std::string file;
  std::string saved;  // the pool's durable copy; empty: it has none
  std::vector<std::string> listen;
  std::string key;                                      // of the cluster
  std::string certificate, certificate_key, authority;  // or these
  bool plain = false;                                   // or none, on local addresses
  int patience_s = 2;
  bool check = false;
};

}  // namespace memnode
