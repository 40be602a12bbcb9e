// TableChanges: how a pool's node table changes: joins, leaves, deaths and the steps of their repair, the fence.  No
// lock, no file and no socket: when each of them is due, and that one process at a time changes the table, is said by
// the transport.
//
// region.view-around-change: The view grows before and after each change, so that two equal looks saw the same nodes;
//     where only a bit changes, behind it.
// region.bits-before-state: What is no longer true of a node is taken back before its state says so; what others said
//     of a former incarnation is gone before the next one is live.
// region.state-of-incarnation: A node's incarnation changes only while its state is absent; so a look that finds both
//     as they were before has seen a state of that incarnation, and not what a former one was.
//
//   TableChanges changes(table, nodes_max);
//   const uint64_t incarnation = changes.reserve();
//   changes.publish(NodeId{3}, incarnation, joiner);
#pragma once

#include <atomic>
#include <cstdint>

#include "coherence/base/ids.hpp"
#include "coherence/base/member_state.hpp"
#include "coherence/region/node_table.hpp"

namespace coherence {

// The process that joined, for views, and for processes that look whether it is there.
struct Joiner {
  int32_t pid = 0;
  uint64_t pid_start = 0, pid_namespace = 0;  // 0: not known
  uint64_t now_ns = 0;
  bool by_links = false;
};

class TableChanges {
 public:
  TableChanges(NodeTable& table, uint32_t nodes_max) noexcept : table_(table), nodes_max_(nodes_max) {}
  NodeTable& table() const noexcept { return table_; }

  // --- looks; any process
  NodeInfo info(NodeId) const noexcept;
  uint64_t view() const noexcept { return table_.view.load(std::memory_order_seq_cst); }  // pairs with change()
  NodeSet repairable() const noexcept { return {table_.repairable.load(std::memory_order_seq_cst)}; }
  NodeSet unrecorded() const noexcept;  // Membership::unrecorded()
  NodeSet dead() const noexcept;
  bool some_serve() const noexcept;
  bool empty() const noexcept;  // no node is in it, nor a dead one
  bool fenced() const noexcept { return table_.fence.load(std::memory_order_acquire) != 0; }  // pairs with fence()
  const char* fence_reason() const noexcept;                                                  // REQUIRES: fenced
  // Whether the dead node's places may be taken over, and are not said to be: the death is recorded, and every node
  // that serves is quiescent (repair.quiesced-first).
  bool repairable_is_due(NodeId dead) const noexcept;
  bool all_drained(NodeId dead) const noexcept;  // repair.drained-last

  // --- of each node, its own words; any order
  void says_quiescent(NodeId node, NodeId dead) noexcept;
  void says_drained(NodeId node, NodeId dead) noexcept;  // REQUIRES: the dead node is swept, and stays so meanwhile
  void begin_leaving(NodeId node) noexcept;
  // The fence waits for no process, so it may be up before its reason is written.  The first reason is kept.
  void fence(const char* reason) noexcept;

  // --- one process at a time
  // Of another incarnation than that which is dead nothing is said, and nothing changes.
  void recorded(NodeId dead, uint64_t incarnation) noexcept;
  void repairable(NodeId dead) noexcept;  // REQUIRES: repairable_is_due()
  void swept(NodeId dead, uint64_t incarnation) noexcept;
  void forget(NodeId dead) noexcept;  // absent: nothing in the pool names it
  uint64_t reserve() noexcept;        // an incarnation that no node had
  void publish(NodeId, uint64_t incarnation, const Joiner&) noexcept;
  void withdraw(NodeId) noexcept;
  // It counts as dead from now on; whether by this call, and not since another one.
  bool died(NodeId) noexcept;

 private:
  bool all_say(std::atomic<uint64_t> NodeEntry::*, NodeId dead) const noexcept;
  void change(NodeId, MemberState) noexcept;
  NodeTable& table_;
  const uint32_t nodes_max_;
};

}  // namespace coherence
