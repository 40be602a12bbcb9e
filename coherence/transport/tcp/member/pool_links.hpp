// PoolLinks: a node's links to the memory nodes of its pool beside number 0, in its network worker.  Each is dialed
// when the first table with it comes, before the Mirror has it: so no process has a batch for one that is not dialed.
//
// tcp.young-dialed-again: A link to a young memory node that cannot be made, or is over, is logged and dialed again,
//     where the newest table says that it is.  That cuts nobody off: no page is there (tcp.pages-where-all-reach).  A
//     batch that was under way there all the same has no known outcome (transport.unknown-cuts-off).  So a memory node
//     beside number 0, which goes by the table and not by links (tcp.admitted-by-table), lets a node that it admits
//     begin another link.
// tcp.elsewhere-is-anew: A memory node that the table has elsewhere has started anew: it knows nothing of what was
//     asked of the former one. The link to that one is over at once; by itself it would be so when the patience is.
//
// One thread, the worker's.
//
//   PoolLinks links(worker->memory(), mirror, sayings, resolve, log);
//   links.table_comes(table);                     // before the mirror takes it
//   while (...) worker->run_once(ms), links.look(monotonic_ns(), joined);
#pragma once

#include <cstdint>
#include <functional>

#include "coherence/base/problem.hpp"
#include "coherence/base/result.hpp"
#include "coherence/transport/net/address.hpp"
#include "coherence/transport/tcp/base/log.hpp"
#include "coherence/transport/tcp/member/member_frames.hpp"
#include "coherence/transport/tcp/member/mirror.hpp"
#include "coherence/transport/tcp/member/sayings.hpp"
#include "coherence/transport/tcp/memory/memory_routes.hpp"

namespace coherence::tcp {

class PoolLinks {
 public:
  // What an address in the table stands for.
  using Resolve = std::function<Result<net::Endpoints>(const char* address, Problem*)>;
  // All outlive it.
  PoolLinks(MemoryRoutes&, Mirror&, Sayings&, Resolve, Log&);
  PoolLinks(const PoolLinks&) = delete;

  void table_comes(const Table&);
  // The first that this node does not reach, and has to before it joins: it is not young.  kMemoryNodesMax: none.
  uint32_t missing() const noexcept;
  // After each pass of the worker: dials again, and says how many are reached.  `joined`: the node works.  Whether it
  // is cut off since this.
  bool look(uint64_t now_ns, bool joined);

 private:
  struct One {
    char address[kListensAtBytes] = {};
    Problem why;                         // the last link was not made
    uint64_t pause_ns = 0, dial_at = 0;  // the next one
    uint64_t say_at = 0;                 // that it is young, and not reached; 0: it is not so
  };
  bool is_young(uint32_t k) const noexcept { return k >= settled_; }
  bool is_reached(uint32_t k) const noexcept;
  void dial(uint32_t k, uint64_t now_ns);
  void say_if_unreached(uint32_t k, uint64_t now_ns);

  MemoryRoutes& memory_;
  Mirror& mirror_;
  Sayings& sayings_;
  const Resolve resolve_;
  Log& log_;
  uint32_t count_ = 1, settled_ = 1;  // as of the last table
  One one_[kMemoryNodesMax];
};

}  // namespace coherence::tcp
