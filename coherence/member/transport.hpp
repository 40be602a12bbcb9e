// Transport: how the sessions of a node reach memory nodes and peers.  A session opens its own of each.
#pragma once

#include <memory>

#include "coherence/member/peers.hpp"
#include "coherence/message/messenger.hpp"
#include "coherence/stats/counters.hpp"
#include "coherence/transport/memory.hpp"

namespace coherence {

class Transport {
 public:
  virtual ~Transport() = default;
  // `counters` are the session's.  What is opened may use all of these until it is destroyed.
  virtual std::unique_ptr<Memory> open_memory(NodeParts&, Counters&) = 0;
  virtual std::unique_ptr<Messenger> open_messenger(NodeParts&, Peers&, Counters&) = 0;
};

// Of one machine: the pool and the arenas are mapped.
Transport& shm_transport();

}  // namespace coherence
