// The row version: 31 bytes of header, then exactly PostgreSQL's tuple body (null bitmap, padding, data).
//
// The header ends one byte short of 32 on purpose: in a private copy of the row, PostgreSQL's HeapTupleHeader (23
// bytes, then the bitmap) can be laid over bytes 8..30, so that a scan hands out rows without copying them again.
//
//   0  creator     u64  kCreator word: who inserted this version, or (a hint) when it committed, or frozen
//   8  deleter     u64  kDeleter word: who deleted, updated or locks it, or nobody
//  16  cmin        u32  command of the creator that inserted it; its top bit: the body names values out of line
//  20  cmax        u32  command of the deleter (kLocked: the mode), and above it an outer lock
//  24  next_block  u32  the newer version this one was updated to (with next_offset), if any
//  28  packed      u24  next_offset 9 bits | natts 11 bits | flags 4 bits
//  31  body             bitmap if kHasNull; data at align8(31 + bitmap bytes)
#pragma once

#include <cstdint>
#include <cstring>

#include "extension/engine/txn/txn_id.hpp"

namespace engine {

// What a creator or deleter word says (bits 63..60).
enum class StampKind : uint8_t {
  kNone = 0,        // deleter: nobody
  kInserted = 1,    // creator: id
  kDeleted = 2,     // deleter: id deleted the row
  kUpdated = 3,     // deleter: id replaced it by (next_block, next_offset)
  kLocked = 4,      // deleter: id holds a row lock, cmax's low 2 bits say which mode; the row lives
  kCommitted = 6,   // hint: creator: inserted by a transaction that committed at this timestamp
  kFrozen = 7,      // hint: creator: visible to everyone
  kAborted = 8,     // hint: creator: never existed
  kUpdatedKey = 9,  // deleter: as kUpdated, and excludes FOR KEY SHARE: a key column changed, or id held FOR UPDATE
};

struct Stamp {
  uint64_t raw = 0;
  static constexpr Stamp of(StampKind kind, uint64_t low60 = 0) { return {uint64_t(kind) << 60 | low60}; }
  static constexpr Stamp of(StampKind kind, TxnId id) { return of(kind, id.raw); }
  constexpr StampKind kind() const { return StampKind(raw >> 60); }
  constexpr uint64_t low60() const { return raw & ((uint64_t{1} << 60) - 1); }
  constexpr TxnId id() const { return {low60()}; }
  constexpr Cts cts() const { return {low60()}; }
  constexpr bool operator==(const Stamp&) const = default;
};

// Row lock modes, weakest first, as PostgreSQL's LockTupleMode.
enum class RowLock : uint8_t { kKeyShare = 0, kShare = 1, kNoKeyExclusive = 2, kExclusive = 3 };

// Where a row version is: block of the relation (0..), line pointer (1..291).
struct Tid {
  uint32_t block = ~uint32_t{0};
  uint16_t offset = 0;
  constexpr bool valid() const { return offset != 0; }
  constexpr uint64_t packed() const { return uint64_t{block} << 9 | offset; }  // 41 bits; not 0 if valid
  constexpr auto operator<=>(const Tid&) const = default;
};

inline constexpr uint32_t kRowHeaderBytes = 31;
inline constexpr uint8_t kHasNull = 1;       // the body starts with a null bitmap
inline constexpr uint8_t kHeapOnly = 2;      // reached only through a same-page chain; no index entry points here
inline constexpr uint8_t kChainUpdated = 4;  // next is on the same page and has no index entries of its own
inline constexpr uint8_t kHasLockers = 8;    // more locks on this version may be recorded in its block's lock pages

// In the top three bits of cmax: the deleter, a savepoint, took the place of a row lock that its own transaction holds
// at an outer level.  If the savepoint is rolled back, the savepoint's parent counts as holding that lock (V4).
struct OuterLock {
  uint8_t raw = 0;  // 0: none; else 4 + mode
  static constexpr OuterLock of(RowLock mode) { return {uint8_t(4 | uint8_t(mode))}; }
  constexpr bool held() const { return raw != 0; }
  constexpr RowLock mode() const { return RowLock(raw & 3); }
  constexpr bool operator==(const OuterLock&) const = default;
};
inline constexpr int kOuterLockShift = 29;
// The last command that may delete or update a row: what cmax has bits for.
inline constexpr uint32_t kEndCommandMax = (1u << kOuterLockShift) - 1;
// In the top bit of cmin: the body refers to values that are stored elsewhere, which the layer above looks after.
inline constexpr uint32_t kOutOfLine = 1u << 31;
// The last command that may insert a row.
inline constexpr uint32_t kCommandMax = kOutOfLine - 1;

#pragma pack(push, 1)
struct RowHeader {
  Stamp creator;
  Stamp deleter;
  uint32_t cmin;
  uint32_t cmax;
  uint32_t next_block;
  uint8_t packed[3];

  uint32_t pack() const { return packed[0] | uint32_t{packed[1]} << 8 | uint32_t{packed[2]} << 16; }
  void set_pack(uint32_t v) { packed[0] = uint8_t(v), packed[1] = uint8_t(v >> 8), packed[2] = uint8_t(v >> 16); }
  uint16_t next_offset() const { return pack() & 0x1ff; }
  uint16_t natts() const { return pack() >> 9 & 0x7ff; }
  uint8_t flags() const { return pack() >> 20 & 0xf; }
  void set(uint16_t next_offset, uint16_t natts, uint8_t flags) {
    set_pack(uint32_t{next_offset} | uint32_t{natts} << 9 | uint32_t{flags} << 20);
  }
  Tid next() const { return {next_block, next_offset()}; }
  uint32_t command() const { return cmin & kCommandMax; }
  bool out_of_line() const { return cmin & kOutOfLine; }
  uint32_t end_command() const { return cmax & kEndCommandMax; }
  RowLock lock_mode() const { return RowLock(cmax & 3); }
  OuterLock outer() const { return {uint8_t(cmax >> kOuterLockShift)}; }
  bool has_lockers() const { return flags() & kHasLockers; }
  bool updated() const { return deleter.kind() == StampKind::kUpdated || deleter.kind() == StampKind::kUpdatedKey; }
  // Deleted because an update of a partition key put its new version into another relation: `next` names no place.
  bool moved() const { return deleter.kind() == StampKind::kDeleted && !next().valid(); }
  bool ended() const { return updated() || deleter.kind() == StampKind::kDeleted; }
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
