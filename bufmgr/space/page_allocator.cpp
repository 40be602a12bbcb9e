// BufferPool's allocator.  Memory nodes give pages in turn.  In each of them a node begins its search in groups of its
// own, so that nodes share map pages only when the memory node runs full; single pages come from extents that are
// broken into already.
#include <algorithm>
#include <cstring>

#include "bufmgr/buffer_pool.hpp"
#include "bufmgr/mini_transaction.hpp"
#include "bufmgr/node_shared.hpp"
#include "bufmgr/space/space_map.hpp"
#include "bufmgr/space/space_note.hpp"

namespace bufmgr {

using coherence::Errc;

namespace {

// Pages to be had of an extent that is broken into.
uint32_t singles_of(uint64_t used) { return used == 0 ? 0 : kExtentPages - uint32_t(std::popcount(used)); }

// What an optimistic read says about a group; good enough to pass it by.
struct Room {
  uint64_t extents, singles;
};

Result<Room> read_room(BufferPool& pool, Session& session, const SpaceGroups& groups, uint64_t group, PageUse use) {
  const auto kept = use == PageUse::kData ? groups.kept(group) : SpaceGroups::Kept{0, 0};
  for (;;) {
    auto page = pool.fix_optimistic(session, groups.map_of(group));
    if (!page) return page.error();
    const auto header = page->get<PageHeader>(0);
    const auto extents = page->get<uint32_t>(kSpaceMapAt + offsetof(SpaceMap, free_extents));
    const auto singles = page->get<uint32_t>(kSpaceMapAt + offsetof(SpaceMap, free_singles));
    uint32_t kept_extents = 0, kept_singles = 0;
    for (uint32_t e = kept.first; e < kept.last; ++e) {
      const auto used = page->get<uint64_t>(kSpaceMapAt + uint32_t(offsetof(SpaceMap, used)) + e * 8);
      kept_extents += used == 0;
      kept_singles += singles_of(used);
    }
    if (!page->validate()) continue;
    if (header.type == PageType::kSpaceMap) return Room{extents - kept_extents, singles - kept_singles};
    const SpaceMap fresh = groups.fresh(group);
    return Room{fresh.free_extents - (kept.last - kept.first), fresh.free_singles};
  }
}

// The map of a group under exclusive guard; formats it at first touch.
const SpaceMap& open_map(MiniTransaction& change, ExclusiveGuard& page, const SpaceGroups& groups, uint64_t group) {
  change.join(page);
  if (page.header().type != PageType::kSpaceMap) {
    change.format(page, PageType::kSpaceMap, 0);
    const SpaceMap fresh = groups.fresh(group);
    change.write(page, kSpaceMapAt, &fresh, sizeof fresh);
  }
  return *reinterpret_cast<const SpaceMap*>(page.bytes() + kSpaceMapAt);
}

void set_word(MiniTransaction& change, ExclusiveGuard& page, const SpaceMap& map, uint32_t extent, uint64_t word) {
  const uint64_t old = map.used[extent];
  const uint32_t counts[2] = {map.free_extents + (word == 0) - (old == 0),
                              map.free_singles + singles_of(word) - singles_of(old)};
  change.set(page, kSpaceMapAt + offsetof(SpaceMap, used) + extent * 8, word);
  change.write(page, kSpaceMapAt, counts, sizeof counts);
}

// The extent to take `count` pages from, or kGroupExtents.
uint32_t choose_extent(const SpaceMap& map, uint32_t count, const SpaceGroups::Kept& kept) {
  uint32_t whole = kGroupExtents;
  for (uint32_t e = 0; e < kGroupExtents; ++e) {
    if (kept.has(e)) continue;
    if (count == 1 && map.used[e] != 0 && ~map.used[e] != 0) return e;
    if (map.used[e] != 0) continue;
    if (count != 1) return e;
    whole = std::min(whole, e);
  }
  return whole;
}

constexpr uint32_t kMapLogBytes = sizeof(SpaceMap) + 128;

// kNoSpace: the group has no room.
Result<PageId> allocate_in(BufferPool& pool, Session& session, const SpaceGroups& groups, uint64_t group,
                           uint32_t count, PageUse use, SpaceNote* note) {
  MiniTransaction change(pool, session);
  GCL_TRY(change.reserve(kMapLogBytes + (note != nullptr ? note->log_bytes() : 0)));
  auto page = pool.fix_exclusive(session, groups.map_of(group));
  if (!page) return page.error();
  const SpaceMap& map = open_map(change, *page, groups, group);
  const auto kept = groups.kept(group);
  uint32_t extent = choose_extent(map, count, kept);
  if (extent == kGroupExtents && use == PageUse::kHousekeeping) extent = choose_extent(map, count, {0, 0});
  if (extent == kGroupExtents) {
    change.commit();  // perhaps the map was new
    return Errc::kNoSpace;
  }
  const uint32_t bit = count == 1 ? uint32_t(std::countr_one(map.used[extent])) : 0;
  const uint64_t mask = count == 1 ? uint64_t{1} << bit : ~uint64_t{0};
  const PageId first = PageId::at(groups.node, groups.first_page(group) + uint64_t{extent} * kExtentPages + bit);
  if (note != nullptr) {
    if (const Status opened = note->open(first); !opened) {
      change.commit();
      return opened.error();
    }
    note->write(change);
  }
  set_word(change, *page, map, extent, map.used[extent] | mask);
  change.commit();
  return first;
}

// Whether space.free-page-zero holds for the page.
bool clean(const ExclusiveGuard& page) {
  constexpr uint32_t kAfterVersion = sizeof(PageHeader::version);
  const std::byte* body = page.bytes() + kAfterVersion;
  return body[0] == std::byte{0} && std::memcmp(body, body + 1, kPageSize - kAfterVersion - 1) == 0;
}

void clear(MiniTransaction& change, ExclusiveGuard& page) {
  if (clean(page)) return;
  change.join(page);
  change.format(page, PageType::kUnused, 0);
}

Status clear_page(BufferPool& pool, Session& session, PageId id) {
  MiniTransaction change(pool, session);
  GCL_TRY(change.reserve(64));
  auto page = pool.fix_exclusive(session, id);
  if (!page) return page.error();
  clear(change, *page);
  change.commit();
  return {};
}

}  // namespace

// space.full-when-nothing-returns
Result<PageId> BufferPool::allocate(Session& session, uint32_t count, PageUse use, SpaceNote* note) {
  VERIFY(count == 1 || count == kExtentPages);
  for (uint32_t tries = 0;; ++tries) {
    auto page = allocate_now(session, count, use, note);
    if (page || page.error() != Errc::kNoSpace || !session.interrupts_.room_comes(tries)) return page;
  }
}

Result<PageId> BufferPool::allocate_now(Session& session, uint32_t count, PageUse use, SpaceNote* note) {
  const uint32_t nodes = pool_->settled_memory_nodes();
  uint32_t turn = 0;
  if (nodes > 1) turn = shared_->next_memory_node[count != 1].fetch_add(1, std::memory_order_relaxed) + node().value;
  for (uint32_t i = 0; i < nodes; ++i) {
    auto page = allocate_on(session, MemoryNodeId{uint8_t((turn + i) % nodes)}, count, PageUse::kData, note);
    if (page) session.counts_.add(Count::kPagesAllocated, count);
    if (page || page.error() != Errc::kNoSpace) return page;
  }
  if (use == PageUse::kData) return Errc::kNoSpace;
  auto page = allocate_on(session, MemoryNodeId{0}, count, use, note);  // space.housekeeping-kept
  if (page) session.counts_.add(Count::kPagesAllocated, count);
  return page;
}

Result<PageId> BufferPool::allocate_on(Session& session, MemoryNodeId memory_node, uint32_t count, PageUse use,
                                       SpaceNote* note) {
  const SpaceGroups groups{memory_node, pool_->pages(memory_node)};
  const uint64_t home = groups.count() * node().value / nodes_max_;
  for (uint64_t i = 0; i < groups.count(); ++i) {
    const uint64_t group = (home + i) % groups.count();
    auto room = read_room(*this, session, groups, group, use);
    if (!room) return room.error();
    if (room->extents == 0 && (count != 1 || room->singles == 0)) continue;
    auto page = allocate_in(*this, session, groups, group, count, use, note);
    if (page || page.error() != Errc::kNoSpace) return page;
  }
  return Errc::kNoSpace;
}

// A single page is cleared by the mini-transaction that frees it: what it says of others (the next of its chain) stands
// as long as its owner's account of it (space.noted-in-same-change).
Status BufferPool::free(Session& session, PageId first, uint32_t count, SpaceNote* note) {
  VERIFY(count == 1 || (count == kExtentPages && first.number() % kExtentPages == 0));
  if (!pool_->has(first)) return Errc::kCorrupt;
  const SpaceGroups groups{first.node(), pool_->pages(first.node())};
  const uint64_t group = first.number() / kGroupPages;
  const auto extent = uint32_t(first.number() % kGroupPages / kExtentPages);
  const uint64_t mask = count == 1 ? uint64_t{1} << first.number() % kExtentPages : ~uint64_t{0};
  if (groups.reserved_of(group, extent) & mask) return Errc::kCorrupt;
  for (uint32_t i = 0; count > 1 && i < count; ++i) GCL_TRY(clear_page(*this, session, first + i));

  MiniTransaction change(*this, session);
  GCL_TRY(change.reserve(kMapLogBytes + 64 + (note != nullptr ? note->log_bytes() : 0)));
  ExclusiveGuard page;
  if (count == 1) {
    auto fixed = fix_exclusive(session, first);
    if (!fixed) return fixed.error();
    page = fixed.take();
    session.next_wait(WaitOrder::kSpace);
  }
  auto map_page = fix_exclusive(session, groups.map_of(group));
  if (!map_page) return map_page.error();
  const SpaceMap& map = open_map(change, *map_page, groups, group);
  const bool allocated = (map.used[extent] & mask) == mask;
  const Status opened = !allocated ? Errc::kCorrupt : note != nullptr ? note->open(first) : Status{};
  if (opened) {
    if (page) clear(change, page);
    if (note != nullptr) note->write(change);
    set_word(change, *map_page, map, extent, map.used[extent] & ~mask);
  }
  change.commit();
  if (opened) session.counts_.add(Count::kPagesFreed, count);
  return opened;
}

// The bits of an extent's pages that are allocated; *untouched: none of the whole group is.
static Result<uint64_t> allocated_of(BufferPool& pool, Session& session, const SpaceGroups& groups, uint64_t group,
                                     uint32_t extent, bool* untouched) {
  for (;;) {
    auto page = pool.fix_optimistic(session, groups.map_of(group));
    if (!page) return page.error();
    *untouched = page->get<PageHeader>(0).type != PageType::kSpaceMap;
    const auto used = page->get<uint64_t>(kSpaceMapAt + uint32_t(offsetof(SpaceMap, used)) + extent * 8);
    if (page->validate()) return *untouched ? 0 : used & ~groups.reserved_of(group, extent);
  }
}

Result<PageId> BufferPool::next_allocated(Session& session, PageId from) {
  uint64_t at = from.number();
  for (uint32_t n = from.node().value; n < memory_nodes(); ++n, at = 0) {
    const SpaceGroups groups{MemoryNodeId{uint8_t(n)}, pool_->pages(MemoryNodeId{uint8_t(n)})};
    while (at < groups.pages) {
      const uint64_t group = at / kGroupPages;
      bool untouched;
      auto used = allocated_of(*this, session, groups, group, uint32_t(at % kGroupPages / kExtentPages), &untouched);
      if (!used) return used.error();
      const uint64_t ahead = *used >> at % kExtentPages;
      if (ahead != 0) return PageId::at(groups.node, at + uint64_t(std::countr_zero(ahead)));
      const uint64_t step = untouched ? kGroupPages : kExtentPages;
      at = (at / step + 1) * step;
    }
  }
  return PageId{};
}

Result<uint64_t> BufferPool::free_pages(Session& session) {
  uint64_t total = 0;
  for (uint32_t n = 0; n < memory_nodes(); ++n) {
    auto there = free_pages(session, MemoryNodeId{uint8_t(n)});
    if (!there) return there.error();
    total += *there;
  }
  return total;
}

Result<uint64_t> BufferPool::free_pages(Session& session, MemoryNodeId memory_node) {
  const SpaceGroups groups{memory_node, pool_->pages(memory_node)};
  uint64_t total = 0;
  for (uint64_t group = 0; group < groups.count(); ++group) {
    auto room = read_room(*this, session, groups, group, PageUse::kData);
    if (!room) return room.error();
    total += room->extents * kExtentPages + room->singles;
  }
  return total;
}

Result<PoolUse> BufferPool::use(Session& session) {
  PoolUse use;
  for (uint32_t n = 0; n < memory_nodes(); ++n) {  // a memory node that comes meanwhile is in all sums, or in none
    const SpaceGroups groups{MemoryNodeId{uint8_t(n)}, pool_->pages(MemoryNodeId{uint8_t(n)})};
    use.pages += groups.pages;
    use.maps += groups.count() + 1;
    for (uint64_t group = 0; group < groups.count(); ++group) {
      auto data = read_room(*this, session, groups, group, PageUse::kData);
      auto all = read_room(*this, session, groups, group, PageUse::kHousekeeping);
      if (!data || !all) return !data ? data.error() : all.error();
      const uint64_t free = data->extents * kExtentPages + data->singles;
      use.free += free;
      use.kept +=
          all->extents * kExtentPages + all->singles - std::min(free, all->extents * kExtentPages + all->singles);
    }
  }
  return use;
}

}  // namespace bufmgr
