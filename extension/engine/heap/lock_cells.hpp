// LockCells: the locks recorded in a relation's lock pages, as one handle of the relation reads and writes them.
//
// heap.cells-under-row-guard: Entries of a line are added only under the exclusive guard of the heap page that has the
//     line, together with the row's flag.  So what is read under that guard is complete.  Ended entries may go at any
//     time.
// heap.lock-pages-last: Latches: heap pages first, in the order of their ids; then lock pages.  No session waits for a
//     heap page under a lock page's latch.
// heap.ended-cells-go: An entry goes only when its id has ended, or when its line is found to hold no such lock (an
//     earlier version there had it).
// heap.flag-validates-cells: Where a row's flag is not set, the entries of its line are of an earlier version in that
//     place.  A session that writes the first entry of a row drops those in the page it writes to.  One that lies in
//     another page of a long chain is taken for a lock of the new version while its transaction runs: a wait too many,
//     never one too few.
// heap.lock-pages-stay: A block's lock pages stay its own until the relation is dropped.
//
//   auto first = cells.find(block, where);          // no guard held; kNotFound: the block has none
//   ... exclusive guard on the heap page ...
//   cells.read(block, line, &lockers);
//   CellWriter writer;
//   auto open = writer.open(cells, block, puts);    // false: leave the guards, make_room(), and judge again
//   ... first write ...
//   writer.write(change);
#pragma once

#include <span>
#include <vector>

#include "bufmgr/mini_transaction.hpp"
#include "extension/engine/heap/lock_page.hpp"
#include "extension/engine/memory/growing_map.hpp"
#include "extension/engine/txn/transaction.hpp"

namespace engine {

// Where the map says what lock directory a block has.
struct ExtentPlace {
  PageId map;
  uint32_t extent;  // on that page
};

class LockCells {
 public:
  LockCells(TxnSystem& txns, PageId relation) : txns_(txns), relation_(uint32_t(relation.number())) {}

  // The block's first lock page, if this handle has met it.
  PageId known(uint32_t block) const {
    const PageId* first = first_.find(block);
    return first != nullptr ? *first : PageId{};
  }
  // Learns the block's first lock page.  kNotFound: there is none; kNoMemory.  REQUIRES: no guard held.
  Status find(uint32_t block, const ExtentPlace& where);
  // Gives some lock page of the block `entries` (at most kEntries) free places: frees those whose ids have ended, or
  // adds a page.  Other sessions may take them first.  kNoSpace, kNoMemory.  REQUIRES: no guard held.
  Status make_room(uint32_t block, const ExtentPlace& where, uint32_t entries);
  // All locks recorded for the line, ended ones included.  REQUIRES: known(block), an exclusive guard on its heap page.
  Status read(uint32_t block, uint16_t line, std::vector<Locker>* to);

  // Frees a lock page of an extent; true: it was the last, the directory, and went together with `last`.  REQUIRES: no
  // session uses the relation any more.
  static Result<bool> drop_some(TxnSystem& txns, PageId directory, bufmgr::SpaceNote& last);
  // How many there are, the directory included.
  static Result<uint64_t> pages(TxnSystem& txns, PageId directory);

 private:
  friend class CellWriter;
  Status remember(uint32_t block, PageId first);
  Result<PageId> directory_of(const ExtentPlace& where);
  Status add_directory(const ExtentPlace& where);
  Status add_first(PageId directory, uint32_t block);
  Status add_next(PageId last);
  Status add_page(PageId to, uint32_t offset);
  Result<uint32_t> sweep(PageId page, const LockPage& copy);
  Result<bool> over(const Locker& locker);

  TxnSystem& txns_;
  uint32_t relation_;
  GrowingMap<PageId> first_;  // by block
};

// What becomes of a line's entries: those of `live` stay, all others give way to `add`.  REQUIRES: an id of `add` is
// not in `live`.
struct CellPut {
  uint16_t line;
  std::span<const Locker> live;
  std::span<const Locker> add;
};

// A lock page of a block, held to take new entries.
class CellWriter {
 public:
  // False: no lock page of the block has room.  The spans must outlive write().
  // REQUIRES: an exclusive guard on the block's heap page, known(block), nothing written yet.
  Result<bool> open(LockCells& cells, uint32_t block, std::initializer_list<CellPut> puts);
  bool is_open() const { return bool(guard_); }
  // Joins the page and writes the entries.
  void write(bufmgr::MiniTransaction& change);

 private:
  bool gives_way(const LockEntry& entry) const;
  uint32_t room() const;
  bufmgr::ExclusiveGuard guard_;
  CellPut put_[2];
  int puts_ = 0;
};

}  // namespace engine
