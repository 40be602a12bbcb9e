// NodeTable: which nodes are in the pool; region 0 of the pool file.  Entries change under the pool's lock file (join,
// leave) or by the fence; every process reads.
#pragma once

#include <atomic>
#include <cstdint>

#include "coherence/base/ids.hpp"
#include "coherence/base/member_state.hpp"

namespace coherence {

struct alignas(64) NodeEntry {
  std::atomic<MemberState> state;
  std::atomic<int32_t> pid;  // the process that joined (the postmaster)
  std::atomic<uint64_t> incarnation;
  std::atomic<uint64_t> pid_start;      // guards against a reused pid; 0: not known
  std::atomic<uint64_t> pid_namespace;  // 0: not known
  std::atomic<uint64_t> heartbeat_ns;   // of the worker; information, never a verdict
};

inline constexpr uint32_t kReasonNone = 0, kReasonClaimed = 1, kReasonWritten = 2;

struct NodeTable {
  std::atomic<uint32_t> fence;         // not 0: no page may be touched any more
  std::atomic<uint32_t> reason_state;  // kReason...
  std::atomic<uint64_t> view;          // grows with every join and leave
  std::atomic<uint64_t> next_incarnation;
  char fence_reason[232];
  NodeEntry node[kNodesMax];
};

}  // namespace coherence
