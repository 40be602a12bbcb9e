// Patience: for how long memory node 0 bears the silence of a node, and what follows for that node's lease (tcp.lease).
//
// tcp.patience-grows-under-nodes: A pool's patience, which is in memory node 0's header, becomes shorter only when
//     memory node 0 begins and no node is in the pool.  A node of the pool may not have heard of a shorter one, and
//     goes on as long as the longer one allows.
#pragma once

#include <algorithm>
#include <cstdint>

#include "coherence/region/pool_keeper.hpp"

namespace coherence::tcp {

inline constexpr uint32_t kPatienceMinMs = 2'000, kPatienceMaxMs = 600'000;

constexpr uint64_t patience_ns(uint32_t ms) { return uint64_t(std::max(ms, kPatienceMinMs)) * 1'000'000; }
// Shorter by how much the clocks of two machines may differ meanwhile.
constexpr uint64_t lease_ns(uint32_t patience_ms) { return patience_ns(patience_ms) / 10 * 9; }

// What the pool's patience is from now on, in ms.  REQUIRES: this process serves memory node 0, and has no links yet.
uint32_t agree_on_patience(PoolKeeper&, uint32_t wanted_ms);

}  // namespace coherence::tcp
