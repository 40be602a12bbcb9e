// DdlChannel: what the primaries tell each other of DDL and of LOCK TABLE: the members, a bounded number of slots for
// the transactions that are under way, the DDL locks, and where the log is.
//
// Rules: ddl_log.message-for-members, ddl_log.joiner-takes-locks (rules.md).  A node is a member from join() to
// leave(), when it has no session left that could use what the others change.
#pragma once

#include <string_view>

#include "extension/engine/ddl/ddl_locks.hpp"
#include "extension/engine/ddl/ddl_slot.hpp"

namespace engine {

struct DdlMembers {
  coherence::NodeSet nodes;
  uint64_t incarnation[coherence::kNodesMax];
};

class DdlChannel {
 public:
  DdlChannel(coherence::Memory& memory, coherence::PoolAddress at, uint64_t bytes, uint32_t nodes_max,
             coherence::NodeId self)
      : region_(memory, at, bytes, nodes_max, self), locks_(region_) {}

  DdlLocks& locks() { return locks_; }
  int slots() const { return region_.slots(); }
  coherence::NodeId self() const { return region_.self(); }
  bool lost() const { return region_.lost(); }
  uint32_t nodes_max() const { return region_.nodes_max(); }
  DdlSlot slot(int number) { return {region_, number}; }
  // A free slot, to be tried; -1: there are no more than `reserved` of them.  Preferred is one whose last message all
  // have dealt with, and which was about this database: then others have a process for it.
  int free_slot(std::string_view database, int reserved = 0);
  // Of each slot, the newest message and the newest one this node has dealt with; in room for slots() of each.
  void newest_messages(uint64_t* sequences, uint64_t* acknowledged);

  // --- members ------------------------------------------------------------------------------------------------------
  // ENSURES: every message so far counts as dealt with by this node.
  void join(uint64_t incarnation);
  // Coordinators see that this node is to be asked again what they have asked it (ddl_log.joiner-takes-locks).
  void rejoin(uint64_t incarnation);
  void leave();
  DdlMembers members();                         // without this node
  coherence::NodeSet everybody();               // with this node, if it is one
  uint64_t membership(coherence::NodeId node);  // 0: it takes no part
  // False: it took none.  REQUIRES: the node is dead, and does not join meanwhile.
  bool end_membership(coherence::NodeId node);
  // Which data directory a node had last: kept while it is away.  Others' are set under the whole cluster's lock only.
  uint64_t life(coherence::NodeId node);
  void set_life(coherence::NodeId node, uint64_t life);

  // --- where the log begins -----------------------------------------------------------------------------------------
  coherence::Result<coherence::PageId> log_root();
  // False: another node was first.
  bool set_log_root(coherence::PageId root);
  // How many entries it has, for views: found without waiting for a page.
  uint64_t log_entries();
  void set_log_entries(uint64_t count);  // it has at least so many
  DdlApplied applied(coherence::NodeId node);
  // Not less than before, but for a node that is forgotten (DdlApplied{}) or made anew: under the whole cluster's lock.
  void set_applied(coherence::NodeId node, DdlApplied applied);
  // The node that has applied least; its number is what all have applied, and `behind` which one it is.
  DdlApplied applied_by_all(coherence::NodeId* behind);

 private:
  int free_slots();

  DdlRegion region_;
  DdlLocks locks_;
};

}  // namespace engine
