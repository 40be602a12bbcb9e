// NodeWorker: the network worker of an incarnation, as a process that joins or leaves sees it: a process that has
// the node's sockets.
//
// Of the process that joins, but stop(), which is of the one that leaves.
#pragma once

#include <cstdint>

#include "coherence/base/ids.hpp"
#include "coherence/base/problem.hpp"
#include "coherence/base/result.hpp"
#include "coherence/transport/tcp/member/member_frames.hpp"

namespace coherence::tcp {

class NodeWorker {
 public:
  // Begins it: it dials memory node 0, and it listens for peers.  The arena and the node's shared memory are mapped.
  // The incarnation is reserved, and not in the pool yet.
  virtual Status start(NodeId, uint64_t incarnation, Problem*) = 0;
  // Where peers reach it: "ip:port" or "unix:/path".  REQUIRES: start().
  virtual const char* listens_at() const = 0;
  // After withdraw(), or in its place.  Its links are over then.
  virtual void stop() noexcept = 0;

 protected:
  ~NodeWorker() = default;
};

// Hears of each change of the Mirror, in the worker.
class MembersChanged {
 public:
  // Before what the table says is in the Mirror.
  virtual void table_comes(const Table&) noexcept {}
  virtual void members_changed() noexcept = 0;

 protected:
  ~MembersChanged() = default;
};

}  // namespace coherence::tcp
