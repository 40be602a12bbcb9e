#include "extension/engine/restart/restored_members.hpp"

#include "extension/engine/ddl/ddl_channel.hpp"
#include "extension/engine/ddl/ddl_log.hpp"

namespace engine {

coherence::Status restore_members(bufmgr::BufferPool& pool, bufmgr::Session& session,
                                  std::span<const DdlMember> members) {
  const bufmgr::RegionSpan region = pool.region(bufmgr::Region::kDdl);
  DdlChannel channel(session.memory(), region.at, region.bytes, pool.nodes_max(), pool.node());
  DdlLog log(pool, session, channel);
  DdlLogExtent extent;
  GCL_TRY(log.extent(&extent));
  for (const DdlMember& member : members) {
    channel.set_life(member.node, member.life);
    const DdlApplied applied = channel.applied(member.node);
    if (member.life == DdlLife::kForgotten)
      channel.set_applied(member.node, DdlApplied{});
    else if (!applied.known() || applied.number() < extent.removed)
      channel.set_applied(member.node, DdlApplied::upto(extent.removed));
  }
  return channel.lost() ? coherence::Status(coherence::Errc::kFenced) : coherence::Status();
}

}  // namespace engine
