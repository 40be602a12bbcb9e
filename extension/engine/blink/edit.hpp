// Changes of one page under its exclusive guard.
#pragma once

#include "bufmgr/mini_transaction.hpp"
#include "extension/engine/blink/node.hpp"

namespace engine::blink {

// What the parts of the tree's code work on.  Plain data.
struct Ground {
  bufmgr::BufferPool* pool;
  bufmgr::Session* session;
  PageId meta, root;
  uint32_t fill = kFillLeaf;  // percent of a leaf that gets no more entries for now
  uint32_t relation() const { return uint32_t(meta.number()); }
};

// The head of a page under a guard.  VERIFYs that it is a sound node.
Head head_of(const bufmgr::ExclusiveGuard& page);

// An entry's bytes: child (inner pages only), then key.
struct EntryImage {
  uint32_t bytes = 0;
  alignas(8) std::byte image[kChildBytes + kKeyMax];
  static EntryImage leaf(std::span<const std::byte> key, Tid tid);
  static EntryImage pivot(PageId child, std::span<const std::byte> key);
};

inline bool has_room(const Head& head, uint32_t bytes) {
  return head.free_bytes() + head.special.garbage >= space_of(bytes);
}

// Puts an entry before entry `index`, compacting the page if its free space is in pieces.  REQUIRES: joined; has_room.
void put_entry(bufmgr::MiniTransaction& change, bufmgr::ExclusiveGuard& page, const Head& head, uint32_t index,
               const EntryImage& entry);

}  // namespace engine::blink
