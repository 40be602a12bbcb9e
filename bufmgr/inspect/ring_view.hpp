// RingView: a node's redo ring, read by a process that is not in the pool (inspect.*: coherence/inspect/pool_view.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>

#include "coherence/base/ids.hpp"
#include "coherence/inspect/arena_view.hpp"
#include "coherence/inspect/pool_view.hpp"

namespace bufmgr {

struct RingView {
  uint64_t data_bytes, tail, incarnation;  // as its header in the pool says
  // From the node's arena, while there is one.
  struct Shared {
    uint64_t head, tail;
    int64_t budget;
    uint64_t last_lsn;
    bool emptying;
  };
  std::optional<Shared> shared;

  // Empty: the node has never had a ring, or what lies there is none.
  static std::optional<RingView> of(coherence::PoolView& pool, coherence::NodeId node,
                                    const coherence::ArenaView* arena);
};

// Visits the sound records from the tail on; returns where they end: at the head, at a hole, or at a record of another
// format, the last that is visited (more bytes than it has).
uint64_t visit_ring(coherence::PoolView& pool, coherence::NodeId node,
                    const std::function<void(std::span<const std::byte>)>& visit);

}  // namespace bufmgr
