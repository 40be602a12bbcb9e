// MemberDecisions: what memory node 0 decides about members: what sayings come to, which steps of a repair are due, who
// may join or leave, what the table says.  It has no link, no clock and no log: when to ask is the MemberServer's, and
// the simulator's (tests/sim/member_authority.hpp).
//
// One thread.
//
//   MemberDecisions decisions(keeper.table(), nodes_max);
//   const auto come_to = decisions.take(sayer, incarnation, record);
//   if (come_to.changed) ...  // all are sent the table
#pragma once

#include <cstdint>

#include "coherence/base/ids.hpp"
#include "coherence/base/problem.hpp"
#include "coherence/base/result.hpp"
#include "coherence/region/table_changes.hpp"
#include "coherence/transport/tcp/member/member_frames.hpp"

namespace coherence::tcp {

class MemberDecisions {
 public:
  MemberDecisions(NodeTable& table, uint32_t nodes_max) noexcept : changes_(table, nodes_max), nodes_max_(nodes_max) {}
  TableChanges& changes() noexcept { return changes_; }
  const TableChanges& changes() const noexcept { return changes_; }

  // What an incarnation says.  Of one that is not in the pool (any more) nothing counts (tcp.sayings-are-state).
  struct ComeTo {
    bool counts = false;                  // the incarnation is in the pool
    bool leaves = false, fences = false;  // since this
    NodeSet repaired;                     // are absent since this
    bool changed = false;                 // the table
  };
  ComeTo take(NodeId sayer, uint64_t incarnation, const SayingsRecord&) noexcept;

  // The incarnation is certainly dead (tcp.death-is-a-closed-link).  Whether it counts as dead since this call; where
  // deaths are not repaired, the pool is fenced then.
  bool bury(NodeId, NodeSet* repaired) noexcept;

  // kFenced, kUnrepaired, kBusy: why no process may become the node.  `pool`: its name, for words.
  Status may_reserve(NodeId, const char* pool, Problem*) const;
  // kFenced: that incarnation is not in the pool any more, or the pool is fenced.
  Status may_withdraw(NodeId, uint64_t incarnation, Problem*) const;
  // The node has left; which ones are absent since this: what the others have said may be all that is needed now.
  NodeSet withdraw(NodeId) noexcept;

  // All of the table that says which nodes are there, and the fence.  `epoch` is the caller's.
  void fill(uint64_t epoch, Table*) const noexcept;

 private:
  void take_of(NodeId sayer, NodeId dead, const SayingsRecord&) noexcept;
  NodeSet advance_repairs() noexcept;
  TableChanges changes_;
  const uint32_t nodes_max_;
};

}  // namespace coherence::tcp
