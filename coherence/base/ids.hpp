// The names of things: nodes, pages, pool addresses.  Plain values, comparable, without behaviour of their own.
#pragma once

#include <bit>
#include <compare>
#include <cstddef>
#include <cstdint>

namespace coherence {

inline constexpr uint32_t kPageSize = 8192;  // one global cache line (GCL)
inline constexpr int kNodesMax = 58;         // compute nodes: bits of the latch word's reader bitmap
inline constexpr int kMemoryNodesMax = 64;

// A compute node, 0..57.  In the latch word owner n is stored as n + 1 (0: no owner; 59..63 stay reserved).
struct NodeId {
  uint8_t value = 0xff;
  constexpr bool valid() const { return value < kNodesMax; }
  constexpr auto operator<=>(const NodeId&) const = default;
};

// A set of compute nodes; bit n is node n.
struct NodeSet {
  uint64_t bits = 0;
  static constexpr NodeSet of(NodeId n) { return {uint64_t{1} << n.value}; }
  constexpr bool has(NodeId n) const { return bits >> n.value & 1; }
  constexpr bool empty() const { return bits == 0; }
  constexpr bool valid() const { return bits >> kNodesMax == 0; }
  constexpr int count() const { return std::popcount(bits); }
  constexpr NodeId first() const { return {uint8_t(std::countr_zero(bits))}; }  // REQUIRES: !empty()
  constexpr NodeSet with(NodeId n) const { return {bits | of(n).bits}; }
  constexpr NodeSet without(NodeId n) const { return {bits & ~of(n).bits}; }
  constexpr bool operator==(const NodeSet&) const = default;
};

// A memory node (it has pages), 0..63.  0 also holds what is not pages: node table, rings, words.
struct MemoryNodeId {
  uint8_t value = 0;
  constexpr auto operator<=>(const MemoryNodeId&) const = default;
};

// A byte in the pool: memory node (8 bits) and byte offset in its memory (56 bits).
struct PoolAddress {
  uint64_t raw = 0;
  static constexpr PoolAddress at(MemoryNodeId n, uint64_t offset) { return {n.value * (uint64_t{1} << 56) | offset}; }
  constexpr MemoryNodeId node() const { return {uint8_t(raw >> 56)}; }
  constexpr uint64_t offset() const { return raw & ((uint64_t{1} << 56) - 1); }
  constexpr PoolAddress operator+(uint64_t bytes) const { return {raw + bytes}; }
  constexpr auto operator<=>(const PoolAddress&) const = default;
};

// A page (GCL) of the pool: memory node (8 bits) and page number there (40 bits).  Page number 0 of memory node 0 is
// the pool's root page; raw == 0xffff... means none.  Fits six bytes; stored as eight, of which the upper two are 0.
struct PageId {
  uint64_t raw = ~uint64_t{0};
  static constexpr PageId at(MemoryNodeId n, uint64_t number) { return {n.value * (uint64_t{1} << 40) | number}; }
  constexpr bool valid() const { return raw != ~uint64_t{0}; }
  constexpr MemoryNodeId node() const { return {uint8_t(raw >> 40)}; }
  constexpr uint64_t number() const { return raw & ((uint64_t{1} << 40) - 1); }
  constexpr PageId operator+(uint64_t pages) const { return {raw + pages}; }
  constexpr auto operator<=>(const PageId&) const = default;
};

// A position in a node's own log (PostgreSQL's WAL of that primary).  Comparable within one node only.
struct Lsn {
  uint64_t value = 0;
  constexpr auto operator<=>(const Lsn&) const = default;
};

// A process (or test thread) of a node that may touch pages; index of its session slot in the node's arena.
struct SessionId {
  uint16_t value = 0xffff;
  constexpr auto operator<=>(const SessionId&) const = default;
};

}  // namespace coherence
