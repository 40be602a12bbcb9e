// MemberServer: memory node 0's part in members: it alone changes the pool's node table, as tools, nodes' sayings and
// links that are over have it, and sends the table to all.
//
// tcp.live-incarnations-only: A node has a link, and batches carried out, while its incarnation is reserved by a change
//     under way, or is in the pool: neither before, nor after it has left or died.
// tcp.tools-look: A tool may READ, LOAD, and FETCH-ADD nothing (tools_look.hpp).  It may write if it has begun a change
// and no node is in the pool but dead
//     ones (repair.alone).
// tcp.saved-beside-service: The pool is saved by a thread, while links go on and no change begins; there is no node
//     whose batches could change it.  The other memory nodes write their parts of the copy first, and put them in
//     their places when memory node 0's part counts (pool.saved-beside).
// tcp.dead-when-all-refuse: A node whose link is over is dead when no memory node admits it any more
//     (tcp.all-admit-alike).  Until then it is in the pool, and what it does elsewhere counts.
//
// One thread, the MemoryServer's.
//
//   auto members = MemberServer::make(keeper, {.pool = path, .start = start}, log, &problem);
//   auto server = MemoryServer::make(memory, {..., .other = members->get()}, credentials, log, &problem);
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>

#include "coherence/base/ids.hpp"
#include "coherence/base/problem.hpp"
#include "coherence/base/result.hpp"
#include "coherence/region/pool_keeper.hpp"
#include "coherence/region/table_changes.hpp"
#include "coherence/transport/tcp/base/log.hpp"
#include "coherence/transport/tcp/member/further_memory_nodes.hpp"
#include "coherence/transport/tcp/member/member_decisions.hpp"
#include "coherence/transport/tcp/member/member_frames.hpp"
#include "coherence/transport/tcp/member/table_link.hpp"
#include "coherence/transport/tcp/memory/memory_server.hpp"

namespace coherence::tcp {

class MemberServer final : public OtherService {
 public:
  struct Spec {
    std::string pool;                      // its name, for words
    uint64_t start = 0;                    // the memory node's; grows
    uint64_t patience_ns = 2'000'000'000;  // with nodes that were in the pool before this start
  };
  // The keeper and the log outlive it.
  MemberServer(PoolKeeper&, const Spec&, Log&);
  ~MemberServer();  // waits for a save that is under way
  MemberServer(const MemberServer&) = delete;

  Status may_run(const net::Link&, const Batch&, Problem*) noexcept override;
  Status frame(net::Link&, uint16_t type, std::span<const std::byte> payload, Problem*) override;
  void begun(net::Link&) override;
  void disconnected(net::Link&) override {}
  void reconnected(net::Link&) override {}
  void room(net::Link&) override {}  // after_pass() looks
  void over(net::Link&) override;
  void after_pass() override;
  int wait_ms() const noexcept override;

 private:
  // Of the node's incarnation that is reserved, or in the pool.
  struct NodeLink : TableLink {
    uint32_t reaches = 0;  // so many memory nodes, as it says
    char listens_at[kListensAtBytes] = {};
    uint64_t unreached[kNodesMax] = {};  // incarnations, as it says
  };
  struct Waiting {
    net::Link* tool;
    uint32_t tag;
  };
  struct Reserved {
    NodeId node;
    uint64_t incarnation;
  };
  // A node that is being let in, which its tool waits for.
  struct Publishing {
    CallFrame call;
    uint64_t epoch = 0;  // of the table in which it is live; 0: it has no link yet
  };

