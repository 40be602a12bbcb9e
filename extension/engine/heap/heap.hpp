// Heap: tables of row versions on pages found through a relation's map.  Semantics are those of PostgreSQL's heapam
// (the codes below mirror TM_Result); ids, clock and row locks are the cluster's.
//
// heap.tid-names-version: A Tid names one version until no snapshot can see that version and VACUUM (or an in-page
//     prune) has removed it.
// heap.chained-needs-no-entry: An update that changes no indexed column and fits the page of the old version is
//     `chained`: it needs no index entry.
// Besides: engine.nothing-is-undone, engine.interrupted-changed-nothing, engine.no-guard-in-wait.
//
//   Heap heap(txns, relation);                        // per process and relation; keep it: it caches map and target
//   auto tid = heap.insert(row, cid);
//   auto found = heap.fetch_chain(*tid, snapshot, buffer);
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "extension/engine/heap/heap_page.hpp"
#include "extension/engine/heap/lock_cells.hpp"
#include "extension/engine/heap/outcome.hpp"
#include "extension/engine/heap/relation_map.hpp"
#include "extension/engine/heap/rereads.hpp"
#include "extension/engine/heap/row.hpp"
#include "extension/engine/heap/row_queue.hpp"
#include "extension/engine/heap/visibility.hpp"
#include "extension/engine/txn/host.hpp"
#include "extension/engine/txn/transaction.hpp"

namespace bufmgr {
class SpaceNote;
}

namespace engine {

struct PrunedPage;

using bufmgr::Intent;

// A relation of the pool is named by its header page; the low 32 bits of the page number stand in every page of it.
struct RelationId {
  PageId header;
  constexpr bool valid() const { return header.valid(); }
  constexpr auto operator<=>(const RelationId&) const = default;
};

enum class WaitPolicy : uint8_t { kBlock, kSkip, kError };

// A row version copied to the caller's buffer: kRowHeaderBytes of header, then PostgreSQL's tuple body.
struct RowRead {
  bool found = false;
  bool waited = false;  // not found, and it was waited for: the row as it was then, which may go on in another place
  Tid tid;              // fetch_chain: the version found, not the root
  uint32_t bytes = 0;   // header included
};

struct UpdateRequest {
  Tid tid;
  RowImage row;
  uint32_t command;
  bool indexed_changed = true;           // a column of some index changed: the new version needs entries of its own
  bool key_changed = false;              // a column that a foreign key may reference changed
  bool wait = true;                      // false: kBeingModified instead of waiting
  const Snapshot* crosscheck = nullptr;  // if given and the row is not visible to it: kUpdated
};
struct UpdateOutcome {
  RowOutcome row;
  Tid tid;               // kOk: the new version
  bool chained = false;  // kOk: no index entries are to be made
};

struct LockRequest {
  Tid tid;
  uint32_t command;
  RowLock mode = RowLock::kExclusive;
  WaitPolicy policy = WaitPolicy::kBlock;
  bool follow = false;    // go to the newest version if the row was updated (FIND_LAST_VERSION)
  bool same_key = false;  // but only while no update has changed its key
};
struct LockOutcome {
  RowOutcome row;
  Tid tid;                 // kOk: the version locked
  bool traversed = false;  // it is not the one asked for
  uint32_t bytes = 0;      // kOk: of the row, copied to the buffer
};

// What an index entry leads to, as unique checks need it.
struct RowProbe {
  enum Kind : uint8_t {
    kDead,     // no version that is or may become live
    kLive,     // a live version (committed, or of our own transaction) at `tid`
    kRunning,  // depends on `by`, which made or ended the version at `tid`: wait (DecisionWait) and probe again
  } kind = kDead;
  Tid tid;
  TxnId by;
  bool made = false;         // kRunning: `by` made the version
  bool dead_to_all = false;  // kDead: no snapshot sees, or will see, any version: the entry may be dropped
};

// A page copied to private memory, and which of its rows the caller asked for.
struct PageRows {
  alignas(8) std::byte page[coherence::kPageSize];
  uint32_t block = 0;
  uint16_t count = 0;
  uint16_t offset[kLinesMax];  // line pointers, ascending
  // Valid for the offsets above.
  std::byte* row(uint16_t line) { return page + HeapPage(page).line(line).offset(); }
  uint32_t bytes(uint16_t line) const { return HeapPage(page).line(line).bytes(); }
};

struct VacuumStats {
  bool skipped = false;  // another session vacuums the relation
  bool held = false;     // transactions hold the relation: nothing was done (serializable.housekeeping-skips)
  uint32_t pages = 0;
  uint64_t live = 0;
  uint64_t recently_dead = 0;  // dead, but some snapshot may see them
  uint64_t removed = 0;        // versions whose space was freed
  uint64_t freed = 0;          // line pointers freed
  uint64_t left = 0;           // dead line pointers that the next VACUUM will free
};

// Of a table in the pool, its own maps and its lock pages included.
struct HeapPages {
  uint64_t allocated = 0;
  uint64_t used = 0;  // what used_blocks() says, and the pages beside
};

// VACUUM's host: removes index entries, and says how fast the pages may be gone through.
class IndexCleaner {
 public:
  virtual ~IndexCleaner() = default;
  // After each page; `changed`: something was removed from it.  May sleep; kInterrupted ends the VACUUM.
  virtual Status passed_page(bool /* changed */) { return {}; }
  // Removes from every index of the relation all entries that point to one of `dead` (ascending).  No guard is held.
  // kHeld: but for some on pages that transactions hold; the VACUUM goes on, and frees none of `dead`.
  virtual Status remove(std::span<const Tid> dead) = 0;
  // Last, once; what index code must not do on two nodes at a time belongs here: VACUUM still holds its lock
  // (heap.one-vacuum).
  virtual Status finish(const VacuumStats&) { return {}; }
};

class Heap {
 public:
  // `table`: what the host calls the relation, for its queues of waiters.
  Heap(TxnSystem& txns, RelationId relation, uint32_t table = 0);
  Heap(const Heap&) = delete;
  Heap& operator=(const Heap&) = delete;
  RelationId relation() const { return relation_; }
  // Whether a transaction that holds pages (bufmgr::Session::holding()) holds those of this table which it reads, and
  // those which it writes.  Not so where nobody can look but through a row of another table (TOAST), or where a lock
  // on all nodes does as much.
  void set_holds(bool reads, bool writes) {
    holds_reads_ = reads;
    holds_writes_ = writes;
  }
  static constexpr uint32_t kNoBlock = ~uint32_t{0};

