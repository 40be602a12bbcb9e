// Who has died, and the fence that goes up then: what the node table and the locks of the arenas' files say, for nodes
// and for who only opens the pool.  N1..N3, N5: member/node.hpp.
#pragma once

#include <cstddef>
#include <cstdint>

#include "coherence/base/ids.hpp"

namespace coherence {

class Pool;

// The file of an incarnation's arena, locked while any process of it lives: `<pool>.node<N>.<incarnation>`.
void arena_path(const Pool& pool, NodeId node, uint64_t incarnation, char* out, size_t bytes);
void arena_path(const char* pool, NodeId node, uint64_t incarnation, char* out, size_t bytes);

// Whether node `n`'s entry names an incarnation that ended without leaving.  Certain: its file lock is free, or the
// process that joined is gone (N5).
bool died(const Pool& pool, NodeId n) noexcept;
void fence_pool(const Pool& pool, const char* reason) noexcept;
const char* fence_reason(const Pool& pool) noexcept;  // REQUIRES: the pool is fenced
// Looks at every node in the table (but `self`), fences the pool if one of them died; returns whether it is fenced.
bool fence_if_somebody_died(const Pool& pool, NodeId self = NodeId{}) noexcept;

}  // namespace coherence
