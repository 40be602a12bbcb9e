// A pool all of whose primaries are dead, repaired by the server that joins first: pages (recovery::LoneRepair), then
// what the dead have left in the words of transactions and in the DDL channel.  Before the server is a node, so without
// any session of it.
//
// extension.lone-repair-reads-words: A DDL transaction is ended here only if its id's own word says how it ended.  What
//     is in doubt, or has left the log's ring since, its coordinator's server ends when it comes back.
#pragma once

#include "recovery/lone_repair.hpp"

namespace gcl {

class ServerLoneRepair final : public coherence::PoolRepair {
 public:
  // `self`: the node that will join.
  explicit ServerLoneRepair(coherence::NodeId self) : self_(self) {}
  coherence::Status repair(coherence::Pool&, coherence::Memory&, std::span<const Dead>,
                           coherence::Problem*) noexcept override;

 private:
  const coherence::NodeId self_;
};

}  // namespace gcl
