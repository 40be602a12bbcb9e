// One host's part of a cluster of several: what it has to know of the others.
#pragma once

#include <cstdint>
#include <string>

#include "tools/gclctl/cluster.hpp"

// REQUIRES, of all: cluster.on_hosts().
namespace gclctl {

// The key's file, made where memory node 0 is, unless it is there; elsewhere it has to be.  Fails where it is none, or
// others can read it.
void provide_key(const Cluster&);

// Of memory, for the memory nodes of this host that are not in memory yet.
uint64_t planned_bytes(const Cluster&);

// Until all memory nodes of the plan are in the pool, so that a primary can join; says whom it waits for, and fails
// with that after two minutes.
void wait_for_memory_nodes(const Cluster&);

// Why the memory nodes of this host are not to be stopped, in words; empty: they may be.  The second one also waits,
// some seconds at most, until the deaths of this host's primaries are certain; REQUIRES: none of them runs.
std::string others_in_pool(const Cluster&);
std::string still_in_pool(const Cluster&);

// Its durable copy, with all that lies beside it.  REQUIRES: the plan's memory node 0 is of this host.
void remove_saved_pool(const Cluster&);

// All memory nodes and primaries, as memory node 0 knows them; some seconds at most.
struct HostsInWords {
  std::string text;  // of lines
  bool all_serve = false;
};
HostsInWords hosts_in_words(const Cluster&);

}  // namespace gclctl
