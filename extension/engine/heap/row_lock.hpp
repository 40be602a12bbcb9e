// Row locks: which modes exclude each other, and how a lock is recorded.
//
//                    KEY SHARE  SHARE  NO KEY UPDATE  UPDATE        (x: they exclude each other)
//   KEY SHARE                                           x
//   SHARE                                   x           x
//   NO KEY UPDATE                 x         x           x           also: an update of other than key columns
//   UPDATE               x        x         x           x           also: a deletion, an update of key columns
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "extension/engine/heap/row.hpp"

namespace engine {

constexpr bool excludes(RowLock a, RowLock b) {
  constexpr uint8_t kExcluded[] = {0b1000, 0b1100, 0b1110, 0b1111};
  return kExcluded[int(a)] >> int(b) & 1;
}

// A lock as recorded, in a deleter word or a lock cell.  Whether it still counts, its id's status says.
struct Locker {
  TxnId id;
  RowLock mode = RowLock::kKeyShare;
  // The lock that id's transaction holds to its end, outside of id, a savepoint: once id is rolled back, that is what
  // is left (heap.lock-falls-to-parent).
  OuterLock outer;
  uint32_t place = 0;  // not 0: no lock, but a booking, and its place in the row's queue (heap.book-after-losses)
  bool operator==(const Locker&) const = default;
  bool booked() const { return place != 0; }
  RowLock strongest() const { return outer.held() ? std::max(mode, outer.mode()) : mode; }
};

// What the deleter word of a version locks, as long as it counts.  REQUIRES: it is not kNone.
inline Locker locker_of(const RowHeader& row) {
  RowLock mode = row.locked()                                 ? row.deleter.lock_mode()
                 : row.deleter.kind() == RowTxnKind::kUpdated ? RowLock::kNoKeyExclusive
                                                              : RowLock::kExclusive;
  return {row.deleter.id(), mode, row.deleter.outer()};
}

// Whether place `a` of a row's queue comes before `b`: places go round, and those in use at a time are few.
constexpr bool comes_before(uint32_t a, uint32_t b) { return int32_t(a - b) < 0; }

// The live locks on a version that judge() found in lock cells.
struct RecordedLocks {
  std::vector<Locker> others;  // of other transactions
  std::vector<Locker> own;
  std::vector<Locker> booked;  // bookings of other transactions (heap.book-after-losses)
  std::vector<TxnId> unknown;  // UpdateCheck::kAsk: ids whose statuses are wanted, too
};

// The live locks on a version, as judge() found them.
struct Holders {
  Locker word;                // what the deleter word stands for, if that counts; invalid id: nothing
  bool word_is_mine = false;  // `word` is of our transaction,
  bool word_lasts = false;    // and no rollback to a savepoint ends it
  bool updating = false;      // `word` is another transaction's update, under way
  int mine = -1;              // the strongest RowLock of our transaction, wherever recorded; -1: none
  uint32_t place = 0;         // of our transaction's booking; 0: none
  std::unique_ptr<RecordedLocks> cells;

  void clear() {
    word = {};
    word_is_mine = word_lasts = updating = false;
    mine = -1;
    place = 0;
    cells.reset();
  }
  bool has(RowLock mode) const { return mine >= int(mode); }
  void mine_too(RowLock mode) { mine = std::max(mine, int(mode)); }
  bool word_is_others() const { return word.id.valid() && !word_is_mine; }
  std::span<const Locker> others() const {
    return cells ? std::span<const Locker>(cells->others) : std::span<const Locker>();
  }
  std::span<const Locker> own() const {
    return cells ? std::span<const Locker>(cells->own) : std::span<const Locker>();
  }
  std::span<const Locker> booked() const {
    return cells ? std::span<const Locker>(cells->booked) : std::span<const Locker>();
  }
  bool recorded() const { return !others().empty() || !own().empty() || !booked().empty(); }
  size_t of_others() const { return others().size() + (word_is_others() ? 1 : 0); }
  // If our `id` takes the place of `word` (heap.lock-falls-to-parent):
  // Whether the lock of `word` must be in a lock cell first.
  bool word_needs_cell(TxnId id) const {
    return word_is_mine && !word_lasts && word.id < id &&
           std::ranges::none_of(own(), [&](const Locker& locker) { return locker.id == word.id; });
  }
  // What it must note: nothing about locks that a rollback of id ends, too.
  OuterLock outer_for(TxnId id) const {
    if (!word_is_mine) return {};
    return word_lasts && word.id < id ? OuterLock::of(word.strongest()) : word.outer;
  }
};

}  // namespace engine