  // --- relations ----------------------------------------------------------------------------------------------------
  static Result<RelationId> create(TxnSystem& txns);
  // Makes an empty relation of a fresh page, which becomes its header.  After kInterrupted, call again.
  static Status create_at(TxnSystem& txns, PageId page);
  // Frees all pages.  REQUIRES: no session uses the relation any more.
  static Status drop(TxnSystem& txns, RelationId relation);
  // The same in steps of an extent, and also of a header page that create_at() has not come to.  True: all is gone, the
  // header last and together with `last`.  After an error, or a crash, call again.
  static Result<bool> drop_some(TxnSystem& txns, RelationId relation, bufmgr::SpaceNote* last = nullptr);

  // --- changing rows ------------------------------------------------------------------------------------------------
  // kTooLarge: the row does not fit a page (kRowBytesMax).
  Result<Tid> insert(const RowImage& row, uint32_t command);
  // Inserts a prefix of `rows` (at least one), as many as fit one page, and returns how many; call again for the rest.
  Result<uint32_t> multi_insert(std::span<const RowImage> rows, uint32_t command, Tid* tids);
  // Takes back a row that this transaction has just inserted (a speculation that lost; before end_speculation()).
  Status abandon(Tid tid);
  // `moves`: the row goes on in another relation (an update of a partition key); sessions that wait for it are told so.
  Result<RowOutcome> remove(Tid tid, uint32_t command, bool wait = true, const Snapshot* crosscheck = nullptr,
                            bool moves = false);
  Result<UpdateOutcome> update(const UpdateRequest& request);
  // The row, as locked, is copied to `to` (kRowBytesMax bytes, 8-aligned).
  Result<LockOutcome> lock(const LockRequest& request, std::byte* to);

