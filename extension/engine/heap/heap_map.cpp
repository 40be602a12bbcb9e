// Relations and their blocks: creating, dropping, finding a page with room.
#include <algorithm>
#include <cstddef>

#include "bufmgr/mini_transaction.hpp"
#include "extension/engine/heap/heap.hpp"
#include "extension/engine/heap/relation_map.hpp"

namespace engine {

using bufmgr::MiniTransaction;

namespace {

struct PageBuffer {
  alignas(8) std::byte bytes[coherence::kPageSize];
  template <class T>
  const T& as() const {
    return *reinterpret_cast<const T*>(bytes);
  }
};

Status copy_typed(TxnSystem& txns, PageId page, PageType type, PageBuffer& to) {
  GCL_TRY(txns.pool().copy_page(txns.session(), page, to.bytes));
  return to.as<PageHeader>().type == type ? Status{} : Status{Errc::kNotFound};
}

constexpr uint32_t extent_at(uint32_t extent) {
  return uint32_t(offsetof(ExtentMapPage, extent) + extent * sizeof(MapExtent));
}

// How many pages are taken at once (heap.first-extent-singles).  In a full pool an extent of single pages may have any
// number.
constexpr uint32_t used_step(uint32_t extent_of_map, uint32_t used) {
  return extent_of_map == 0 && used < kUsedStep ? 1 : std::min<uint32_t>(kUsedStep, kExtentPages - used);
}

// Pages that a map is about to take in.  What it does not take goes back to the pool; if that fails it leaks, as in a
// crash.  REQUIRES: no guard is held where it ends.
class FreshPages {
 public:
  explicit FreshPages(TxnSystem& txns) : txns_(txns) {}
  FreshPages(const FreshPages&) = delete;
  ~FreshPages() {
    for (uint32_t i = 0; i < count_; ++i) (void)txns_.pool().free(txns_.session(), page_[i], each_);
  }
  // kNoSpace: not even one.
  Status take(uint32_t count, uint32_t each) {
    for (each_ = each; count_ < count; ++count_) {
      auto page = txns_.pool().allocate(txns_.session(), each);
      if (!page) return count_ != 0 && page.error() == Errc::kNoSpace ? Status{} : Status{page.error()};
      page_[count_] = *page;
    }
    return {};
  }
  void keep() { count_ = 0; }
  uint32_t count() const { return count_; }
  PageId operator[](uint32_t i) const { return page_[i]; }

