// Membership over a network: what memory node 0 says is in the Mirror; what this node says is in the Sayings, which its
// network worker sends; joining and leaving are calls of a Tool.  It has no socket itself, and works over any that has.
//
// Its parts are in memory that the node's processes share, mapped before any of them is forked.
#pragma once

#include <sys/types.h>

#include <cstdint>

#include "coherence/member/membership.hpp"
#include "coherence/pool/pool.hpp"
#include "coherence/transport/tcp/base/worker_signal.hpp"
#include "coherence/transport/tcp/member/calls.hpp"
#include "coherence/transport/tcp/member/mirror.hpp"
#include "coherence/transport/tcp/member/node_worker.hpp"
#include "coherence/transport/tcp/member/sayings.hpp"

namespace coherence::tcp {

class TcpMembership final : public Membership {
 public:
  // What it works with; all outlive it.
  struct Parts {
    Mirror& mirror;
    Sayings& sayings;
    WorkerSignal& worker_wakeup;  // of the network worker
    NodeWorker& worker;           // begun by publish()
    Calls& tool;
  };
  TcpMembership(Pool& pool, const Parts& parts) : pool_(pool), of_(parts) {}
  ~TcpMembership() override { end_change(); }

  uint32_t nodes_max() const noexcept override { return pool_.nodes_max(); }
  NodeInfo info(NodeId node) const noexcept override { return members().info(node); }
  uint64_t view() const noexcept override { return members().view(); }
  const std::atomic<uint32_t>& fence_word() const noexcept override { return of_.mirror.fence_word(); }
  bool repairs_deaths() const noexcept override { return of_.mirror.repairs_deaths(); }
  void fence(const char* reason) noexcept override;
  void cut_off(const char* reason) noexcept override;
  bool is_cut_off() const noexcept override { return of_.mirror.is_cut_off(); }
  const char* fence_reason() const noexcept override { return members().fence_reason(); }
  bool watch(uint64_t now_ns) noexcept override;
  NodeSet repairable() const noexcept override { return members().repairable(); }
  NodeSet unrecorded() const noexcept override { return members().unrecorded(); }
  bool recorded(NodeId dead, uint64_t incarnation) noexcept override;
  bool quiesced(NodeId dead) noexcept override;
  bool swept(NodeId dead, uint64_t incarnation) noexcept override;
  bool drained(NodeId dead) noexcept override;
  Status begin_change(Patience, Problem*) override;
  void end_change() noexcept override;
  NodeSet all_dead() noexcept override;
  void forget(NodeSet dead) noexcept override;
  Result<uint64_t> reserve(NodeId, Problem*) override;
  Status publish(int arena, Problem*) override;
  Result<bool> withdraw(Problem*) override;
  Status close(Problem*) override;
  void begin_leaving() noexcept override;
  void give_up() noexcept override;

 private:
  TableChanges members() const noexcept { return of_.mirror.members(); }
  Status call(const CallFrame&, uint64_t* value, Problem*);
  void say(Said, NodeId, uint64_t incarnation) noexcept;

  Pool& pool_;
  const Parts of_;
  NodeId id_;  // as reserved
  uint64_t incarnation_ = 0;
  int arena_ = -1;                      // locked (node.locked-while-alive)
  bool worker_began_ = false;           // the mirror is the worker's (tcp.mirror-has-one-writer)
  pid_t changes_ = 0;                   // the process that has begun a change
  uint64_t dead_seen_[kNodesMax] = {};  // incarnations, by watch()
};

}  // namespace coherence::tcp