  // --- reading rows (`to`: kRowBytesMax bytes, 8-aligned) ----------------------------------------------------------
  // The version named, if the snapshot sees it.  SnapshotKind::kDirty waits inside.  `intent`: whether the row is about
  // to be written.
  Result<RowRead> fetch(Tid tid, const Snapshot& snapshot, std::byte* to, Intent intent = Intent::kRead);
  // The version that the snapshot sees among those an index entry leads to.
  Result<RowRead> fetch_chain(Tid root, const Snapshot& snapshot, std::byte* to, Intent intent = Intent::kRead);
  Result<bool> satisfies(Tid tid, const Snapshot& snapshot);
  // The newest version that the snapshot sees, following updates from `tid` (PostgreSQL's currtid).
  Result<Tid> latest(Tid tid, const Snapshot& snapshot);
  // `learns`: the transaction learns something of the row by it, and holds it if it holds what it reads; else that is
  // for housekeeping alone (serializable.housekeeping-skips).
  Result<RowProbe> probe(Tid root, bool learns = true);
  // RowProbe::dead_to_all, and nothing else; false where that would have to be asked of the pool.
  Result<bool> dead_to_all(Tid root);
  // Whether the relation has such a place.
  Result<bool> tid_valid(Tid tid);

  // --- pages --------------------------------------------------------------------------------------------------------
  // Blocks in use.  Block numbers have holes (every node fills extents of its own): the n-th used block is block_at(n),
  // in ascending order, for n < used_blocks(), both as of the last used_blocks().
  Result<uint32_t> used_blocks();
  uint32_t block_at(uint32_t n) const { return used_[n]; }
  // A transaction that holds what it reads holds the map, too, until its end: no page comes (serializable.no-phantoms).
  // REQUIRES: before used_blocks() of a scan of all rows.
  Status hold_map();
  // The block that the page is; kNoBlock: none of this table.
  Result<uint32_t> block_of(PageId page);
  Result<HeapPages> pages();
  // Copies the page and lists the rows that the snapshot sees.
  Status read_block(uint32_t block, const Snapshot& snapshot, PageRows& to, Intent intent = Intent::kRead);
  // Copies the page and lists all row versions there are; `live[i]` and `mine[i]` describe offset[i] (index builds).
  Status all_versions(uint32_t block, PageRows& to, Liveness* live, bool* mine);
  // The same; what[i] says what offset[i] is as of `seen` (ANALYZE).
  Status sample_block(uint32_t block, const Snapshot& seen, PageRows& to, AsOf* what);
  // roots[line] = the line pointer an index entry for that row has (its own or its chain's root); 0: none.
  Status roots_of(const PageRows& rows, uint16_t* roots /* [kLinesMax + 1] */);

  // --- housekeeping -------------------------------------------------------------------------------------------------
  // Removes versions that no snapshot sees from one page, and moves the others together if only that makes room for
  // `wanted` bytes.  Returns 0 if nothing changed (or the page was busy).
  Result<uint32_t> prune(uint32_t block, uint32_t wanted = 0);
  // One session at a time, anywhere: if another vacuums, nothing is done and `skipped` is set (else one session might
  // free for new rows what the other is about to remove from the indexes).  The session takes no id for it.
  // Waits up to wait_ms for old snapshots before it frees line pointers; if that is not enough, they stay for the next
  // VACUUM.  REQUIRES: the session has no snapshot that counts.
  Result<VacuumStats> vacuum(IndexCleaner& indexes, uint32_t wait_ms);
  // What nodes have told of their changes (heap.counts-only-grow); adding tells of this one's, and returns the sums.
  Result<RelationCounts> counts();
  Result<RelationCounts> add_counts(uint64_t inserted, uint64_t updated, uint64_t deleted);

