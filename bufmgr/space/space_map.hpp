// SpaceMap: which pages of a group are allocated.  Every memory node has groups of its own: group g's map is page 1 + g
// there; page 0 is the pool's root in memory node 0, and stays unused in the others.
//
// space.set-until-zeroed: A bit is set from before its page is handed out until after the page was zeroed again.  A
//     crash in between leaks the page, and never shares it.
// space.free-page-zero: A page whose bit is clear is zero but for its version.
// space.untouched-map-unused: A map page of type kUnused was never touched: nothing of its group is allocated but what
//     reserved_of() says.
#pragma once

#include <bit>
#include <cstdint>

#include "bufmgr/base/page.hpp"

namespace bufmgr {

inline constexpr uint32_t kExtentPages = 64;
inline constexpr uint32_t kGroupExtents = 128;
inline constexpr uint32_t kGroupPages = kGroupExtents * kExtentPages;

// The body of a map page.
struct SpaceMap {
  uint32_t free_extents;         // words that are 0
  uint32_t free_singles;         // clear bits in the other words
  uint64_t used[kGroupExtents];  // bit i of word e: page e * 64 + i of the group
};
inline constexpr uint32_t kSpaceMapAt = kPageBody;

// The groups of one memory node.
struct SpaceGroups {
  coherence::MemoryNodeId node;
  uint64_t pages;
  uint64_t count() const { return (pages + kGroupPages - 1) / kGroupPages; }
  PageId map_of(uint64_t group) const { return PageId::at(node, 1 + group); }
  uint64_t first_page(uint64_t group) const { return group * kGroupPages; }
  // Pages of word `extent` of `group` that can never be handed out: root and map pages, and what lies beyond the end.
  uint64_t reserved_of(uint64_t group, uint32_t extent) const {
    const uint64_t first = first_page(group) + uint64_t{extent} * kExtentPages;
    uint64_t bits = 0;
    for (uint32_t i = 0; i < kExtentPages; ++i) {
      if (first + i <= count() || first + i >= pages) bits |= uint64_t{1} << i;
    }
    return bits;
  }
  // The kept ones (space.housekeeping-kept) are [first, last) of group 0; none in a small memory node.
  struct Kept {
    uint32_t first, last;
    bool has(uint32_t extent) const { return first <= extent && extent < last; }
  };
  Kept kept(uint64_t group) const {
    if (node.value != 0 || group != 0) return {0, 0};
    const auto whole = uint32_t(pages / kExtentPages < kGroupExtents ? pages / kExtentPages : kGroupExtents);
    return {whole - (whole >= 64 ? 2 : whole >= 16 ? 1 : 0), whole};
  }
  SpaceMap fresh(uint64_t group) const {
    SpaceMap map{};
    for (uint32_t e = 0; e < kGroupExtents; ++e) {
      map.used[e] = reserved_of(group, e);
      map.free_extents += map.used[e] == 0;
      if (map.used[e] != 0) map.free_singles += kExtentPages - uint32_t(std::popcount(map.used[e]));
    }
    return map;
  }
};

}  // namespace bufmgr
