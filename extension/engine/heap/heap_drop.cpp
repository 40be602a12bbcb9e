// Freeing a relation, page by page, from the end of its map to its header.  Every page is freed together with what says
// that it is there (space.noted-in-same-change): the process that goes on after an interruption or a crash finds what
// is left, no more.
#include <cstddef>

#include "bufmgr/space/space_note.hpp"
#include "extension/engine/heap/heap.hpp"
#include "extension/engine/heap/relation_map.hpp"

namespace engine {

using bufmgr::PageNote;

namespace {

struct DropBuffer {
  alignas(8) std::byte bytes[coherence::kPageSize];
  template <class T>
  const T& as() const {
    return *reinterpret_cast<const T*>(bytes);
  }
};

// The last extent of a map page, or the map page if it has none any more.
Status drop_from_map(TxnSystem& txns, RelationId relation, uint32_t maps, PageId page) {
  auto& pool = txns.pool();
  auto& session = txns.session();
  DropBuffer copy;
  GCL_TRY(pool.copy_page(session, page, copy.bytes));
  const auto& map = copy.as<ExtentMapPage>();
  if (map.header.type != PageType::kExtentMap) return Errc::kCorrupt;
  // The first extent's pages go one by one; it leaves with the map page (heap.first-extent-singles).
  if (map.extents == 0 || (map.extents == 1 && map.extent[0].used == 0 && !map.extent[0].lock_directory().valid())) {
    PageNote unlink(pool, session, relation.header, offsetof(RelationPage, maps), maps - 1);
    return pool.free(session, page, 1, &unlink);
  }
  const uint32_t last = map.extents - 1;
  const MapExtent& extent = map.extent[last];
  if (extent.lock_directory().valid()) {
    MapExtent without = extent;
    std::memset(without.locks, 0, sizeof without.locks);
    PageNote unlink(pool, session, page, uint32_t(offsetof(ExtentMapPage, extent) + last * sizeof(MapExtent)), without);
    auto gone = LockCells::drop_some(txns, extent.lock_directory(), unlink);
    return gone ? Status{} : Status{gone.error()};
  }
  if (last == 0) {
    const auto used = uint8_t(extent.used - 1);
    PageNote unlink(pool, session, page, offsetof(ExtentMapPage, extent) + offsetof(MapExtent, used), used);
    return pool.free(session, map.page_of(0, used), 1, &unlink);
  }
  PageNote unlink(pool, session, page, offsetof(ExtentMapPage, extents), last);
  return pool.free(session, PageId{extent.first}, kExtentPages, &unlink);
}

}  // namespace

Result<bool> Heap::drop_some(TxnSystem& txns, RelationId relation, bufmgr::SpaceNote* last) {
  auto& pool = txns.pool();
  DropBuffer copy;
  GCL_TRY(pool.copy_page(txns.session(), relation.header, copy.bytes));
  const auto& root = copy.as<RelationPage>();
  const bool made = root.header.type != PageType::kUnused;  // else its creation came no further
  if (made && root.header.type != PageType::kRelation) return Errc::kNotFound;
  if (made && root.maps > 0) {
    GCL_TRY(drop_from_map(txns, relation, root.maps, RelationPage::page_of(root.map[root.maps - 1])));
    return false;
  }
  GCL_TRY(pool.free(txns.session(), relation.header, 1, last));
  return true;
}

Status Heap::drop(TxnSystem& txns, RelationId relation) {
  for (;;) {
    auto gone = drop_some(txns, relation);
    if (!gone) return gone.error();
    if (*gone) return {};
  }
}

// The last lock page of all its blocks, or the directory if there is none any more.
Result<bool> LockCells::drop_some(TxnSystem& txns, PageId directory, bufmgr::SpaceNote& last) {
  auto& pool = txns.pool();
  DropBuffer copy, page;
  GCL_TRY(pool.copy_page(txns.session(), directory, copy.bytes));
  const auto& blocks = copy.as<LockDirectory>();
  if (blocks.header.type != PageType::kLockCells) return Errc::kCorrupt;
  for (uint32_t block = 0; block < kExtentPages; ++block) {
    const uint64_t first = blocks.first[block];
    if (first == 0) continue;
    GCL_TRY(pool.copy_page(txns.session(), PageId{first}, page.bytes));
    PageNote unlink(pool, txns.session(), directory, uint32_t(offsetof(LockDirectory, first) + block * 8),
                    page.as<LockPage>().next);
    GCL_TRY(pool.free(txns.session(), PageId{first}, 1, &unlink));
    return false;
  }
  GCL_TRY(pool.free(txns.session(), directory, 1, &last));
  return true;
}

}  // namespace engine