  // An answer that waits until all memory nodes admit alike.
  struct Waits {
    CallFrame call;
    uint64_t epoch = 0, value = 0;
  };
  // A node that is to be dead; epoch 0: there is none.
  struct Dying {
    uint64_t epoch = 0;
    Problem why;
  };
  // What a tool that closes the pool waits for: that all memory nodes know that no node is in it, and then those that
  // write the copy, or place it.
  enum class Step : uint8_t { kTell, kOthersWrite, kWrite, kOthersPlace };
  // Its words are the thread's until `written`.
  struct Closing {
    std::optional<CallFrame> call;  // nobody's: a copy that counted before is brought to its place
    Step step = Step::kTell;
    uint64_t epoch = 0;  // of the empty pool
    std::atomic<bool> written = false;
    Status status;
    Problem words;
    std::thread thread;
  };

  // calls
  Status take_call(net::Link&, const CallFrame&, Problem*);
  Status begin_change(net::Link&, const CallFrame&, Problem*);
  Status carry_out(net::Link&, const CallFrame&, Problem*);
  bool may_load() const;
  void answer_when_seen(const CallFrame&, uint64_t value);
  void go_on_waiting();
  void give_up_waiting(uint32_t missing);
  Status reserve(const CallFrame&, bool* waits, uint64_t* incarnation, Problem*);
  Status forget(NodeSet, Problem*);
  Status withdraw(const CallFrame&, uint64_t* empty, Problem*);
  Status let_in(const CallFrame&, Problem*);
  void go_on_publishing();
  void stop_publishing(const char* why);
  void take_out_again(const CallFrame&);
  void close(const CallFrame&);
  void go_on_closing();
  void write_copy();
  bool may_place() const noexcept;
  void go_on_placing();
  Status not_written(Errc);
  void end_closing(Status);
  void end_change(const char* why);
  void next_change();
  void answer(net::Link&, const CallFrame&, Status, uint64_t value, const Problem&);

  // nodes
  void take_sayings(NodeId, const SayingsRecord&);
  void say_repaired(NodeSet);
  bool complains(NodeId of, NodeId about) const noexcept;
  NodeSet unreached_by(NodeId) const noexcept;
  void judge_unreached();
  void die(NodeId, const char* why);
  bool dies(NodeId node) const noexcept { return dying_[node.value].epoch != 0; }
  void go_on_dying();
  void bury(NodeId);
  void say_what_is_waited_for();
  bool may_be_here(NodeId, uint64_t incarnation) const noexcept;
  bool is_reserved(NodeId, uint64_t incarnation) const noexcept;

  // the table
  uint32_t reached_by_all() const noexcept;
  void settle_memory_nodes();
  void say_who_holds_up_young();
  bool nodes_have_seen(uint64_t epoch) const noexcept;
  void changed();
  void fill_table();

  [[gnu::format(printf, 2, 3)]] void say(const char* format, ...);

  PoolKeeper& keeper_;
  const Spec spec_;
  Log& log_;
  const uint8_t nodes_max_;
  MemberDecisions decisions_;
  TableChanges& changes_ = decisions_.changes();
  NodeLink node_[kNodesMax];
  FurtherMemoryNodes further_;
  Dying dying_[kNodesMax];
  net::Link* changer_ = nullptr;  // the tool that changes members
  std::deque<Waiting> waiting_;   // for that
  std::optional<Reserved> reserved_;
  std::optional<Publishing> publishing_;
  std::optional<Waits> waits_;      // of the tool that changes members
  std::optional<CallFrame> later_;  // kReserve of a node that dies
  std::unique_ptr<Closing> closing_;
  uint64_t place_at_ = 0;      // a copy that counts is to take its place; 0: there is none (pool.placed-before-used)
  uint64_t judge_at_ = 0;      // between nodes that do not reach each other; 0: all do
  uint64_t say_at_ = 0;        // what is waited for; 0: nothing is
  uint32_t settled_ = 0;       // memory nodes that all nodes in the pool reach
  uint64_t say_young_at_ = 0;  // that some do not reach one more; 0: all do
  uint64_t cut_off_at_ = 0;    // when those that were in the pool before this start are dead; 0: there are none left
  uint64_t epoch_;
  Table table_ = {};
  HeaderRecord header_;  // like it, as of the last change
};

}  // namespace coherence::tcp
