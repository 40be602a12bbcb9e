// The pool of a cluster, through the layers that own its format.
#pragma once

#include <string>
#include <vector>

#include "tools/gclctl/cluster.hpp"

namespace gclctl {

constexpr uint64_t kMemoryNodeBytesMin = 16 << 20;

// What the servers say of themselves, which the pool must have been made for.
std::string compatibility_of(const Cluster& cluster);

// The directory of the pool's files in tmpfs, which a reboot removes.
void make_pool_dir(const Cluster& cluster);

// Makes the pool and its durable copy, for the server in the private prefix.
enum class AfterDeath { kRepair, kFence };
void create_pool(const Cluster& cluster, uint64_t bytes, int memory_nodes, AfterDeath after_death);

// The same for servers that gclctl does not run: the system's installation, a locale as in gcl.locale.
void create_pool(const fs::path& file, const fs::path& saved, uint64_t bytes, int memory_nodes, int primaries,
                 const std::string& locale, AfterDeath after_death);

// Adds a memory node to the pool, in use or not; fails with the reason.  Returns why the durable copy did not get it,
// or nothing.
std::string add_memory_node(const Cluster& cluster, uint64_t bytes);
// The same for a pool that create_pool() made of such files.  Fails if `saved` is not of that pool.
std::string add_memory_node(const fs::path& file, const fs::path& saved, uint64_t bytes);

struct PoolState {
  enum class Kind { kClean, kUnsaved, kInUse, kOrphaned, kUnclean, kLost, kDamaged, kForeign, kAbsent } kind;
  // kLost: memory has lost it while it was in use (gclctl.restart-from-logs).
  std::string text;  // why, for all but kClean, kInUse and kOrphaned
};
// What the memory node says that serves it, or else its files.
PoolState inspect_pool(const Cluster& cluster);

// Writes the durable copy of a pool whose last save failed (kUnsaved); fails with the reason.
void save_pool(const Cluster& cluster);

// How large a pool is, as its header says: in memory, or in the durable copy when memory has lost it.
struct PoolExtent {
  std::vector<fs::path> files;  // of the memory nodes, in their order; none if there is no header that can be read
  uint64_t bytes = 0;           // in all of them
};
PoolExtent extent_of_pool(const fs::path& file, const fs::path& saved);
// What the first server that opens the pool will take of tmpfs: 0 if the pool is there.
uint64_t bytes_to_load(const fs::path& file, const fs::path& saved);

}  // namespace gclctl