 private:
  friend class HeapScan;
  // map
  // The map, as far as this handle has read it: entries never change once set (an extent stays where it is).
  struct MapPage {
    PageId page;
    NodeId owner;
    std::vector<PageId> extents;  // the first page of each; of the first one: `singles`
    std::vector<PageId> singles;
    std::vector<uint8_t> used;
    uint64_t version = 0;  // of the page when these were read; 0: never
    // The page's version when a search for that much room (in units), or more, found none there.
    uint64_t full_version = 0;
    uint32_t full_for = 0;
    // Invalid: there is none, as far as is known here.
    PageId page_of(uint32_t extent, uint32_t n) const {
      if (extent == 0) return n < singles.size() ? singles[n] : PageId{};
      return extent < extents.size() ? extents[extent] + n : PageId{};
    }
  };
  template <class Describe>
  Status list_versions(uint32_t block, PageRows& to, Describe describe);
  Result<PageId> page_of(uint32_t block);
  // Before a page is read for a snapshot, or written.  REQUIRES: no guard held.
  // Of rows that are reached by what names them: parts of the page (serializable.rows-are-parts).
  Status hold_to_read(PageId page, const Snapshot& snapshot, Intent intent, bufmgr::Parts parts = bufmgr::kWholePage);
  Status hold_to_write(PageId page, bufmgr::Parts parts);
  Status hold_to_insert(PageId page);
  ExtentPlace place_of(uint32_t block) const;  // REQUIRES: page_of(block) has found it
  Status load_map();
  Status load_own_maps();
  Status load_directory();
  Status load_map_page(MapPage& map);
  Status ensure_target(uint32_t row_bytes);
  enum class Whose : uint8_t { kOwn, kAway, kAny };
  bool searches(const MapPage& map, Whose whose) const;
  Result<uint32_t> find_free(uint32_t row_bytes, Whose whose);
  Status grow();
  Status add_map_page();
  Status note_free(uint32_t block, uint32_t free_bytes, uint32_t wanted);
  Status give_up_target(uint32_t free_bytes, uint32_t wanted);
  // changing
  struct UpdateStep;
  struct UpdateTry;
  struct CarriedLocks;
  Status judge_version(const RowHeader& row, PageId page, Tid tid, const WantedLock& wanted, const Facts& facts,
                       Holders* holders, UpdateCheck* check);
  Status judge_cells(const RowHeader& row, Tid tid, const WantedLock& wanted, const Facts& facts, Holders* holders,
                     UpdateCheck* check);
  Status judge_own_cells(Tid tid, Holders* holders, UpdateCheck* check);
  Status put_in_cell(Tid tid, RowHeader row, const Locker& locker, const Holders& holders, bufmgr::ExclusiveGuard& page,
                     bufmgr::MiniTransaction& change, UpdateCheck* check);
  Status resolve(const UpdateCheck& check, const Holders& holders, Facts& facts, WaitFor why);
  Status resolve_queued(RowQueuePosition& queue, Tid tid, const UpdateCheck& check, const Holders& holders,
                        Facts& facts, WaitFor why);
  struct BookTry;
  Status book(Tid tid, RowLock mode, Facts& facts);
  Status book_on_page(BookTry& book);
  bool stands_in_line(BookTry& book, std::span<const Locker> recorded) const;
  Status put_bookings(BookTry& book, std::span<const Tid> at, bufmgr::ExclusiveGuard& page,
                      bufmgr::MiniTransaction& change);
  Result<bool> crosschecked(const RowHeader& row, RowPlace at, const Snapshot** crosscheck);
  Result<UpdateStep> update_once(const UpdateRequest& request, TxnId id, const Facts& facts, Holders* holders,
                                 UpdateTry& update, bool may_change, UpdateOutcome* outcome);
  Result<UpdateCheck> open_carried(const Holders& holders, Tid from, Tid to, CarriedLocks* carried);
  // What pruning the page would leave, with the horizon as it was last seen.
  Status plan_prune(PageId page, uint32_t wanted, PrunedPage* to);
  Status plan_prune_of(PageId page, uint32_t wanted, bool rows, PrunedPage* to);
  Status copy_to_plan(PageId page, bool rows, std::byte* to);
  // What an update that finds its page full gets by pruning it at once, under its guard.
  enum class RoomHere : uint8_t {
    kFound,    // *to is what will be left; it has a place for the row, or has none
    kNone,     // nothing may be removed
    kStale,    // not enough, and a fresh horizon may allow more
    kUnknown,  // a status must be asked for, or rows must be moved: plan_room() says more
  };
  RoomHere room_here(bufmgr::ExclusiveGuard& page, uint32_t wanted, bool fresh, PrunedPage* to);
  // As plan_prune(); with a fresh horizon if many versions are superseded, or if without one there is no room, or most
  // stay.
  Status plan_room(PageId page, uint32_t wanted, uint32_t superseded, PrunedPage* to);
  // locking
  struct LockTry;
  Status lock_once(LockTry& lock, std::byte* to, uint32_t* bytes);
  Status record_lock(LockTry& lock, bufmgr::ExclusiveGuard& page, bufmgr::MiniTransaction& change);
  enum class OwnStep : uint8_t { kNone, kFollow, kGone, kMadeLater };
  OwnStep own_step(const LockTry& lock) const;
  Result<UpdateCheck> lock_newer(const LockTry& origin, Facts& facts);
  // reading
  Result<RowRead> read_row(Tid tid, bool chain, const Snapshot& snapshot, std::byte* to, Intent intent);
  Result<RowRead> read_copy(PageId page, Tid tid, bool chain, const Snapshot& snapshot, std::byte* to, Rereads& reads,
                            TxnId* running);
  Result<RowRead> read_versions(const bufmgr::OptimisticGuard& page, Tid tid, bool chain, const Snapshot& snapshot,
                                std::byte* to, Rereads& reads, TxnId* running);
  Result<RowRead> read_once(PageId page, Tid tid, bool chain, const Snapshot& snapshot, std::byte* to, Intent intent,
                            Rereads& reads, TxnId* running);
  Status read_page(PageId page, const Snapshot& snapshot, PageRows& to, Intent intent, Rereads& reads);
  Result<RowProbe> probe_once(PageId page, Tid root, Rereads& reads);
  Result<bool> probe_alone(PageId page, Tid root, Rereads& reads, RowProbe* found);
  void write_hint(PageId page, uint16_t number, Line line, const RowHeader& row);
  bool write_hint_in(bufmgr::SharedGuard& page, uint16_t number, Line line, const RowHeader& row);
  void write_hints_here(bufmgr::ExclusiveGuard& page, std::span<const uint16_t> lines);
  void write_hints(PageId page, const std::byte* copy, const uint16_t* lines, int count);
  // vacuum
  Result<uint32_t> free_lines(std::span<const Tid> dead);
  Status survey(uint32_t block, VacuumStats& stats, std::vector<Tid>& dead, uint32_t* free_bytes);
  Status note_free_all(uint32_t first_block, const std::vector<uint32_t>& free_bytes);
  Status note_vacuumed(const VacuumStats& stats);
  template <class Change>
  Result<RelationCounts> change_counts(Change apply);
  Status free_dead(IndexCleaner& indexes, std::vector<Tid>& dead, uint32_t wait_ms, VacuumStats& stats);

