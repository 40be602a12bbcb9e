// Mirror: what memory node 0 has said last about the pool's members and memory nodes (tcp.table-mirrored), in memory
// that all processes of the node share, of zeros.
//
// tcp.mirror-has-one-writer: Before the node's network worker is begun, the process that joins writes it; from then on
//     the worker alone.
// tcp.lease: A node touches no page when what it last asked memory node 0, and had acknowledged, was asked a lease ago
//     (tcp.lease-from-question).  Memory node 0 takes no node for dead that was there so short a time ago: so when
//     survivors go on, the node reads nothing of its cache any more, also one whose network worker is stopped.  The
//     worker looks, and the message worker beside it.
// A process that looks sees the changes in the order of region.bits-before-state.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "coherence/base/ids.hpp"
#include "coherence/pool/page_places.hpp"
#include "coherence/region/table_changes.hpp"
#include "coherence/transport/tcp/member/member_frames.hpp"

namespace coherence::tcp {

class Mirror {
 public:
  static constexpr uint64_t kBytes = 32 << 10;
  // Of these bytes, at a multiple of 64; the same in all processes.
  static Mirror& at(void* memory) noexcept;

  // --- any process; no look waits
  bool known() const noexcept { return epoch_.load(std::memory_order_acquire) != 0; }  // pairs with take()
  uint32_t nodes_max() const noexcept { return nodes_max_.load(std::memory_order_relaxed); }
  // Looks at members, and the fence.  REQUIRES: known().
  TableChanges members() noexcept { return {table_, nodes_max()}; }
  const std::atomic<uint32_t>& fence_word() const noexcept { return table_.fence; }
  // Here alone; the first reason is kept.
  void fence(const char* reason) noexcept { TableChanges(table_, kNodesMax).fence(reason); }
  // The fence goes up because this node cannot go on (node.cut-off-joins-again), and for nothing else.
  void cut_off(const char* reason) noexcept {
    if (fence_word().load(std::memory_order_acquire) == 0) cut_off_.store(1, std::memory_order_release);
    fence(reason);
  }
  // Cuts this node off if its lease began so long ago that memory node 0 may take it for dead soon (tcp.lease). Whether
  // the node is within its lease.
  bool keep_lease(uint64_t now_ns) noexcept;
  void lease_begins(uint64_t at_ns) noexcept { lease_ns_.store(at_ns, std::memory_order_relaxed); }  // the worker
  uint64_t lease_began() const noexcept { return lease_ns_.load(std::memory_order_relaxed); }
  uint32_t patience_ms() const noexcept { return patience_ms_.load(std::memory_order_relaxed); }  // memory node 0's
  // Where deaths are repaired: else what ends one node ends the pool.
  bool is_cut_off() const noexcept { return cut_off_.load(std::memory_order_acquire) != 0 && repairs_deaths(); }
  bool repairs_deaths() const noexcept { return table_.repairs_deaths(); }
  uint32_t protocol() const noexcept { return protocol_.load(std::memory_order_relaxed); }  // of the nodes in the pool
  uint64_t saves() const noexcept { return saves_.load(std::memory_order_relaxed); }
  uint32_t memory_nodes() const noexcept { return memory_nodes_.load(std::memory_order_acquire); }  // pairs with take()
  // Of these the first, which all nodes in the pool reach (tcp.pages-where-all-reach).
  uint32_t settled_memory_nodes() const noexcept { return settled_memory_nodes_.load(std::memory_order_acquire); }
  // REQUIRES: n is below memory_nodes().
  PagePlaces places(MemoryNodeId n) const noexcept;
  // Where it is reached; that of a young one may change.
  void copy_memory_node_address(MemoryNodeId n, std::span<char, kListensAtBytes> to) const noexcept;
  // Where that incarnation of the node listens; false: it is not known, or is over.
  bool address_of(NodeId, uint64_t incarnation, char* to, size_t bytes) const noexcept;

  // --- tcp.mirror-has-one-writer
  // Whether it was new.
  bool take(const Table&) noexcept;

 private:
  struct Place {
    std::atomic<uint64_t> incarnation;  // 0: being written
    char text[kListensAtBytes];
  };
  void take_node(NodeId, const NodeRecord&) noexcept;
  NodeTable table_;
  std::atomic<uint64_t> epoch_, saves_, lease_ns_;
  std::atomic<uint32_t> nodes_max_, memory_nodes_, settled_memory_nodes_, protocol_, cut_off_, patience_ms_;
  Place listens_at_[kNodesMax];
  MemoryNodeRecord memory_node_[kMemoryNodesMax];  // [0, memory_nodes_) stay as they are, but for addresses
};
static_assert(sizeof(Mirror) <= Mirror::kBytes);

}  // namespace coherence::tcp
