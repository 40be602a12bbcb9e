// Peers: the arenas of the other nodes, mapped in this process.  One for each process, inherited over fork; any thread.
#pragma once

#include <atomic>
#include <cstdint>

#include "coherence/base/ids.hpp"
#include "coherence/base/result.hpp"
#include "coherence/member/node_parts.hpp"
#include "coherence/transport/shm/peer_arena.hpp"

namespace coherence {

class Peers {
 public:
  explicit Peers(const NodeParts& node) : node_(node) {}
  ~Peers();
  Peers(const Peers&) = delete;

  // Maps it on first use.  kNotFound: not in the pool; kNoMemory: no room for it.
  Result<PeerArena*> at(NodeId) noexcept;
  // Maps the nodes that joined meanwhile, and forgets those that have left; false: one cannot be mapped
  // (coherence.peers-reached-first).
  bool reach_all() noexcept;
  // Rings the workers of all peers that can be reached.
  void ring_all() noexcept;
  // A node of this process is reached through its own mapping.
  void share(NodeId, ArenaHeader& mapped);

 private:
  void forget(NodeId) noexcept;     // its arena, if one is mapped: REQUIRES: spin_
  void unmap_forgotten() noexcept;  // node.memory-given-back

  const NodeParts& node_;
  std::atomic<PeerArena*> arena_[kNodesMax] = {};
  std::atomic<uint32_t> spin_ = 0;
  PeerArena* forgotten_ = nullptr;          // under spin_
  std::atomic<uint64_t> reached_view_ = 0;  // of the node table: the nodes it names are mapped
};

}  // namespace coherence
