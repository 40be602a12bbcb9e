// The row version: 23 bytes of header, then exactly PostgreSQL's tuple body (null bitmap, padding, data).
//
// That is as long as PostgreSQL's HeapTupleHeader: in a private copy of the row it can be laid over ours, so that a
// scan hands out rows without copying them again, and a row takes as many bytes as in a heap table.
//
//   0  creator  u64  RowTxn: the inserter of this version, or (a hint) when it committed, or frozen
//   8  deleter  u64  RowTxn: the transaction that deleted, updated or locks it, or none
//  16  word     u32  out of line 1 bit | far 1 bit | 30 bits: a command, or a block (heap.word-has-one-use)
//  20  packed   u24  next_offset 9 bits | natts 11 bits | flags 4 bits
//  23  body          bitmap if kHasNull; data at align8(23 + bitmap bytes)
#pragma once

#include <cstdint>
#include <cstring>

#include "extension/engine/txn/txn_id.hpp"

namespace engine {

// Row lock modes, weakest first, as PostgreSQL's LockTupleMode.
enum class RowLock : uint8_t { kKeyShare = 0, kShare = 1, kNoKeyExclusive = 2, kExclusive = 3 };

// In a deleter word: the deleter, a savepoint, took the place of a row lock that its own transaction holds at an outer
// level to its end.  If the savepoint is rolled back, the transaction still holds that lock
// (heap.lock-falls-to-parent).
struct OuterLock {
  uint8_t raw = 0;  // 0: none; else 4 + mode
  static constexpr OuterLock of(RowLock mode) { return {uint8_t(4 | uint8_t(mode))}; }
  constexpr bool held() const { return raw != 0; }
  constexpr RowLock mode() const { return RowLock(raw & 3); }
  constexpr bool operator==(const OuterLock&) const = default;
};

// What a creator or deleter word says (bits 63..60).
enum class RowTxnKind : uint8_t {
  kNone = 0,        // deleter: none
  kInserted = 1,    // creator: id
  kDeleted = 2,     // deleter: id deleted the row
  kUpdated = 3,     // deleter: id replaced it by the version that `next` names
  kCommitted = 6,   // hint: creator: inserted by a transaction that committed at this timestamp
  kFrozen = 7,      // hint: creator: visible to everyone
  kAborted = 8,     // hint: creator: never existed
  kUpdatedKey = 9,  // deleter: as kUpdated, and excludes FOR KEY SHARE: a key column changed, or id held FOR UPDATE
  kLocked = 12,     // deleter: id holds a row lock (12..15: its mode); the row lives
};

// kind 4 bits | 60 bits                       creator: an id, or a commit timestamp
// kind 4 bits | outer lock 3 bits | 57 bits   deleter: an id
struct RowTxn {
  uint64_t raw = 0;
  static constexpr RowTxn of(RowTxnKind kind, uint64_t low60 = 0) { return {uint64_t(kind) << 60 | low60}; }
  static constexpr RowTxn of(RowTxnKind kind, TxnId id, OuterLock outer = {}) {
    return of(kind, uint64_t{outer.raw} << TxnId::kBits | id.raw);
  }
  static constexpr RowTxn lock(RowLock mode, TxnId id, OuterLock outer) {
    return {of(RowTxnKind::kLocked, id, outer).raw | uint64_t(mode) << 60};
  }
  constexpr RowTxnKind kind() const {
    const auto kind = RowTxnKind(raw >> 60);
    return kind > RowTxnKind::kLocked ? RowTxnKind::kLocked : kind;
  }
  // `kinds`: a bit for each, none of them kLocked.
  constexpr bool is_one_of(uint32_t kinds) const { return kinds >> (raw >> 60) & 1; }
  constexpr RowLock lock_mode() const { return RowLock(raw >> 60 & 3); }  // REQUIRES: kLocked
  constexpr OuterLock outer() const { return {uint8_t(raw >> TxnId::kBits & 7)}; }
  constexpr TxnId id() const { return {raw & ((uint64_t{1} << TxnId::kBits) - 1)}; }
  constexpr Cts cts() const { return {raw & ((uint64_t{1} << 60) - 1)}; }
  constexpr bool operator==(const RowTxn&) const = default;
};
static_assert(TxnId::kBits + 3 + 4 == 64);

// Where a row version is: block of the relation (0..), line pointer (1..291).
struct Tid {
  uint32_t block = ~uint32_t{0};
  uint16_t offset = 0;
  constexpr bool valid() const { return offset != 0; }
  constexpr uint64_t packed() const { return uint64_t{block} << 9 | offset; }  // 41 bits; not 0 if valid
  constexpr auto operator<=>(const Tid&) const = default;
};

inline constexpr uint32_t kRowHeaderBytes = 23;
inline constexpr uint8_t kHasNull = 1;       // the body starts with a null bitmap
inline constexpr uint8_t kHeapOnly = 2;      // reached only through a same-page chain; no index entry points here
inline constexpr uint8_t kChainUpdated = 4;  // next is on the same page and has no index entries of its own
inline constexpr uint8_t kHasLockers = 8;    // more locks on this version may be recorded in its block's lock pages

// The body refers to values that are stored elsewhere, which the layer above looks after.
inline constexpr uint32_t kOutOfLine = 1u << 31;
// The version was updated to one on another page, whose block is below; it has no room for a command
// (heap.word-has-one-use).
inline constexpr uint32_t kFar = 1u << 30;
// The last command that may insert, update or delete a row, and the last block of a relation.
inline constexpr uint32_t kCommandMax = kFar - 1;

#pragma pack(push, 1)
struct RowHeader {
  RowTxn creator;
  RowTxn deleter;
  uint32_t word;
  uint8_t packed[3];

