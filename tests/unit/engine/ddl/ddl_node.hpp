// One node's channel and log, for the tests of engine/ddl.
#pragma once

#include <memory>

#include "extension/engine/ddl/ddl_channel.hpp"
#include "extension/engine/ddl/ddl_log.hpp"
#include "tests/support/cluster_fixture.hpp"

namespace gcl_test {

struct Node {
  Node(Cluster& cluster, int n)
      : pool(cluster.pool(n)),
        session(cluster.session(n)),
        channel(session->memory(), pool.region(bufmgr::Region::kDdl).at, pool.region(bufmgr::Region::kDdl).bytes,
                pool.nodes_max(), pool.node()),
        log(pool, *session, channel),
        me(engine::DdlHolder::make(pool.node(), pool.coherence_node().incarnation(), 7, 1000 + uint32_t(n))) {}
  bufmgr::BufferPool& pool;
  std::unique_ptr<bufmgr::Session> session;
  engine::DdlChannel channel;
  engine::DdlLog log;
  engine::DdlHolder me;
};

}  // namespace gcl_test
