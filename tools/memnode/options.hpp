// What the daemon was told on its command line.
#pragma once

#include <string>
#include <vector>

namespace memnode {

struct Options {
  std::string file;
  std::vector<std::string> listen;
  std::string key;                                      // of the cluster
  std::string certificate, certificate_key, authority;  // or these
  bool plain = false;                                   // or none, on local addresses
  int patience_s = 60;
  bool check = false;
};

}  // namespace memnode