  uint32_t pack() const { return packed[0] | uint32_t{packed[1]} << 8 | uint32_t{packed[2]} << 16; }
  void set_pack(uint32_t v) { packed[0] = uint8_t(v), packed[1] = uint8_t(v >> 8), packed[2] = uint8_t(v >> 16); }
  uint16_t next_offset() const { return pack() & 0x1ff; }
  uint16_t natts() const { return pack() >> 9 & 0x7ff; }
  uint8_t flags() const { return pack() >> 20 & 0xf; }
  void set(uint16_t next_offset, uint16_t natts, uint8_t flags) {
    set_pack(uint32_t{next_offset} | uint32_t{natts} << 9 | uint32_t{flags} << 20);
  }
  bool out_of_line() const { return word & kOutOfLine; }
  bool far() const { return word & kFar; }
  // Of its ender, or else of its maker (heap.word-has-one-use).  REQUIRES: !far().
  uint32_t command() const { return word & kCommandMax; }
  void set_command(uint32_t command) { word = (word & kOutOfLine) | command; }
  void set_far(uint32_t block) { word = (word & kOutOfLine) | kFar | block; }
  // `block`: of this version.
  Tid next(uint32_t block) const { return {far() ? word & kCommandMax : block, next_offset()}; }
  bool has_lockers() const { return flags() & kHasLockers; }
  bool locked() const { return deleter.kind() == RowTxnKind::kLocked; }
  bool updated() const { return deleter.kind() == RowTxnKind::kUpdated || deleter.kind() == RowTxnKind::kUpdatedKey; }
  // Deleted because an update of a partition key put its new version into another relation: `next` names no place.
  bool moved() const { return deleter.kind() == RowTxnKind::kDeleted && next_offset() == 0; }
  bool ended() const {
    return deleter.is_one_of(1u << int(RowTxnKind::kDeleted) | 1u << int(RowTxnKind::kUpdated) |
                             1u << int(RowTxnKind::kUpdatedKey));
  }
  bool heap_only() const { return flags() & kHeapOnly; }
  // The newer version is on the same page and reached through this one.
  bool chain_goes_on() const { return updated() && (flags() & kChainUpdated); }
};
#pragma pack(pop)
static_assert(sizeof(RowHeader) == kRowHeaderBytes);

// What the layer above hands in and gets back: the body, opaque to the engine.
struct RowImage {
  const std::byte* body;  // bitmap (if has_null), padding, data; as PostgreSQL laid it out behind its 23-byte header
  uint32_t body_bytes;
  uint16_t natts;
  bool has_null;
  bool out_of_line = false;  // it refers to values that are stored elsewhere
};

}  // namespace engine
