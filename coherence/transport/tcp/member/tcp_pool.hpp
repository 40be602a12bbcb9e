// TcpPool: a pool whose memory nodes are reached over a network: what memory node 0 says of it.
//
//   auto pool = TcpPool::open({.path = prefix, .durable_path = saved, .compatibility = lines}, tool, mirror, &problem);
#pragma once

#include <memory>

#include "coherence/pool/pool.hpp"
#include "coherence/transport/tcp/member/mirror.hpp"
#include "coherence/transport/tcp/member/tool.hpp"

namespace coherence::tcp {

class TcpPool final : public Pool {
 public:
  // `files`: its path is a prefix of this machine, for the arena's file; the durable path is for files that primaries
  // read.  Tool and mirror outlive the pool; the tool's link is closed when this returns.  kIncompatible: the pool is
  // made for servers that differ, both values are named; kFenced: it was not closed cleanly; kUnreached, kSystem:
  // memory node 0 does not answer; kInterrupted.
  static Result<std::unique_ptr<Pool>> open(const PoolFiles& files, Tool&, Mirror&, Problem*);
  // REQUIRES: the pool is one that is reached so.
  static TcpPool& of(Pool& pool) noexcept;

  Status check_protocol(Problem*) const override;
  uint32_t memory_nodes() const override { return mirror_.memory_nodes(); }
  uint32_t settled_memory_nodes() const override { return mirror_.settled_memory_nodes(); }
  uint64_t saves() const override { return mirror_.saves(); }
  // A round trip, by the tool's link; all bits set: memory node 0 does not answer.
  LatchWord peek_latch(PageId) override;
  Status figures(MemoryNodeId, MemoryNodeFigures*, Interrupts&, Problem*) override;

 private:
  TcpPool(const PoolFiles& files, Tool& tool, Mirror& mirror) : Pool(files), tool_(tool), mirror_(mirror) {}
  Status find_memory_node(MemoryNodeId, Problem*) override;
  Tool& tool_;
  Mirror& mirror_;
};

}  // namespace coherence::tcp
