// LoneRepair: the pages of a pool all of whose nodes are dead, out of all their rings.
//
//   recovery::LoneRepair alone;
//   BufferPool::create_node({..., .alone = &alone}, &problem);
#pragma once

#include "coherence/member/upcalls.hpp"

namespace recovery {

class LoneRepair final : public coherence::PoolRepair {
 public:
  // Each page that a ring has is as new as the rings say, in the pool.  Errors as RingRepair::repair(), with the page.
  coherence::Status repair(coherence::Pool&, coherence::Memory&, std::span<const Dead>,
                           coherence::Problem*) noexcept override;
};

}  // namespace recovery
