// VerbsPath: a node's queue pairs, one to each memory node, in its network worker: batches go out as chains of work
// requests, and what came of them goes back to the Port.
//
// verbs.one-pair-per-memory-node: All processes of a node share one queue pair to each memory node, as they share a
//     link (tcp.one-link-per-node).  So a node has as many queue pairs as there are memory nodes, and a memory node as
//     many as there are nodes; a node that asks for a second one on a link is cut off.
// verbs.registered-once: A node registers its frames once, and a buffer for each memory node, in its worker; sessions
//     register nothing.  A memory node registers its region once.
// verbs.room-bounded: What is under way on a queue pair is bounded by its work requests and its buffer.  What does not
//     fit stays in the Port, in order (tcp.window-bounded).
// verbs.error-is-unknown: A completion with an error closes its queue pair, and all batches under way there, complete
//     or not, have no known outcome (transport.unknown-never-success); the link ends, so the node cuts itself off
//     (tcp.memory-nodes-all).  The log names memory node, address and what the device said.
// verbs.no-batch-for-ever: A device tells of each batch that it is complete, or that the queue pair is broken, within
//     seconds.  When it says that it has failed, or that a completion queue has, the queue pairs that it concerns are
//     broken at once.  One that has failed may tell nothing, too: so a queue pair whose oldest batch is not complete
//     after twice the time in which a device gives up, 15 s, is broken, and what is under way has no known outcome.
// verbs.open-when-crossed: A queue pair that both ends have connected is no proof that a packet passes between them. So
//     the node READs a word first; until that is complete the path is not open, and the memory node not reached.
// verbs.armed-before-sleep: A worker that finds nothing complete asks for an event, looks once more, and sleeps then.
//
// One thread, the network worker's.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>

#include "coherence/transport/tcp/memory/direct_path.hpp"
#include "coherence/transport/verbs/buffer_ring.hpp"
#include "coherence/transport/verbs/chain.hpp"
#include "coherence/transport/verbs/device.hpp"
#include "coherence/transport/verbs/queue_pair.hpp"

namespace coherence::verbs {

class VerbsPath final : public tcp::DirectPath {
 public:
  // `frames`: the node's, which stay where they are; empty: nothing is registered, and so no operation names them.
  static Result<std::unique_ptr<VerbsPath>> make(std::unique_ptr<Device>, std::span<std::byte> frames, Problem*);
  ~VerbsPath() override;

  Status ask(net::Link&, Problem*) override;
  Status answer(net::Link&, std::span<const std::byte> payload, Problem*) override;
  bool is_open(MemoryNodeId id) const noexcept override { return lane_[id.value] != nullptr && lane_[id.value]->open; }
  bool post(MemoryNodeId, tcp::PortEntry&) override;
  void poll(tcp::PathUser&) override;
  bool keeps_awake() noexcept override;
  int fd() const noexcept override { return device_->fd(); }
  void readable() noexcept override;
  void close(MemoryNodeId id) noexcept override { lane_[id.value].reset(); }

 private:
  struct UnderWay {
    tcp::PortEntry* entry;  // null: the first word (verbs.open-when-crossed)
    uint64_t id;
    uint32_t requests;
    std::byte* buffer;
  };
  // To one memory node.
  struct Lane {
    explicit Lane(uint32_t buffer_bytes) : ring(buffer_bytes), buffer(new std::byte[buffer_bytes]) {}
    bool connected = false, open = false;
    bool armed = false;   // an event comes
    bool failed = false;  // `why`: nothing goes by it any more
    Problem why;
    PathEnd other;
    uint64_t next_id = 0;
    uint32_t requests = 0;  // under way
    uint64_t moved_at = 0;  // when its oldest batch became that; verbs.no-batch-for-ever
    BufferRing ring;
    std::deque<UnderWay> under_way;
    const std::unique_ptr<std::byte[]> buffer;
    MemoryRegion region;
    std::unique_ptr<QueuePair> pair;  // gone first
  };
  explicit VerbsPath(std::unique_ptr<Device> device) : device_(std::move(device)) {}
  bool start(Lane&, std::span<const Op>, tcp::PortEntry*);
  void poll_lane(MemoryNodeId, Lane&, tcp::PathUser&);
  void take(Lane&, const ibv_wc&);
  [[gnu::format(printf, 3, 4)]] void fail(Lane&, const char* format, ...) noexcept;

  const std::unique_ptr<Device> device_;
  MemoryRegion frames_;  // null: there are none
  std::array<std::unique_ptr<Lane>, kMemoryNodesMax> lane_;
  Chain chain_;           // of the batch that is being posted
  uint64_t last_at_ = 0;  // when something was posted or complete
};

}  // namespace coherence::verbs
