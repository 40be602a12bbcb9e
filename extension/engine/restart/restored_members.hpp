// The words of the DDL channel that say which primaries the DDL log waits for, and which life of each one's data
// directory the pool knows.
//
// restart.members-are-the-living: The copy's words are of the save.  Since then primaries have begun new lives, have
//     applied entries that are in the log no more, and some were forgotten; each new life was noted outside the pool. A
//     primary that has one has applied all entries that were removed, or a copy of it has, since these waited for it
//     (ddl_log.remove-oldest-applied).
#pragma once

#include <span>

#include "bufmgr/buffer_pool.hpp"
#include "coherence/base/result.hpp"

namespace engine {

struct DdlMember {
  coherence::NodeId node;
  uint64_t life = 0;  // of its data directory, as noted last since the save
};

// REQUIRES: restart.alone; the root of the DDL log is found.
coherence::Status restore_members(bufmgr::BufferPool& pool, bufmgr::Session& session, std::span<const DdlMember>);

}  // namespace engine
