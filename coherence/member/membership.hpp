// Membership: which nodes are in the pool, which are dead, and the fence.  The seam behind which shm, sim, tcp and
// verbs fit, beside Memory, Messenger and Wakeup.
//
// One for each node, opened when it joins and inherited over fork.  A death is told only when it is certain
// (node.certain-death-only), by whatever a transport has for that: on one machine the lock of the arena's file.  A pid
// is of the node's own machine, for views.
//
// Every transport keeps these rules, region.view-around-change and region.state-of-incarnation (tests/conformance).
// What one node changes the others see soon; at once only what the first rule says.
//
// member.join-seen-by-all: When publish() returns, a look of each node that serves finds the newcomer.  It asks its
//     peers from then on, and a request is dropped without an answer where the node that asks is not found in the pool
//     (MessageServer::receive()).  A node that dies meanwhile is not waited for.
// member.incarnations-grow: reserve() gives an incarnation that is greater than all it gave before, to any node, and
//     whether or not they were published.  So it says which life of a node is meant.
// member.change-alone: From begin_change() to end_change() no other process begins a change.  When the process has
//     ended its change has, too, and what it had reserved is nobody's.
// member.left-is-absent: A node that has withdrawn is absent, and not dead: nobody has anything to repair, and it may
//     join again at once.
// member.death-seen-by-all: A death counts for all nodes that serve.  For one of them at least watch() says so; the
//     looks of the others show it.
// member.next-step-only: What is said of a dead node is heard if it is the next step of its repair, and of the
//     incarnation that is dead; else it changes nothing, then or later.  To say a step twice is to say it once.
// member.survivors-serve: A step that all have to say waits for those that serve: not for one that dies or leaves
//     meanwhile.  A newcomer is quiescent for those that are dead by then, since it has nothing of theirs; but it may
//     take their pages over, and has to drain.
// member.fence-reaches-all: A fence is up at once in all processes of the node that sets it, and reaches all nodes;
//     then reserve() and withdraw() end with kFenced.
#pragma once

#include <atomic>
#include <cstdint>

#include "coherence/base/ids.hpp"
#include "coherence/base/member_state.hpp"
#include "coherence/base/problem.hpp"
#include "coherence/base/result.hpp"

namespace coherence {

class Membership {
 public:
  virtual ~Membership() = default;

  // --- any thread; no look costs a round trip ------------------------------------------------------------------------
  virtual uint32_t nodes_max() const noexcept = 0;
  // REQUIRES: the node is below nodes_max().  A peer's incarnation is as new as its state.
  virtual NodeInfo info(NodeId) const noexcept = 0;
  // Grows with every join, leave and death, and with each step of a repair (region.view-around-change): two equal looks
  // saw the same nodes.
  virtual uint64_t view() const noexcept = 0;
  // Not 0: no page may be touched any more (node.fence-ends-waits).  In memory of this machine that the node's
  // processes share, since each hit loads it: where the pool is not that memory, the process that is told of a fence
  // stores it there.
  virtual const std::atomic<uint32_t>& fence_word() const noexcept = 0;
  // Whether survivors repair what a dead node had; else its death fences the pool.
  virtual bool repairs_deaths() const noexcept = 0;
  // For all nodes, for good (member.fence-reaches-all).  Idempotent; a node keeps the first reason that it has.
  virtual void fence(const char* reason) noexcept = 0;
  virtual const char* fence_reason() const noexcept = 0;  // REQUIRES: the pool is fenced
  // This incarnation cannot go on (transport.unknown-cuts-off).  Where survivors repair deaths, and the transport can
  // end one incarnation alone, the fence is of this node: the others go on, and the node may join again when its
  // processes have ended (node.cut-off-joins-again).  Else it is the pool's.  Idempotent, as fence() is.
  virtual void cut_off(const char* reason) noexcept { fence(reason); }
  virtual bool is_cut_off() const noexcept { return false; }

  // --- the message worker --------------------------------------------------------------------------------------------
  // Says that this node lives, and looks for nodes that have died (node.certain-death-only).  Whether one counts as
  // dead since this call (member.death-seen-by-all): then the caller rings the other workers (Wakeup::ring_workers()).
  // Where deaths are not repaired, the pool is fenced then.
  virtual bool watch(uint64_t now_ns) noexcept = 0;

  // --- dead nodes (repair.*) -----------------------------------------------------------------------------------------
  // Those whose places in latch words may be taken over.  Any thread; no round trip.
  virtual NodeSet repairable() const noexcept = 0;
  // Those whose death is to be recorded before anything of theirs is repaired, and is not (repair.recorded-first).  Any
  // thread; no round trip.
  virtual NodeSet unrecorded() const noexcept { return {}; }
  // The four that follow (member.next-step-only): false if it is to be said again, a moment later.
  // Any thread: the death of that incarnation is recorded.
  virtual bool recorded(NodeId, uint64_t /* incarnation */) noexcept { return true; }
  // The message worker: this node is quiescent (repair.quiesced-first).  When the last one says so, and the death is
  // recorded, the dead node becomes repairable.
  virtual bool quiesced(NodeId dead) noexcept = 0;
  // Any thread: no latch word names the dead node, which is repairable.  From now on no process takes over from it.
  // `incarnation`: that was swept; of another one it says nothing.
  virtual bool swept(NodeId dead, uint64_t incarnation) noexcept = 0;
  // The message worker: no take-over from the dead node is under way here (repair.drained-last).  When the last one
  // says so, the node becomes absent: it may join again.
  virtual bool drained(NodeId dead) noexcept = 0;

  // --- joining and leaving: one process ------------------------------------------------------------------------------
  enum class Patience : uint8_t { kWait, kTry };
  // Between the two no other node joins or leaves (member.change-alone).  kBusy: with kTry, one does; kSystem.
  virtual Status begin_change(Patience, Problem*) = 0;
  virtual void end_change() noexcept = 0;
  // All REQUIRE begin_change().
  // The dead nodes of a pool that has no other nodes; empty, if some node lives, or deaths are not repaired.
  virtual NodeSet all_dead() noexcept = 0;
  // These are absent from now on: nothing in the pool names them.
  virtual void forget(NodeSet dead) noexcept = 0;
  // The incarnation as which this process may become the node (member.incarnations-grow).  kBusy: a living server is
  // that node; kUnrepaired: its former incarnation has died, and is not absent yet; kFenced: the pool is fenced (now,
  // perhaps by this call: node.crash-restart-fences); kNotFound: the pool has no room for such a node.
  virtual Result<uint64_t> reserve(NodeId, Problem*) = 0;
  // The node is live from now on (member.join-seen-by-all).  kUnreached leaves open whether it is: the incarnation is
  // to end.  Other errors, if it is the first: of the pool's durable copy, which is marked in use.  `arena`: a
  // descriptor that every process of the node inherits: the file is closed when the last one has ended.
  virtual Status publish(int arena, Problem*) = 0;
  // It is absent from now on (member.left-is-absent); whether the pool is empty then.  kFenced.
  virtual Result<bool> withdraw(Problem*) = 0;
  // The pool is empty: saves it.
  virtual Status close(Problem*) = 0;

  // Without leaving: no process of this node is left but this one, which uses the pool no more.  The incarnation counts
  // as dead at once.
  virtual void give_up() noexcept = 0;
  // The node leaves, and serves until withdraw().
  virtual void begin_leaving() noexcept = 0;
};

}  // namespace coherence