 private:
  TxnSystem& txns_;
  PageId page_[kUsedStep];
  uint32_t count_ = 0, each_ = 1;
};

constexpr uint32_t kLogForExtent = 2 * sizeof(MapExtent) + kUsedStep * (sizeof(ShortPageId) + 16);

constexpr uint32_t single_at(uint32_t n) { return uint32_t(offsetof(ExtentMapPage, single) + n * sizeof(ShortPageId)); }

}  // namespace

Heap::Heap(TxnSystem& txns, RelationId relation, uint32_t table)
    : txns_(txns), relation_(relation), table_(table), cells_(txns, relation.header) {}

Result<RelationId> Heap::create(TxnSystem& txns) {
  auto page = txns.pool().allocate(txns.session(), 1, bufmgr::PageUse::kHousekeeping);
  if (!page) return page.error();
  GCL_TRY(create_at(txns, *page));
  return RelationId{*page};
}

Status Heap::create_at(TxnSystem& txns, PageId page) {
  auto& pool = txns.pool();
  MiniTransaction change(pool, txns.session());
  GCL_TRY(change.reserve(coherence::kPageSize));
  auto guard = pool.fix_exclusive(txns.session(), page);
  if (!guard) return guard.error();
  change.join(*guard);
  change.format(*guard, PageType::kRelation, uint32_t(page.number()));
  change.set(*guard, offsetof(RelationPage, magic), kRelationMagic);
  change.commit();
  return {};
}

Status Heap::hold_to_read(PageId page, const Snapshot& snapshot, Intent intent, bufmgr::Parts parts) {
  if (!snapshot.strict || !holds_reads_) return {};
  auto held = intent == Intent::kWrite && holds_writes_ ? txns_.session().hold_to_write(page, parts)
                                                        : txns_.session().hold_to_read(page, parts, intent);
  return held ? Status{} : Status{held.error()};
}

Status Heap::hold_to_write(PageId page, bufmgr::Parts parts) {
  if (!holds_writes_) return {};
  auto held = txns_.session().hold_to_write(page, parts);
  return held ? Status{} : Status{held.error()};
}

// Entries, which are held, lead to a new row, and reads of the whole page: any part meets those, one of the session's
// own meets few others.
Status Heap::hold_to_insert(PageId page) { return hold_to_write(page, bufmgr::part(txns_.session().id().value)); }

// The directory first: while it is held, no map comes; while a map is held, no page comes to it.
Status Heap::hold_map() {
  if (!txns_.session().holding() || !holds_reads_) return {};
  auto hold = [this](PageId page) -> Status {
    auto held = txns_.session().hold_to_read(page);
    return held ? Status{} : Status{held.error()};
  };
  GCL_TRY(hold(relation_.header));
  GCL_TRY(load_directory());
  for (const MapPage& map : maps_) GCL_TRY(hold(map.page));
  return {};
}

// Loads the whole map: every scan begins with that.
Status Heap::load_map() {
  GCL_TRY(load_directory());
  for (MapPage& map : maps_) GCL_TRY(load_map_page(map));
  return {};
}

// A session that misses what another one of its node has added meets a directory with more maps than it knows
// (add_map_page, heap.own-maps-searched).
Status Heap::load_own_maps() {
  auto own = [this](const MapPage& map) { return map.owner == txns_.node(); };
  if (std::none_of(maps_.begin(), maps_.end(), own)) GCL_TRY(load_directory());
  for (MapPage& map : maps_)
    if (own(map)) GCL_TRY(load_map_page(map));
  return {};
}

// Which maps there are.  Reads only what it needs, optimistically, as does load_map_page().
Status Heap::load_directory() {
  for (;;) {
    auto optimistic = txns_.pool().fix_optimistic(txns_.session(), relation_.header);
    if (!optimistic) return optimistic.error();
    auto type = optimistic->get<PageHeader>(0).type;
    uint32_t maps = std::min(optimistic->get<uint32_t>(offsetof(RelationPage, maps)), RelationPage::kMapsMax);
    std::vector<uint64_t> fresh(maps > maps_.size() ? maps - maps_.size() : 0);
    if (!fresh.empty())
      optimistic->copy(uint32_t(offsetof(RelationPage, map) + maps_.size() * 8), fresh.data(),
                       uint32_t(fresh.size() * 8));
    if (!optimistic->validate()) continue;
    if (type != PageType::kRelation) return Errc::kNotFound;
    for (uint64_t entry : fresh)
      maps_.push_back({.page = RelationPage::page_of(entry), .owner = RelationPage::owner_of(entry)});
    return {};
  }
}

Status Heap::load_map_page(MapPage& map) {
  for (;;) {
    auto optimistic = txns_.pool().fix_optimistic(txns_.session(), map.page);
    if (!optimistic) return optimistic.error();
    const auto version = optimistic->get<uint64_t>(offsetof(PageHeader, version));
    if (version == map.version && optimistic->validate()) return {};
    auto type = optimistic->get<PageHeader>(0).type;
    uint32_t extents = std::min(optimistic->get<uint32_t>(offsetof(ExtentMapPage, extents)), kExtentsPerMap);
    std::vector<PageId> first(extents);
    std::vector<uint8_t> used(extents);
    for (uint32_t e = 0; e < extents; ++e) {
      first[e] = PageId{optimistic->get<uint64_t>(extent_at(e) + uint32_t(offsetof(MapExtent, first)))};
      used[e] = optimistic->get<uint8_t>(extent_at(e) + uint32_t(offsetof(MapExtent, used)));
    }
    ShortPageId single[kExtentPages];
    const uint32_t singles = extents == 0 ? 0 : std::min<uint32_t>(used[0], kExtentPages);
    optimistic->copy(single_at(0), single, uint32_t(singles * sizeof(ShortPageId)));
    if (!optimistic->validate()) continue;
    if (type != PageType::kExtentMap) return Errc::kNotFound;
    map.extents.swap(first);
    map.used.swap(used);
    for (auto n = uint32_t(map.singles.size()); n < singles; ++n) map.singles.push_back(single[n].page());
    map.version = version;
    return {};
  }
}

Result<PageId> Heap::page_of(uint32_t block) {
  uint32_t map = block / kBlocksPerMap, extent = block % kBlocksPerMap / kExtentPages;
  if (map >= maps_.size()) GCL_TRY(load_directory());
  if (map >= maps_.size()) return Errc::kNotFound;
  PageId page = maps_[map].page_of(extent, block % kExtentPages);
  if (!page.valid()) {
    GCL_TRY(load_map_page(maps_[map]));
    page = maps_[map].page_of(extent, block % kExtentPages);
  }
  return page.valid() ? Result<PageId>(page) : Errc::kNotFound;
}

ExtentPlace Heap::place_of(uint32_t block) const {
  return {maps_[block / kBlocksPerMap].page, block % kBlocksPerMap / kExtentPages};
}

Result<bool> Heap::tid_valid(Tid tid) {
  auto page = page_of(tid.block);
  if (!page) return page.error() == Errc::kNotFound ? Result<bool>(false) : Result<bool>(page.error());
  return tid.offset >= 1 && tid.offset <= kLinesMax;
}

Result<uint32_t> Heap::used_blocks() {
  GCL_TRY(load_map());
  size_t used = 0;
  for (const MapPage& map : maps_)
    for (const uint8_t pages : map.used) used += pages;
  if (used == used_.size()) return uint32_t(used);  // as it was (heap.map-only-grows)
  used_.clear();
  for (uint32_t m = 0; m < maps_.size(); ++m)
    for (uint32_t e = 0; e < maps_[m].extents.size(); ++e)
      for (uint32_t n = 0; n < maps_[m].used[e]; ++n) used_.push_back((m * kExtentsPerMap + e) * kExtentPages + n);
  return uint32_t(used_.size());
}

Result<uint32_t> Heap::block_of(PageId page) {
  GCL_TRY(load_map());
  auto number = [](uint32_t m, uint32_t e, uint64_t n) {
    return (m * kExtentsPerMap + e) * kExtentPages + uint32_t(n);
  };
  for (uint32_t m = 0; m < maps_.size(); ++m) {
    const MapPage& map = maps_[m];
    for (uint32_t n = 0; n < map.singles.size(); ++n)
      if (map.singles[n] == page) return number(m, 0, n);
    for (uint32_t e = 1; e < map.extents.size(); ++e)
      if (const uint64_t n = page.raw - map.extents[e].raw; n < kExtentPages) return number(m, e, n);
  }
  return kNoBlock;
}

Result<HeapPages> Heap::pages() {
  auto used = used_blocks();
  if (!used) return used.error();
  const uint64_t beside = 1 + maps_.size();
  HeapPages pages{beside, beside + *used};
  PageBuffer map;
  for (const MapPage& at : maps_) {
    GCL_TRY(copy_typed(txns_, at.page, PageType::kExtentMap, map));
    for (uint32_t e = 0; e < map.as<ExtentMapPage>().extents; ++e) {
      pages.allocated += e == 0 ? map.as<ExtentMapPage>().extent[e].used : kExtentPages;
      const PageId directory = map.as<ExtentMapPage>().extent[e].lock_directory();
      if (!directory.valid()) continue;
      auto locks = LockCells::pages(txns_, directory);
      if (!locks) return locks.error();
      pages.allocated += *locks;
      pages.used += *locks;
    }
  }
  return pages;
}

Status Heap::ensure_target(uint32_t row_bytes) {
  while (target_ == kNoBlock) {
    auto block = find_free(row_bytes, Whose::kOwn);
    if (block && *block == kNoBlock) block = find_free(row_bytes, Whose::kAway);  // heap.away-maps-filled
    if (!block) return block.error();
    target_ = *block;
    if (target_ != kNoBlock) break;
    Status grown = grow();
    if (grown) continue;
    if (grown.error() != Errc::kNoSpace && grown.error() != Errc::kAtLimit) return grown;
    block = find_free(row_bytes, Whose::kAny);  // the pool or the map is full, and others' extents may have room
    if (!block) return block.error();
    if (*block == kNoBlock) return grown;
    target_ = *block;
  }
  return {};
}

bool Heap::searches(const MapPage& map, Whose whose) const {
  return whose == Whose::kAny || (whose == Whose::kOwn ? map.owner == txns_.node() : txns_.away(map.owner));
}

// A block with room in extents of this node, of nodes that are away, or of any node; or kNoBlock.  Sessions spread over
// what there is, so that those of one node fill different pages.  Maps that had no such room are not searched again
// until they change: a table that grows would search all of them for every page.
Result<uint32_t> Heap::find_free(uint32_t row_bytes, Whose whose) {
  if (whose == Whose::kAny) GCL_TRY(load_map());
  if (whose == Whose::kOwn) GCL_TRY(load_own_maps());
  const uint32_t wanted = room_wanted(align8(row_bytes) + 4);
  PageBuffer page;
  for (auto m = uint32_t(maps_.size()); m-- > 0;) {
    MapPage& map = maps_[m];
    if (!searches(map, whose)) continue;
    if (whose == Whose::kAway) GCL_TRY(load_map_page(map));
    if (map.full_version == map.version && wanted >= map.full_for) continue;
    GCL_TRY(copy_typed(txns_, map.page, PageType::kExtentMap, page));
    const auto& extents = page.as<ExtentMapPage>();
    uint32_t found = 0;
    for (uint32_t e = 0; e < extents.extents; ++e) found += extents.extent[e].pages_with(wanted);
    if (found == 0) {
      map.full_version = extents.header.version;
      map.full_for = wanted;
      continue;
    }
    uint32_t skip = txns_.session().id().value % found;
    uint32_t e = 0, n = 0;
    for (uint32_t there; (there = extents.extent[e].pages_with(wanted)) <= skip; ++e) skip -= there;
    while (extents.extent[e].room_of(n) < wanted || skip-- != 0) ++n;
    return (m * kExtentsPerMap + e) * kExtentPages + n;
  }
  return kNoBlock;
}

// More pages for this node, in its last extent or a new one.  Others may do the same at once: then there is
// more room than needed, or the caller finds what they added.
Status Heap::grow() {
  auto& pool = txns_.pool();
  auto& session = txns_.session();
  size_t m = maps_.size();
  while (m > 0 && maps_[m - 1].owner != txns_.node()) --m;
  if (m == 0) return add_map_page();
  const MapPage& map = maps_[m - 1];
  const auto extents = uint32_t(map.extents.size());
  const bool new_extent = extents == 0 || map.used.back() == kExtentPages;
  if (new_extent && extents == kExtentsPerMap) return add_map_page();
  const uint32_t at = new_extent ? extents : extents - 1, used = new_extent ? 0 : map.used.back();
  uint32_t step = used_step(at, used);
  FreshPages fresh(txns_);
  if (at == 0) {
    GCL_TRY(fresh.take(step, 1));
    step = fresh.count();
  } else if (new_extent) {
    GCL_TRY(fresh.take(1, kExtentPages));
  }
  MiniTransaction change(pool, session);
  GCL_TRY(change.reserve(kLogForExtent));
  auto guard = pool.fix_exclusive(session, map.page);
  if (!guard) return guard.error();
  const auto& now = *reinterpret_cast<const ExtentMapPage*>(guard->bytes());
  if (now.extents != extents || (!new_extent && now.extent[at].used != used)) return {};
  MapExtent entry = new_extent ? MapExtent{} : now.extent[at];
  if (new_extent && at != 0) entry.first = fresh[0].raw;
  for (uint32_t n = 0; n < step; ++n) entry.set_room(used + n, 15);
  entry.used = uint8_t(used + step);
  change.join(*guard);
  change.set(*guard, extent_at(at), entry);
  for (uint32_t n = 0; at == 0 && n < step; ++n) change.set(*guard, single_at(used + n), ShortPageId::of(fresh[n]));
  if (new_extent) change.set(*guard, offsetof(ExtentMapPage, extents), extents + 1);
  change.commit();
  fresh.keep();
  return {};
}

Status Heap::add_map_page() {
  auto& pool = txns_.pool();
  auto& session = txns_.session();
  auto fresh = pool.allocate(session, 1);
  if (!fresh) return fresh.error();
  MiniTransaction change(pool, session);
  auto give_back = [&](Errc error) -> Status {
    (void)pool.free(session, *fresh, 1);
    return error;
  };
  if (auto done = change.reserve(coherence::kPageSize + 64); !done) return give_back(done.error());
  auto root = pool.fix_exclusive(session, relation_.header);
  if (!root) return give_back(root.error());
  const auto& directory = *reinterpret_cast<const RelationPage*>(root->bytes());
  uint32_t maps = directory.maps;
  if (directory.header.type != PageType::kRelation || maps == RelationPage::kMapsMax || maps != maps_.size()) {
    const Errc error = directory.header.type != PageType::kRelation ? Errc::kNotFound
                       : maps == RelationPage::kMapsMax             ? Errc::kAtLimit
                                                                    : Errc::kOk;
    root->release();
    GCL_TRY(give_back(error));
    return load_directory();  // another session was faster: read it again
  }
  session.next_wait(bufmgr::WaitOrder::kNew);
  auto guard = pool.fix_exclusive(session, *fresh);
  if (!guard) {
    root->release();
    return give_back(guard.error());
  }
  change.join(*root);
  change.join(*guard);
  change.format(*guard, PageType::kExtentMap, uint32_t(relation_.header.number()));
  change.set(*guard, offsetof(ExtentMapPage, owner), uint32_t{txns_.node().value});
  change.set(*root, uint32_t(offsetof(RelationPage, map) + maps * 8), RelationPage::entry(txns_.node(), *fresh));
  change.set(*root, offsetof(RelationPage, maps), maps + 1);
  change.commit();
  return {};
}

// `wanted` bytes did not fit (0: nothing was tried), so the room noted is less than that.
Status Heap::note_free(uint32_t block, uint32_t free_bytes, uint32_t wanted) {
  auto& pool = txns_.pool();
  uint32_t m = block / kBlocksPerMap, e = block % kBlocksPerMap / kExtentPages, n = block % kExtentPages;
  uint32_t room = room_for(free_bytes);
  if (wanted != 0) room = std::min(room, room_wanted(align8(wanted) + 4) - 1);
  MiniTransaction change(pool, txns_.session());
  GCL_TRY(change.reserve(64));
  auto guard = pool.fix_exclusive(txns_.session(), maps_[m].page);
  if (!guard) return guard.error();
  MapExtent entry = reinterpret_cast<const ExtentMapPage*>(guard->bytes())->extent[e];
  if (entry.room_of(n) == room) return {};
  entry.set_room(n, room);
  change.join(*guard);
  change.set(*guard, uint32_t(extent_at(e) + offsetof(MapExtent, room) + n / 2), entry.room[n / 2]);
  change.commit();
  return {};
}

Status Heap::give_up_target(uint32_t free_bytes, uint32_t wanted) {
  uint32_t block = std::exchange(target_, kNoBlock);
  return note_free(block, free_bytes, wanted);
}

Status Heap::note_free_all(uint32_t first_block, const std::vector<uint32_t>& free_bytes) {
  auto& pool = txns_.pool();
  uint32_t m = first_block / kBlocksPerMap, e = first_block % kBlocksPerMap / kExtentPages;
  MiniTransaction change(pool, txns_.session());
  GCL_TRY(change.reserve(2 * sizeof(MapExtent)));
  auto guard = pool.fix_exclusive(txns_.session(), maps_[m].page);
  if (!guard) return guard.error();
  MapExtent entry = reinterpret_cast<const ExtentMapPage*>(guard->bytes())->extent[e];
  MapExtent before = entry;
  for (uint32_t n = 0; n < free_bytes.size(); ++n) entry.set_room(n, room_for(free_bytes[n]));
  if (std::memcmp(&before, &entry, sizeof entry) == 0) return {};
  change.join(*guard);
  change.write(*guard, uint32_t(extent_at(e) + offsetof(MapExtent, room)), entry.room, sizeof entry.room);
  change.commit();
  return {};
}

}  // namespace engine
