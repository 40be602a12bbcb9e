// log.kept-until-written-back, looked at: in builds with assertions, before each move of a ring's tail.
#pragma once

#include <cstdint>

#include "bufmgr/buffer_pool.hpp"

namespace bufmgr {

// VERIFYs that the pool has each page as new as the node's records before `upto` say, and that no line has a change
// before it.  REQUIRES: emptying the ring (RedoRing::begin_emptying).
void verify_written(BufferPool& pool, Session& session, uint64_t upto);

}  // namespace bufmgr
