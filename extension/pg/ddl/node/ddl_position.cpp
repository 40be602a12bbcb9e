#include "extension/pg/ddl/node/ddl_position.hpp"

#include <algorithm>
#include <span>

#include "extension/pg/ddl/node/ddl_node_state.hpp"

extern "C" {
#include "access/generic_xlog.h"
#include "access/transam.h"
#include "access/xlog.h"
#include "access/xlogutils.h"
#include "catalog/pg_tablespace_d.h"
#include "catalog/storage_xlog.h"
#include "storage/bufmgr.h"
#include "storage/ipc.h"
#include "storage/procarray.h"
#include "storage/smgr.h"
#include "utils/rel.h"
#include "utils/resowner.h"
}

namespace gcl {
namespace {

// In pg_global.  OIDs below 10,000 are given out by PostgreSQL's developers alone; version 15 does not use this one.
constexpr Oid kPositions = 9700;
constexpr RelFileNode kPositionsFile{GLOBALTABLESPACE_OID, InvalidOid, kPositions};

struct Entry {
  Oid database;
  bool used;
  TransactionId transaction;  // that makes `after` count; invalid: it does
  DdlPosition before, after;
};

constexpr uint64_t kEntries = (BLCKSZ - MAXALIGN(SizeOfPageHeaderData)) / sizeof(Entry);  // on a page

std::span<Entry, kEntries> entries_of(Page page) {
  return std::span<Entry, kEntries>(reinterpret_cast<Entry*>(PageGetContents(page)), kEntries);
}

bool is_none(DdlPosition position) { return position.applied == 0 && position.extension == 0; }
bool has_ended(const Entry& entry) {
  return !TransactionIdIsValid(entry.transaction) || !TransactionIdIsInProgress(entry.transaction);
}
// The transaction of one that was running when the server died is not known to have committed.
DdlPosition counting(const Entry& entry) {
  const bool done = !TransactionIdIsValid(entry.transaction) || TransactionIdDidCommit(entry.transaction);
  return done ? entry.after : entry.before;
}
bool is_free(const Entry& entry) { return !entry.used || (has_ended(entry) && is_none(counting(entry))); }

Entry resolved(const Entry& entry) {
  const DdlPosition position = counting(entry);
  return {entry.database, !is_none(position), InvalidTransactionId, position, position};
}

// Releases what an ERROR has left pinned.
void release_owner(int, Datum owner) {
  ResourceOwnerRelease(reinterpret_cast<ResourceOwner>(DatumGetPointer(owner)), RESOURCE_RELEASE_BEFORE_LOCKS, false,
                       true);
}

// Buffers are pinned for a resource owner, and a worker between two transactions has none.
class Pinning {
 public:
  Pinning() : callers_(CurrentResourceOwner) {
    static ResourceOwner own = nullptr;
    if (callers_ != nullptr) return;
    if (own == nullptr) {
      own = ResourceOwnerCreate(nullptr, "gcl ddl position");
      before_shmem_exit(release_owner, PointerGetDatum(own));
    }
    CurrentResourceOwner = own;
  }
  ~Pinning() { CurrentResourceOwner = callers_; }
  Pinning(const Pinning&) = delete;
  Pinning& operator=(const Pinning&) = delete;

