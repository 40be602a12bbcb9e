#include "bufmgr/inspect/ring_view.hpp"

#include <memory>

#include "bufmgr/log/redo_ring.hpp"
#include "bufmgr/mini_transaction.hpp"
#include "bufmgr/node_shared.hpp"
#include "bufmgr/pool_layout.hpp"

namespace bufmgr {
namespace {

struct Place {
  coherence::PoolAddress at;
  uint64_t bytes;
};

Place place_of(coherence::PoolView& pool, coherence::NodeId node) {
  const auto all = pool.region(int(Region::kRings));
  const uint64_t each = all.bytes / pool.header().nodes_max;
  return {all.at + each * node.value, each};
}

bool read_ring_header(coherence::PoolView& pool, const Place& place, RingHeader* header) {
  return place.bytes > kRingHeaderBytes && pool.read(place.at, header, sizeof *header) &&
         header->magic == RingHeader::kMagic && header->data_bytes > 0 &&
         header->data_bytes <= place.bytes - kRingHeaderBytes;
}

}  // namespace

std::optional<RingView> RingView::of(coherence::PoolView& pool, coherence::NodeId node,
                                     const coherence::ArenaView* arena) {
  RingHeader header{};
  if (node.value >= pool.header().nodes_max || !read_ring_header(pool, place_of(pool, node), &header))
    return std::nullopt;
  RingView view{header.data_bytes, header.tail, header.incarnation, std::nullopt};
  NodeShared shared;
  if (arena && arena->layout().private_bytes >= sizeof shared &&
      arena->read(arena->layout().private_at, &shared, sizeof shared))
    view.shared = {.head = shared.ring.head.load(std::memory_order_relaxed),
                   .tail = shared.ring.tail.load(std::memory_order_relaxed),
                   .budget = shared.ring.budget.load(std::memory_order_relaxed),
                   .last_lsn = shared.gate.last_lsn.load(std::memory_order_relaxed),
                   .emptying = shared.ring.emptying.load(std::memory_order_relaxed) != 0};
  return view;
}

uint64_t visit_ring(coherence::PoolView& pool, coherence::NodeId node,
                    const std::function<void(std::span<const std::byte>)>& visit) {
  const Place place = place_of(pool, node);
  RingHeader header{};
  coherence::ViewMemory memory(pool);
  if (!read_ring_header(pool, place, &header)) return 0;
  auto reader = RingReader::open(memory, place.at, place.bytes);
  if (!reader.ok()) return 0;
  const auto buffer = std::make_unique<std::byte[]>(kMiniRecordMax);
  // The node may write faster than this reads: no more than one ring is visited.
  while (reader->position() - header.tail <= header.data_bytes) {
    const auto record = reader->next(memory, {buffer.get(), kMiniRecordMax});
    if (record.error() == coherence::Errc::kIncompatible) visit({buffer.get(), kMiniRecordMax});
    if (!record.ok()) break;
    visit(*record);
  }
  return reader->position();
}

}  // namespace bufmgr
