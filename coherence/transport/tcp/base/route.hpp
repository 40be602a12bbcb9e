// Route: what a network worker does with one of its links: it hears what comes, and is told when there is room again.
// Acceptor: what becomes of links that peers begin.  WorkSource: something that processes of the node leave to the
// worker.
//
// All are of the worker's one thread, but what WorkSource says.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "coherence/transport/net/link.hpp"

namespace coherence::tcp {

// The link's `context`.  As net::LinksUser, for this link alone.
class Route {
 public:
  virtual void frame(net::Link&, uint16_t type, std::span<const std::byte> payload) = 0;
  virtual void begun(net::Link&) {}
  virtual void disconnected(net::Link&) {}
  virtual void reconnected(net::Link&) {}
  virtual void room(net::Link&) {}
  // The last call about this link; the route may be gone when it returns.
  virtual void over(net::Link&) = 0;

 protected:
  ~Route() = default;
};

class Acceptor {
 public:
  // Null: it is not to be; link.end() was called.
  virtual Route* accept(net::Link&) = 0;

 protected:
  ~Acceptor() = default;
};

class WorkSource {
 public:
  // Takes what was left, and sends what there is room for.
  virtual void take() = 0;
  // Whether something was left since take(): looked at when the worker is about to sleep (WorkerWakeup), so by a
  // seq_cst load of what was published by a seq_cst operation.
  virtual bool any() noexcept = 0;

 protected:
  ~WorkSource() = default;
};

}  // namespace coherence::tcp
