// The pages that lead from a relation to its blocks: the header page (kRelation) lists map pages, a map page
// (kExtentMap) lists extents of 64 heap pages and how much room their pages have.
//
// heap.map-of-one-node: A map page belongs to one node: only sessions of that node add extents or pages to it.  So
//     nodes that fill a table at once do not touch each other's map.
// heap.map-only-grows: Directory and extent entries are only ever added; block (map * kExtentsPerMap + extent) * 64 + n
//     never moves.
// heap.first-extent-singles: The first extent of a map takes its pages from the pool one by one, wherever they are
//     (`single`), when they are used: a table of a few rows takes few pages.  The others are 64 pages side by side.
//     Pages are used in steps of kUsedStep, a map's first ones one by one: scans, sizes and the planner take a table of
//     a few rows for what it is.  A used page may be unformatted (kUnused): it holds no rows.
// heap.room-is-hint: Room is a hint in sixteenths of a page: a wrong one costs a visit.  A page that is not in use has
//     none.
// heap.lock-directory-set-once: An extent's lock directory is set once, by a session of any node (it is rare), and
//     stays.
// heap.own-maps-searched: A session that looks for room reads the maps of its own node only, which are cached there.
//     Scans read all maps, and so does a session that finds the pool full.
// heap.away-maps-filled: Before a node takes more pages, it fills the room in maps of nodes that are away (stopped, or
//     gone for good), as far as it has heard of them.  It adds no pages to them (heap.map-of-one-node).
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

#include "bufmgr/base/page.hpp"
#include "extension/engine/heap/row.hpp"

namespace engine {

using coherence::NodeId;
using coherence::PageId;

inline constexpr uint32_t kExtentPages = 64;
inline constexpr uint32_t kExtentsPerMap = 160;
inline constexpr uint32_t kBlocksPerMap = kExtentsPerMap * kExtentPages;
inline constexpr uint8_t kUsedStep = 8;
inline constexpr uint32_t kRelationMagic = 0x4c455267;  // "gREL"

// For the hosts' decisions when to vacuum and analyze.
// heap.counts-only-grow: Counts of changes only grow.  Nothing but such decisions may depend on them: a node that dies
//     has not told of its last ones.
struct RelationCounts {
  uint64_t inserted, updated, deleted;  // rows, as far as nodes have told
  uint64_t vacuums;                     // number of the last VACUUM << 8 | node that did it
  uint64_t live, dead;                  // rows that it left
  static constexpr uint64_t vacuum_by(uint64_t number, NodeId node) { return number << 8 | node.value; }
  constexpr uint64_t vacuum_number() const { return vacuums >> 8; }
  constexpr NodeId vacuumed_by() const { return {uint8_t(vacuums)}; }
  bool operator==(const RelationCounts&) const = default;
};

struct RelationPage {
  bufmgr::PageHeader header;
  uint32_t magic;
  uint32_t maps;
  uint64_t vacuum_token, vacuum_place;  // the last SessionLock of a VACUUM; its session's word says if it is held
  static constexpr uint32_t kMapsMax =
      (coherence::kPageSize - sizeof(bufmgr::PageHeader) - 24 - sizeof(RelationCounts)) / 8;
  uint64_t map[kMapsMax];  // owner node in bits 63..56, page below
  RelationCounts counts;
  static constexpr uint64_t entry(NodeId owner, PageId page) { return uint64_t{owner.value} << 56 | page.raw; }
  static constexpr PageId page_of(uint64_t entry) { return {entry & ((uint64_t{1} << 56) - 1)}; }
  static constexpr NodeId owner_of(uint64_t entry) { return {uint8_t(entry >> 56)}; }
};
static_assert(sizeof(RelationPage) == coherence::kPageSize);
// heap.word-has-one-use.
static_assert(uint64_t{RelationPage::kMapsMax} * kBlocksPerMap <= kCommandMax);

struct MapExtent {
  uint64_t first;    // page id of its first page; of a map's first extent: nothing (heap.first-extent-singles)
  uint8_t used;      // pages in use, from the first
  uint8_t locks[6];  // page id of its lock directory (lock_page.hpp); 0: none
  uint8_t reserved;
  uint8_t room[kExtentPages / 2];  // four bits per page: free bytes / kRoomUnit, at most 15
  PageId lock_directory() const {  // invalid: none
    uint64_t raw = 0;
    std::memcpy(&raw, locks, sizeof locks);
    return raw == 0 ? PageId{} : PageId{raw};
  }
  void set_lock_directory(PageId page) { std::memcpy(locks, &page.raw, sizeof locks); }
  uint32_t room_of(uint32_t n) const { return room[n / 2] >> (n % 2 * 4) & 15; }
  // How many pages have at least that room, 1..15.
  uint32_t pages_with(uint32_t wanted) const {
    constexpr uint64_t kEach = 0x0101010101010101, kNibble = 15 * kEach, kCarry = 16 * kEach;
    uint32_t count = 0;
    for (uint32_t i = 0; i < sizeof room; i += 8) {
      uint64_t pair;
      std::memcpy(&pair, room + i, 8);
      const uint64_t even = (pair & kNibble) + (16 - wanted) * kEach,
                     odd = (pair >> 4 & kNibble) + (16 - wanted) * kEach;
      count += uint32_t(std::popcount((even & kCarry) | (odd & kCarry) << 1));
    }
    return count;
  }
  void set_room(uint32_t n, uint32_t value) {
    room[n / 2] = uint8_t((room[n / 2] & ~(15u << (n % 2 * 4))) | value << (n % 2 * 4));
  }
};
static_assert(sizeof(MapExtent) == 48);

inline constexpr uint32_t kRoomUnit = 512;
constexpr uint32_t room_for(uint32_t free_bytes) { return free_bytes / kRoomUnit < 15 ? free_bytes / kRoomUnit : 15; }
constexpr uint32_t room_wanted(uint32_t bytes) {
  uint32_t units = (bytes + kRoomUnit - 1) / kRoomUnit;
  return units < 15 ? units : 15;
}

// Page ids fit six bytes.
struct ShortPageId {
  uint8_t raw[6];
  static ShortPageId of(PageId page) {
    ShortPageId id;
    std::memcpy(id.raw, &page.raw, sizeof id.raw);
    return id;
  }
  PageId page() const {
    PageId page{0};
    std::memcpy(&page.raw, raw, sizeof raw);
    return page;
  }
};
static_assert(sizeof(ShortPageId) == 6 && std::endian::native == std::endian::little);

struct ExtentMapPage {
  bufmgr::PageHeader header;
  uint32_t extents;
  uint32_t owner;
  MapExtent extent[kExtentsPerMap];
  ShortPageId single[kExtentPages];  // heap.first-extent-singles: the pages of extent 0 that are in use
  PageId page_of(uint32_t e, uint32_t n) const { return e == 0 ? single[n].page() : PageId{extent[e].first} + n; }
};
static_assert(sizeof(ExtentMapPage) <= coherence::kPageSize);

}  // namespace engine
