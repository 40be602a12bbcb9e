// FurtherMemoryNodes: the memory nodes of a pool beside number 0, as memory node 0 has them: each has a link here, has
// said what it has, and hears the table.
//
// tcp.memory-node-says: A memory node says what it has when its link begins.  One that has a number of the pool is
//     taken if its region is as long as the pool says, and of the pool's last save, or of one that did not count
//     afterwards.  One that has the next number is a new one (pool.counted-last).  All are reached as memory node 0
//     is, by verbs or over tcp.  Its link ends in all other cases.
// tcp.all-admit-alike: Memory nodes carry out batches of those that the table admits.  What depends on it (that a node
//     is dead, that one may begin to work, that a tool may write) waits until all memory nodes of the pool have the
//     table that says so: one that is away holds it up.
//
// One thread, the MemberServer's.
#pragma once

#include <cstdint>
#include <string>

#include "coherence/base/ids.hpp"
#include "coherence/base/problem.hpp"
#include "coherence/base/result.hpp"
#include "coherence/region/pool_keeper.hpp"
#include "coherence/transport/tcp/base/log.hpp"
#include "coherence/transport/tcp/member/member_frames.hpp"
#include "coherence/transport/tcp/member/table_link.hpp"

namespace coherence::tcp {

class FurtherMemoryNodes {
 public:
  // Both outlive it.
  FurtherMemoryNodes(PoolKeeper& keeper, Log& log) noexcept : keeper_(keeper), log_(log) {}

  // An error ends the link.
  Status begun(net::Link&, const Table&, Problem*);
  // What it has; *counted: it is a new one.  `paths`: nodes reach memory node 0 by paths.
  Status says(net::Link&, const MemoryNodeFrame&, bool paths, bool* counted, Problem*);
  Status done(net::Link&, const DoneFrame&, Problem*);
  void over(net::Link&);

  // [1, count()) are the pool's.
  uint32_t count() const noexcept;
  // What it has said last; its address is empty: nothing yet.
  const MemoryNodeRecord& places(uint32_t k) const noexcept { return one_[k].places; }
  void send(const Table&);
  void look(const Table&);
  // All have this table, or a newer one.
  bool have_seen(uint64_t epoch) const noexcept;
  // The first that is not here, or has not said what it has; 0: all are.
  uint32_t missing() const noexcept;

  // --- what all of them do at once, when no node is in the pool
  void begin_order(Order, uint64_t saves);
  // Whether all have ended it, or one cannot any more; what came of it.
  bool order_is_over(Status*, Problem*);

 private:
  struct One : TableLink {
    bool has_said = false;  // since its link began
    MemoryNodeRecord places = {};
    bool asked = false;
    DoneFrame done = {};
  };
  One* of(const net::Link&) noexcept;
  void say(const char* line);

  PoolKeeper& keeper_;
  Log& log_;
  One one_[kMemoryNodesMax];
  OrderFrame order_;
};

}  // namespace coherence::tcp
