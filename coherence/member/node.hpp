// Node: this compute node's membership in a pool, and its arena: one tmpfs file per incarnation that holds lines,
// frames, request slots and the private memory of the layers above, mapped by the node's processes (inherited over
// fork) and by peers, which write granted pages and replies into it.
//
//   Problem problem;
//   auto pool = LocalPool::open(files, &problem);
//   auto node = Node::join(**pool, NodeId{0}, {.frames = 4096, .sessions_max = 128, .private_bytes = ...}, &problem,
//   transport); fork();                                              // children use the inherited object
//   (*node)->set_upcalls(&directory, &horizon);          // per process
//   Session session(**node, SessionId{3}, &interrupts);  // per process or thread
//
// node.locked-while-alive: the arena's file is flocked by its creator.  Every child inherits the lock; it ends with the
// last of them.  A peer that gets the lock of a node that did not leave knows that the node died: it repairs what the
// node had, where the pool repairs deaths (repair.*), or fences the pool.
// node.crash-restart-fences: where deaths are not repaired, a node that joins while its former incarnation did not
// leave (a crash restart) fences the pool and gets kFenced.
// node.fence-ends-waits: after the fence no page may be touched; every wait ends with kFenced within a slice (10 ms).
// node.cut-off-joins-again: a node that was cut off touches no page; its host ends its processes, and joins anew.
// node.leave-gives-back: leave() gives every line back, and the file is unlinked; the last node out saves the pool.
// node.certain-death-only: a death is only what is certain: a free lock (or no file any more), or the kernel's word
// that the process is gone.  Where the kernel cannot tell (no descriptor left, a /proc that hides others' processes,
// another pid namespace), the lock decides; where not even the lock can be looked at, the node lives.
// node.leaver-answers: a node that leaves answers its peers until it has left: between a few lines that it gives back
// or writes back, and while it waits for what others have.
// node.leaver-records: an operation outlives its caller (session.operation-outlives-caller), and the node that it asks
// may die when those processes have ended that record deaths (repair.recorded-first).  So a node that leaves records
// deaths itself: where no other node is left, nobody else would, and the operation would never end.
// node.memory-given-back: the memory of a node that has left is the system's again at once, though its peers still map
// it.  leave() gives back its lines and frames; a late message touches only what comes before them, the node's own
// processes only what comes behind.  A peer's process forgets the mapping when it next asks or answers any node; a
// process that does nothing keeps one of each peer at most.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>

#include "coherence/base/ids.hpp"
#include "coherence/base/result.hpp"
#include "coherence/line/features.hpp"
#include "coherence/line/line.hpp"
#include "coherence/member/held.hpp"
#include "coherence/member/node_parts.hpp"
#include "coherence/member/transport.hpp"
#include "coherence/member/upcalls.hpp"
#include "coherence/pool/pool.hpp"
#include "coherence/trace/flight_file.hpp"

namespace coherence {

class Session;

class Node {
 public:
  // Becomes node `id` of the pool.  kBusy: a living server is node `id`; kUnrepaired: the node has died, and survivors
  // have not done with it yet; kIncompatible: the nodes in the pool have another protocol; kFenced: the pool is fenced
  // (now, perhaps by this call: node.crash-restart-fences); kNotFound: the pool has no room for such a node; kNoSpace,
  // kSystem.  The transport is the one that opened the pool, and outlives the node.  `alone`: for a pool all of whose
  // nodes are dead, which is repaired first (repair.alone); errors as it says.
  static Result<std::unique_ptr<Node>> join(Pool&, NodeId id, const ArenaSpec&, Problem*, Transport&,
                                            PoolRepair* alone = nullptr);
  // Unmaps.  Without leave() before, this incarnation counts as dead, as when its last process has ended.
  // In a forked child that merely exits, nothing happens: the lock lives on in the other processes.
  ~Node();
  Node(const Node&) = delete;
  // The host says that no process of this node is left but this one, which is to destroy it: the incarnation counts as
  // dead at once, whatever else has a copy of the file's descriptor (a log collector), and its memory is given back.
  void give_up() noexcept;

  void set_upcalls(FrameDirectory* directory, LogHorizon* horizon) {
    parts_.directory = directory;
    parts_.horizon = horizon;
  }
  // Of each process, where deaths are repaired.
  void set_repair(PageRepair* repair) { parts_.repair = repair; }
  // Of sessions that are made from now on.  REQUIRES: none is being made.  It outlives the node.
  void set_transport(Transport& transport) { transport_ = &transport; }
  // What this node does of the protocol's optional parts.  REQUIRES: no session works.
  void set_features(Features features) { parts_.features = features; }
  Features features() const { return parts_.features; }
  // gamma, in writers' turns (coherence.bounded-local-turns).  A process that is woken for a turn has `come_ns` to
  // take it.  REQUIRES: no session works.
  void set_lease(uint32_t turns, uint64_t come_ns = NodeParts::kComeNs) {
    parts_.lease_turns = turns;
    parts_.come_ns = come_ns;
  }