  TxnSystem& txns_;
  RelationId relation_;
  uint32_t table_;
  LockCells cells_;
  std::vector<MapPage> maps_;
  std::vector<uint32_t> used_;
  uint32_t target_ = kNoBlock;  // block this handle inserts into
  bool holds_reads_ = true, holds_writes_ = true;
};

// Sequential scan by page copies.
//
//   HeapScan scan(heap, snapshot);
//   GCL_TRY(scan.start());
//   for (uint32_t i = 0; i < scan.pages(); ++i) { GCL_TRY(scan.read(i, rows)); ... rows.count, rows.offset[] ... }
class HeapScan {
 public:
  HeapScan(Heap& heap, const Snapshot& snapshot) : heap_(heap), snapshot_(snapshot) {}
  // Decides which blocks belong to the scan: all that may hold rows the snapshot sees.  Also a rescan.
  Status start() {
    GCL_TRY(heap_.used_blocks());
    blocks_ = heap_.used_;
    return {};
  }
  uint32_t pages() const { return uint32_t(blocks_.size()); }
  Status read(uint32_t i, PageRows& to) { return heap_.read_block(blocks_[i], snapshot_, to); }

 private:
  Heap& heap_;
  Snapshot snapshot_;
  std::vector<uint32_t> blocks_;
};

}  // namespace engine
