// The pool of a cluster, through the layers that own its format.
#pragma once

#include <string>
#include <vector>

#include "tools/gclctl/cluster.hpp"

namespace gclctl {

// Makes the pool and its durable copy, for the server in the private prefix.
void create_pool(const Cluster& cluster);

// The same for servers that gclctl does not run: the system's installation, a locale as in gcl.locale.
void create_pool(const fs::path& file, const fs::path& saved, uint64_t bytes, int memory_nodes, int primaries,
                 const std::string& locale);

// Adds a memory node to the pool, whoever is in it; fails with the reason.
void add_memory_node(const Cluster& cluster, uint64_t bytes);

struct PoolState {
  enum class Kind { kClean, kUnsaved, kInUse, kUnclean, kDamaged, kForeign, kAbsent } kind;
  std::string text;  // why, for all but kClean and kInUse
};
// What the pool's files say.
PoolState inspect_pool(const Cluster& cluster);

// Writes the durable copy of a pool whose last save failed (kUnsaved); fails with the reason.
void save_pool(const Cluster& cluster);

// The files of its memory nodes, in their order: those in memory, or the saved ones when memory has lost the pool.
std::vector<fs::path> memory_node_files(const Cluster& cluster);

}  // namespace gclctl
