// Which nodes have died, and the fence that goes up then: what the node table and the locks of the arenas' files say,
// for nodes and for processes that only open the pool.  Rules: node.* in member/node.hpp.
#pragma once

#include <cstddef>
#include <cstdint>

#include "coherence/base/ids.hpp"

namespace coherence {

class MappedPool;
class Pool;

// The file of an incarnation's arena, locked while any process of it lives: `<pool>.node<N>.<incarnation>`.
void arena_path(const Pool& pool, NodeId node, uint64_t incarnation, char* out, size_t bytes);
void arena_path(const char* pool, NodeId node, uint64_t incarnation, char* out, size_t bytes);

// Removes the incarnation's files: its arena, its recorders.
void unlink_node_files(const Pool& pool, NodeId node, uint64_t incarnation) noexcept;

// Whether node `n`'s entry names an incarnation that ended without leaving (node.certain-death-only).
bool died(const MappedPool& pool, NodeId n) noexcept;
void fence_pool(const MappedPool& pool, const char* reason) noexcept;
const char* fence_reason(const MappedPool& pool) noexcept;  // REQUIRES: the pool is fenced
// Looks at every node in the table (but `self`).  Where one died, the pool is fenced, or, where deaths are repaired,
// the node counts as dead once no process of it is left (repair.death-is-over).
struct Deceased {
  bool fenced = false;  // the pool is
  bool some = false;    // a node counts as dead since this call
};
Deceased look_for_dead(const MappedPool& pool, NodeId self = NodeId{}) noexcept;

}  // namespace coherence
