// NodeTable: which nodes are in the pool; region 0 of the pool file.  How it changes: table_changes.hpp; every process
// reads.
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
  std::atomic<uint64_t> heartbeat_ns;   // of the worker; information, never a proof of death
  // Dead nodes (bits) for which this node is quiescent, or has no take-over under way any more (repair.quiesced-first,
  // repair.drained-last).
  std::atomic<uint64_t> quiesced, drained;
  // Not 0: its processes reach the pool by links to the memory nodes alone (tcp), so no file says whether they are
  // there.
  std::atomic<uint32_t> by_links;
};
static_assert(sizeof(NodeEntry) == 64);

inline constexpr uint32_t kReasonNone = 0, kReasonClaimed = 1, kReasonWritten = 2;

// What a death does to the pool.
enum class AfterDeath : uint32_t {
  kFence = 0,
  kRepair = 1,  // survivors repair (repair.*)
};

struct NodeTable {
  std::atomic<uint32_t> fence;         // not 0: no page may be touched any more
  std::atomic<uint32_t> reason_state;  // kReason...
  std::atomic<uint64_t> view;          // grows with every join and leave
  std::atomic<uint64_t> next_incarnation;
  std::atomic<uint64_t> repairable;  // dead nodes, bits: their places in latch words may be taken over
  std::atomic<AfterDeath> after_death;
  std::atomic<uint32_t> records_deaths;  // not 0: a death is recorded before it is repaired (repair.recorded-first)
  std::atomic<uint64_t> recorded;        // dead nodes, bits: whose death has been
  char fence_reason[232];
  NodeEntry node[kNodesMax];
  bool repairs_deaths() const noexcept { return after_death.load(std::memory_order_relaxed) == AfterDeath::kRepair; }
};

}  // namespace coherence
