// The OIDs that a primary gives: every object of all primaries has one OID everywhere, so no two primaries give one.
#pragma once

#include <cstdint>

namespace gcl {

inline constexpr uint32_t kOidsOfServer = 16384;  // below: what initdb makes
inline constexpr uint32_t kOidsPerNode = 1u << 26;

struct OidRange {
  uint32_t first, end;
  constexpr bool has(uint32_t oid) const { return oid >= first && oid < end; }
};

constexpr OidRange oids_of_node(int node) {
  const uint32_t first = kOidsOfServer + uint32_t(node) * kOidsPerNode;
  return {first, first + kOidsPerNode};
}

}  // namespace gcl
