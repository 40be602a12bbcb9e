// Lock pages: where the locks of a row version are recorded that do not find room in the version itself.
//
//   extent's map entry -> lock directory -> first lock page of a block -> next -> ...
//
// Entries name their row by its line pointer.  What makes an entry count is the row's flag (kHasLockers) and the status
// of the entry's id; nothing refers to an entry by where it is, so a place may be used again as soon as its id has
// ended.
#pragma once

#include <cstdint>

#include "bufmgr/base/page.hpp"
#include "extension/engine/heap/relation_map.hpp"
#include "extension/engine/heap/row_lock.hpp"

namespace engine {

struct LockDirectory {
  bufmgr::PageHeader header;     // type kLockCells
  uint64_t first[kExtentPages];  // page id of the block's first lock page; 0: none
};
static_assert(sizeof(LockDirectory) <= coherence::kPageSize);

struct LockEntry {
  uint64_t id;  // raw TxnId; 0: free
  uint16_t line;
  uint8_t mode;    // RowLock
  uint8_t outer;   // OuterLock
  uint32_t place;  // 0: a lock; else a booking (heap.book-after-losses)
  bool operator==(const LockEntry&) const = default;
  static LockEntry of(uint16_t line, const Locker& locker) {
    return {locker.id.raw, line, uint8_t(locker.mode), locker.outer.raw, locker.place};
  }
  Locker locker() const { return {{id}, RowLock(mode & 3), {outer}, place}; }
};
static_assert(sizeof(LockEntry) == 16);

struct LockPage {
  bufmgr::PageHeader header;  // type kLockCells
  uint64_t next;              // page id of the block's next lock page; 0: none
  uint32_t used;              // entries [0, used) may be taken
  uint32_t reserved;
  static constexpr uint32_t kEntries = (coherence::kPageSize - sizeof(bufmgr::PageHeader) - 16) / sizeof(LockEntry);
  LockEntry entry[kEntries];
};
static_assert(sizeof(LockPage) <= coherence::kPageSize);

}  // namespace engine
