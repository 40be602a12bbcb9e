// Transport: how a node reaches memory nodes and peers: four interfaces.  What they share, and what a node has of it in
// each process, is the transport's own.
#pragma once

#include <memory>

#include "coherence/base/problem.hpp"
#include "coherence/base/result.hpp"
#include "coherence/member/membership.hpp"
#include "coherence/member/node_parts.hpp"
#include "coherence/message/messenger.hpp"
#include "coherence/message/wakeup.hpp"
#include "coherence/pool/pool.hpp"
#include "coherence/stats/counters.hpp"
#include "coherence/transport/memory.hpp"

namespace coherence {

class Transport {
 public:
  virtual ~Transport() = default;
  // The pool as this process knows it.  kNotFound, kIncompatible, kFenced (not closed cleanly), kNoSpace, kCorrupt,
  // kSystem.
  virtual Result<std::unique_ptr<Pool>> open_pool(const PoolFiles&, Problem*) = 0;
  // What is opened may use all that it is given until it is destroyed, and of a node's parts what is open already.
  // Of a node, when it joins; the pool is one of this transport's:
  virtual std::unique_ptr<Membership> open_membership(Pool&) = 0;
  virtual std::unique_ptr<Wakeup> open_wakeup(NodeParts&) = 0;
  // Of each session; the counters are the session's:
  virtual std::unique_ptr<Memory> open_memory(NodeParts&, Counters&) = 0;
  virtual std::unique_ptr<Messenger> open_messenger(NodeParts&, Counters&) = 0;
};

}  // namespace coherence