  // --- the arena -----------------------------------------------------------------------------------------------------
  uint32_t frames() const { return parts_.frames; }
  Line& line(uint32_t index) const { return parts_.line(index); }
  uint32_t index_of(const Line& line) const { return parts_.index_of(line); }
  std::byte* frame(const Line& line) const { return parts_.frame(line); }
  std::byte* frame(uint32_t index) const { return parts_.frames_base + uint64_t(index) * kPageSize; }
  std::byte* private_memory() const { return private_; }
  uint64_t private_bytes() const { return private_bytes_; }
  const Counters& counters(SessionId) const;
  // Where the slot's session records what it does; null: there was no memory for that.
  FlightRing* flight_ring(SessionId session) noexcept { return flight_.ring(session); }
  uint32_t sessions_max() const { return parts_.sessions_max; }
  // What this node's processes hold now, summed while they work: exact when they do not.  Looks at every line.
  Held held() const noexcept;
  // The pages that cost this node most messages since it joined, or since the reset; the hottest first.
  uint32_t hot_pages(HotPage* to, uint32_t room) const noexcept;
  void reset_hot_pages() noexcept;

  // --- the pool and its members --------------------------------------------------------------------------------------
  Pool& pool() const { return parts_.pool; }
  NodeId id() const { return parts_.id; }
  uint64_t incarnation() const { return parts_.incarnation; }
  bool fenced() const noexcept { return parts_.fenced(); }
  // For spin waits of the layers above: not 0 once the pool is fenced.
  const std::atomic<uint32_t>& fence_word() const noexcept { return *parts_.fence; }
  // Whether survivors repair what a dead node had; else a death fences the pool.
  bool repairs_deaths() const noexcept { return members_->repairs_deaths(); }
  // Ends all access to the pool, for all nodes.  Idempotent; `reason` of the first call is kept.
  void fence(const char* reason) noexcept;
  // Membership::cut_off(), is_cut_off().
  void cut_off(const char* reason) noexcept { members_->cut_off(reason); }
  bool is_cut_off() const noexcept { return members_->is_cut_off(); }
  // Why; empty if it is not fenced.
  const char* fence_reason() const noexcept;
  NodeInfo info(NodeId n) const noexcept { return members_->info(n); }
  NodeSet live() const noexcept;  // this node included
  // Membership::view().
  uint64_t view() const noexcept { return members_->view(); }
  // Membership::unrecorded(), recorded().
  NodeSet unrecorded() const noexcept { return members_->unrecorded(); }
  bool recorded(NodeId dead, uint64_t incarnation) noexcept { return members_->recorded(dead, incarnation); }
  // Dead nodes whose places in latch words may be taken over (Membership::repairable()).
  NodeSet repairable() const noexcept { return members_->repairable(); }
  // Membership::swept().  The message workers, which have to drain now, learn of it.
  bool swept(NodeId dead, uint64_t incarnation) noexcept;
  // In its life no node joins or leaves.
  class Unchanged {
   public:
    explicit Unchanged(Membership& members) : members_(members) {}
    ~Unchanged() { members_.end_change(); }
    Unchanged(const Unchanged&) = delete;

   private:
    Membership& members_;
  };
  // For a session; one at a time in a process.  kBusy: a node joins or leaves just now; kSystem.
  Status keep_members(std::optional<Unchanged>* unchanged) {
    Problem ignored;
    GCL_TRY(members_->begin_change(Membership::Patience::kTry, &ignored));
    unchanged->emplace(*members_);
    return {};
  }
  // Rings the message worker (the process in Session::serve()).
  void ring() const noexcept;

  // --- wakeup events -------------------------------------------------------------------------------------------------
  // This node's; valid from join() to ~Node(), for signal handlers, too.
  WakeupEvent& event(uint16_t index) noexcept { return parts_.arena->event[index]; }
  // Of any node: Wakeup::wake().
  void wake(NodeId to, uint16_t event, uint16_t otherwise = Wakeup::kNone) noexcept {
    wakeup_->wake(to, event, otherwise);
  }

  // Access to the pool without a session; used by one thread, and destroyed before the node.
  std::unique_ptr<Memory> open_memory(Counters& counters) { return transport_->open_memory(parts_, counters); }

  // Leaves in order: serves peers until every line is given back, then withdraws.  REQUIRES: no other session of this
  // node works any more, no latch is held, everything logged is flushed.  *last: whether the pool is empty now; then
  // it has been saved to the durable path.  The Node serves nothing afterwards.  Null: others record deaths, or none is
  // to be recorded.
  Status leave(Session& session, bool* last, Problem*, DeathRecorder* = nullptr);

  // Only for the roles of a session (coherence/session/).
  NodeParts& parts() { return parts_; }
  Transport& transport() { return *transport_; }

 private:
  Node(Pool& pool, Transport& transport);
  uint32_t give_back(Session& session);
  Status repair_alone(NodeSet dead, PoolRepair&, Problem*);  // REQUIRES: Membership::begin_change()
  Status withdraw(bool* last, Problem*);                     // REQUIRES: Membership::begin_change()
  void lay_out(std::byte* arena, const ArenaLayout&) noexcept;
  void unlink_files() const noexcept;

  NodeParts parts_;
  Transport* transport_;
  std::unique_ptr<Membership> members_;
  std::unique_ptr<Wakeup> wakeup_;
  std::byte* private_ = nullptr;
  uint64_t private_bytes_ = 0;
  uint64_t arena_bytes_ = 0;
  int arena_fd_ = -1;
  FlightFile flight_;
  bool left_ = false;
};

}  // namespace coherence
