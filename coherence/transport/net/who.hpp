// Which process is at the end of a link.
#pragma once

#include <compare>
#include <cstdint>

#include "coherence/base/ids.hpp"

namespace coherence::net {

enum class Role : uint8_t {
  kNode = 1,        // a primary's network worker
  kMemoryNode = 2,  // it serves memory
  kTool = 3,        // anything else, for a while: several at once may have the same id
};

// `start` tells one run of a node from the next and grows: a node's incarnation, or the time of its start.
struct Who {
  Role role = Role::kTool;
  uint8_t id = 0;
  uint64_t start = 0;

  static constexpr Who node(NodeId n, uint64_t start) { return {Role::kNode, n.value, start}; }
  static constexpr Who memory_node(MemoryNodeId n, uint64_t start) { return {Role::kMemoryNode, n.value, start}; }
  static constexpr Who tool(uint64_t start) { return {Role::kTool, 0, start}; }
  constexpr bool same_place(const Who& other) const { return role == other.role && id == other.id; }
  constexpr auto operator<=>(const Who&) const = default;

  struct Name {
    char text[64];
  };
  Name name() const noexcept;  // "node 3 (start 17)"
};

}  // namespace coherence::net
