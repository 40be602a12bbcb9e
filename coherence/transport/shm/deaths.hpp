// Which nodes have died: what the node table and the locks of the arenas' files say, for nodes and for processes that
// only open the pool.  Rules: node.* in member/node.hpp.
#pragma once

#include "coherence/base/ids.hpp"

namespace coherence {

class MappedPool;

// Whether node `n`'s entry names an incarnation that ended without leaving (node.certain-death-only).
bool died(const MappedPool& pool, NodeId n) noexcept;
// Looks at every node in the table (but `self`).  Where one died, the pool is fenced, or, where deaths are repaired,
// the node counts as dead once no process of it is left (repair.death-is-over).
struct Deceased {
  bool fenced = false;  // the pool is
  bool some = false;    // a node counts as dead since this call
};
Deceased look_for_dead(const MappedPool& pool, NodeId self = NodeId{}) noexcept;

}  // namespace coherence