 private:
  ResourceOwner callers_;
};

// The file is never removed.
bool file_exists() {
  static bool exists = false;
  if (!exists) exists = smgrexists(smgropen(kPositionsFile, InvalidBackendId), MAIN_FORKNUM);
  return exists;
}

BlockNumber blocks() {
  return file_exists() ? smgrnblocks(smgropen(kPositionsFile, InvalidBackendId), MAIN_FORKNUM) : 0;
}

// Locked.
Buffer read_block(BlockNumber block, int lock) {
  Buffer buffer = ReadBufferWithoutRelcache(kPositionsFile, MAIN_FORKNUM, block, RBM_NORMAL, nullptr, true);
  LockBuffer(buffer, lock);
  return buffer;
}

// REQUIRES: the writers' lock.
void add_block() {
  if (!file_exists()) {
    smgrcreate(smgropen(kPositionsFile, InvalidBackendId), MAIN_FORKNUM, false);
    log_smgrcreate(&kPositionsFile, MAIN_FORKNUM);
  }
  ReleaseBuffer(ReadBufferWithoutRelcache(kPositionsFile, MAIN_FORKNUM, P_NEW, RBM_NORMAL, nullptr, true));
}

// Lets `change` change the entries of a block, under WAL.  Returns where that record ends.
template <class Change>
XLogRecPtr change_block(Buffer buffer, Change change) {
  Relation relation = CreateFakeRelcacheEntry(kPositionsFile);
  GenericXLogState* log = GenericXLogStart(relation);
  const bool fresh = PageIsNew(BufferGetPage(buffer));
  Page page = GenericXLogRegisterBuffer(log, buffer, fresh ? GENERIC_XLOG_FULL_IMAGE : 0);
  if (fresh) {
    PageInit(page, BLCKSZ, 0);
    reinterpret_cast<PageHeader>(page)->pd_lower = reinterpret_cast<PageHeader>(page)->pd_upper;  // all of it is used
  }
  change(entries_of(page));
  const XLogRecPtr end = GenericXLogFinish(log);
  FreeFakeRelcacheEntry(relation);
  return end;
}

struct Place {
  BlockNumber block;
  uint64_t index;
};

// The first entry that `wanted` is true for.
template <class Wanted>
bool find_place(Wanted wanted, Place* place, Entry* found) {
  const BlockNumber end = blocks();
  for (BlockNumber block = 0; block < end; ++block) {
    Buffer buffer = read_block(block, BUFFER_LOCK_SHARE);
    const bool fresh = PageIsNew(BufferGetPage(buffer));
    const auto entries = entries_of(BufferGetPage(buffer));
    const auto entry = std::find_if(entries.begin(), entries.end(), wanted);  // zeroes are an unused one
    const bool is_here = fresh ? wanted(Entry{}) : entry != entries.end();
    if (is_here) *found = fresh ? Entry{} : *entry;
    UnlockReleaseBuffer(buffer);
    *place = {block, fresh ? 0 : uint64_t(entry - entries.begin())};
    if (is_here) return true;
  }
  return false;
}

bool find_entry(Oid database, Place* place, Entry* found) {
  return find_place([database](const Entry& entry) { return entry.used && entry.database == database; }, place, found);
}

// REQUIRES: the writers' lock.
Place free_entry() {
  Place place{};
  Entry unused;
  if (find_place(is_free, &place, &unused)) return place;
  add_block();
  return {blocks() - 1, 0};
}

// Returns where the record of it ends.
template <class Next>
XLogRecPtr replace_entry(Oid database, Next next) {
  const Pinning pinning;
  LWLockAcquire(ddl_node_state().positions, LW_EXCLUSIVE);
  Place place{};
  Entry former{};
  if (!find_entry(database, &place, &former)) place = free_entry();
  Buffer buffer = read_block(place.block, BUFFER_LOCK_EXCLUSIVE);
  const XLogRecPtr end = change_block(buffer, [&](auto entries) { entries[place.index] = next(former); });
  UnlockReleaseBuffer(buffer);
  LWLockRelease(ddl_node_state().positions);
  return end;
}

// True if all have ended.
bool resolve_block(BlockNumber block) {
  Buffer buffer = read_block(block, BUFFER_LOCK_EXCLUSIVE);
  const auto is_open = [](const Entry& entry) { return TransactionIdIsValid(entry.transaction); };
  const auto can_be_resolved = [=](const Entry& entry) { return is_open(entry) && has_ended(entry); };
  bool all = true;
  if (!PageIsNew(BufferGetPage(buffer))) {
    const auto entries = entries_of(BufferGetPage(buffer));
    all = std::none_of(entries.begin(), entries.end(),
                       [=](const Entry& entry) { return is_open(entry) && !has_ended(entry); });
    if (std::any_of(entries.begin(), entries.end(), can_be_resolved)) {
      change_block(buffer, [=](auto changed) {
        for (Entry& entry : changed)
          if (can_be_resolved(entry)) entry = resolved(entry);
      });
    }
  }
  UnlockReleaseBuffer(buffer);
  return all;
}

}  // namespace

DdlPosition load_position(Oid database) {
  const Pinning pinning;
  Place place;
  Entry found;
  return find_entry(database, &place, &found) ? counting(found) : DdlPosition{};
}

void write_position(Oid database, DdlPosition position) {
  const TransactionId transaction = GetTopTransactionId();  // before the record, which has to bring it
  (void)replace_entry(database, [=](const Entry& former) {
    return Entry{database, true, transaction, former.used ? counting(former) : DdlPosition{}, position};
  });
}

void set_position(Oid database, DdlPosition position) {
  XLogFlush(replace_entry(database, [=](const Entry&) {
    return Entry{database, true, InvalidTransactionId, position, position};
  }));
}

void forget_position(Oid database) {
  if (!is_none(load_position(database))) write_position(database, {});
}

void forget_all_positions() {
  const Pinning pinning;
  LWLockAcquire(ddl_node_state().positions, LW_EXCLUSIVE);
  const BlockNumber end = blocks();
  XLogRecPtr written = InvalidXLogRecPtr;
  for (BlockNumber block = 0; block < end; ++block) {
    Buffer buffer = read_block(block, BUFFER_LOCK_EXCLUSIVE);
    written = change_block(buffer, [](auto entries) { std::fill(entries.begin(), entries.end(), Entry{}); });
    UnlockReleaseBuffer(buffer);
  }
  LWLockRelease(ddl_node_state().positions);
  XLogFlush(written);
}

bool resolve_positions() {
  const Pinning pinning;
  bool all = true;
  LWLockAcquire(ddl_node_state().positions, LW_EXCLUSIVE);
  const BlockNumber end = blocks();
  for (BlockNumber block = 0; block < end; ++block) all &= resolve_block(block);
  LWLockRelease(ddl_node_state().positions);
  return all;
}

}  // namespace gcl
