// DdlRepair: ends what dead nodes have left in the channel: their DDL transactions, DDL locks, and membership.
//
// Rules: ddl_log.one-heir, ddl_log.dead-not-waited-for, ddl_log.undecided-stays (rules.md).  One process of a node uses
// it, or the process that repairs a pool alone, before it is a node.
//
//   { stand in a sweeping section;  if (node.repairable() has them) repair.take_over(dead); }
//   ... whenever there is a wakeup, until it is true:  repair.tend()
#pragma once

#include <functional>

#include "extension/engine/ddl/ddl_channel.hpp"

namespace engine {

enum class DdlOutcome : uint8_t { kUndecided, kCommitted, kRolledBack, kUnknown };  // undecided: active, or in doubt

// What DdlRepair needs of the layers around it.
class DdlRepairHost {
 public:
  virtual ~DdlRepairHost() = default;
  // Of an id of a dead node.  kUnknown: not known now, to be asked again.
  virtual DdlOutcome outcome(uint64_t txn) noexcept = 0;
  // `to` have a new message in the slot, and what they are at for it is wanted no longer.
  virtual void posted(int slot, coherence::NodeSet to) noexcept = 0;
  // A process anywhere may wait for what is free now, or for a node that is not waited for any more.
  virtual void freed() noexcept = 0;
};

class DdlRepair {
 public:
  // `incarnation`: of this node; 0: it is none.
  DdlRepair(DdlChannel& channel, uint64_t incarnation, DdlRepairHost& host)
      : channel_(channel), incarnation_(incarnation), host_(host) {}

  // Ends the membership of the dead nodes, frees the DDL locks that belong to no transaction, and becomes the heir of
  // what is decided.  Again, when more is.  REQUIRES: none of them joins meanwhile: the caller stands in a sweeping
  // section, and has seen there that they are repairable; or no node lives.  Their ids have been ended: an id that is
  // still undecided is in doubt, or this is to be called again.
  void take_over(coherence::NodeSet dead);
  // The same for former incarnations of this node.  REQUIRES: no session of this one does DDL yet.
  void take_over_former_life();
  // The same for what was in doubt, of nodes that are not in the pool, and has been decided without them.  `absent` is
  // asked of a node behind what was read of it, so that nothing of its next incarnation is taken.
  void take_over_decided(const std::function<bool(coherence::NodeId)>& absent);
  // Whether take_over() would find more than what is in doubt.
  bool names(coherence::NodeId dead);
  // Goes on with what this node is the heir of.  True: there is nothing of that.
  bool tend();

 private:
  template <class Dead>
  void take_over_from(Dead dead);
  template <class Dead>
  void take_over_slot(DdlSlot slot, Dead dead);
  template <class Dead>
  void free_locks(Dead dead);
  bool is_kept(DdlHolder holder);
  bool end_slot(DdlSlot slot);
  bool post_end(DdlSlot slot, DdlNewest newest, DdlHeader header);
  DdlHolder heir(int slot) const { return DdlHolder::heir(channel_.self(), incarnation_, slot); }
  DdlOutcome outcome(DdlSlot slot);
  bool lost() { return channel_.lost(); }

  DdlChannel& channel_;
  uint64_t incarnation_;
  DdlRepairHost& host_;
};

}  // namespace engine
