// Plan: what a cluster of several hosts consists of, as a file of its operator says it; the same file is on all hosts.
//
//   transport = "tcp"
//   key = "/etc/gcl/cluster.key"            # the same on all hosts; nobody but the servers' account can read it
//   saved = "/srv/gcl/pool.saved"           # in a directory that all hosts share
//   cache_size = "256MB"                    # of each primary
//   patience = 2                            # seconds for which a primary may be silent before it counts as dead
//
//   [[memory_node]]
//   number = 0
//   host = "m0"                             # a name of your choice, for --host
//   address = "10.0.0.10:7400"              # where the others reach it
//   size = "8GB"
//
//   [[primary]]
//   number = 1
//   host = "p1"
//   address = "10.0.0.11:7401"              # where the other primaries reach it
//   port = 5432                             # of its clients
//
// plan.is-exact: A file is refused that says anything that is not known, leaves out what is needed, gives a number or
// an address twice, or has a gap in the memory nodes' numbers.  The sentence names the file and the line.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace gclctl {

// Of memory nodes, as gcl_memnode takes it.
inline constexpr int kPatienceMinS = 2, kPatienceMaxS = 600;

struct PlannedMemoryNode {
  uint32_t number = 0;
  std::string host, address;
  std::string listen;  // where it listens, if that is another address
  uint64_t bytes = 0;
};

struct PlannedPrimary {
  int number = 0;
  std::string host, address;
  int port = 0;
};

struct Plan {
  static constexpr const char* kFileName = "cluster.toml";  // in the directory of a host's part

  std::string transport = "tcp";
  std::string key, saved;  // files
  uint64_t cache_bytes = uint64_t{256} << 20;
  int patience_s = kPatienceMinS;
  std::vector<PlannedMemoryNode> memory_nodes;  // number K is at [K]
  std::vector<PlannedPrimary> primaries;        // in the order of their numbers

  // `text` is the file's; `name` is for the sentences.
  static Plan parse(const std::string& text, const std::string& name);
  static Plan load(const std::string& file);
  static std::string text_of(const std::string& file);  // bounded

  const PlannedPrimary* primary(int number) const;  // null: there is none
  int highest_primary() const { return primaries.empty() ? 0 : primaries.back().number; }
  std::vector<std::string> hosts() const;
  // Fails unless something is on that host.
  void check_host(const std::string& host) const;
};

}  // namespace gclctl
