// Single rows by TID, and through index entries.
#include <bit>

#include "extension/pg/runtime/backend.hpp"
#include "extension/pg/runtime/serializable.hpp"
#include "extension/pg/tableam/table_am.hpp"
#include "extension/pg/txn/query_start.hpp"
#include "extension/pg/txn/snapshots.hpp"

namespace gcl {

using engine::RowRead;
using engine::Tid;

namespace {

struct Fetch {
  IndexFetchTableData base;  // first: PostgreSQL's view
  engine::Heap* heap;
  engine::Intent intent;
  MemoryContext context;
  // The row found last.  As large as rows have been: a buffer for the largest row would be more than a memory context
  // keeps, and each look-up would have it allocated and freed.
  std::byte* row;
  uint32_t room;
};

constexpr uint32_t kFirstRoom = 256;

// Where a fetch reads a row.  Not row_buffer(): a caller with a row there may look up others, of its TOAST relation.
alignas(8) std::byte fetched[engine::kRowBytesMax];

// The version that is in `fetched`, as it was read (tableam.found-version-read-once).
struct Found {
  Oid relid;
  LocalTransactionId transaction;
  Tid tid;  // invalid: none
  uint32_t bytes;
} found;

// The row that was read, in memory of the fetch.
std::byte* keep_row(Fetch& fetch, uint32_t bytes) {
  if (fetch.room < bytes) {
    const uint32_t room = Max(kFirstRoom, std::bit_ceil(bytes));
    if (fetch.row != nullptr) pfree(fetch.row);
    fetch.row = nullptr;
    fetch.room = 0;
    fetch.row = static_cast<std::byte*>(MemoryContextAlloc(fetch.context, room));
    fetch.room = room;
  }
  memcpy(fetch.row, fetched, bytes);
  return fetch.row;
}

// Whether the query that was started last changes or locks rows, and waits for those.  Another one may be running: a
// hint.
bool query_writes = false;

bool skips_locked(const PlannedStmt* plan) {
  ListCell* cell;
  foreach (cell, plan->rowMarks)
    if (lfirst_node(PlanRowMark, cell)->waitPolicy == LockWaitSkip) return true;
  return false;
}

}  // namespace

static void note_query(const QueryStart& query) {
  const PlannedStmt* plan = query.plan;
  forget_fetched();
  forget_found();
  query_writes = plan->commandType != CMD_SELECT || plan->hasModifyingCTE;
  // With SKIP LOCKED it would wait for readers of pages whose rows it can leave out.
  if (!query_writes && plan->rowMarks != NIL) query_writes = !skips_locked(plan);
  note_row_marks(plan);
}

void install_query_intents() { call_at_query_start(note_query); }

engine::Intent intent_with(Relation rel) {
  const bool writes = query_writes && (CheckRelationLockedByMe(rel, RowExclusiveLock, false) ||
                                       CheckRelationLockedByMe(rel, RowShareLock, false));
  return writes ? engine::Intent::kWrite : engine::Intent::kRead;
}

IndexFetchTableData* gcl_index_fetch_begin(Relation rel) {
  engine::Heap& heap = heap_of(rel);
  count_in();  // the TIDs of a look-up for duplicates are kept longer than its snapshot says
  Fetch* fetch = static_cast<Fetch*>(palloc(sizeof(Fetch)));
  fetch->base.rel = rel;
  fetch->heap = &heap;
  fetch->intent = intent_with(rel);
  fetch->context = CurrentMemoryContext;
  fetch->row = nullptr;
  fetch->room = 0;
  return &fetch->base;
}

void gcl_index_fetch_reset(IndexFetchTableData*) {}
void gcl_index_fetch_end(IndexFetchTableData* data) {
  Fetch* fetch = reinterpret_cast<Fetch*>(data);
  if (fetch->row != nullptr) pfree(fetch->row);
  pfree(fetch);
}

bool gcl_index_fetch_tuple(IndexFetchTableData* data, ItemPointer tid, Snapshot snapshot, TupleTableSlot* slot,
                           bool* call_again, bool* all_dead) {
  Fetch& fetch = *reinterpret_cast<Fetch*>(data);
  *call_again = false;
  if (all_dead != nullptr) *all_dead = false;
  const engine::Snapshot seen = engine_snapshot(snapshot);
  // The slot may still point to the row of the last call.
  ExecClearTuple(slot);
  forget_found();
  const RowRead read =
      *until_done(data->rel, [&] { return fetch.heap->fetch_chain(tid_of(tid), seen, fetched, fetch.intent); });
  if (!read.found && !read.waited) {
    if (all_dead != nullptr) *all_dead = *until_done(data->rel, [&] { return fetch.heap->dead_to_all(tid_of(tid)); });
    return false;
  }
  // The caller starts over when it has waited for the row's transaction; here it need not wait any more.
  if (read.waited) snapshot->xmax = FrozenTransactionId;
  set_tid(tid, read.tid);
  // A deferred check of a unique key goes on with the row when it has ended the fetch.
  if (snapshot->snapshot_type == SNAPSHOT_SELF)
    store_copy(data->rel, fetched, read.bytes, read.tid, slot);
  else
    store_row(data->rel, keep_row(fetch, read.bytes), read.bytes, read.tid, slot);
  if (snapshot->snapshot_type == SNAPSHOT_MVCC)
    found = {RelationGetRelid(data->rel), MyProc->lxid, read.tid, read.bytes};
  return true;
}

void forget_found() { found.tid = {}; }

namespace {

bool is_found(Relation rel, Tid tid) {
  return found.tid == tid && found.relid == RelationGetRelid(rel) && found.transaction == MyProc->lxid;
}

}  // namespace

bool gcl_tuple_fetch_row_version(Relation rel, ItemPointer tid, Snapshot snapshot, TupleTableSlot* slot) {
  engine::Heap& heap = heap_of(rel);
  const engine::Snapshot seen = engine_snapshot(snapshot);
  // Mostly the row that an UPDATE or DELETE has found: for each of them, to look for the lock would take too long.
  const engine::Intent intent = query_writes ? engine::Intent::kWrite : engine::Intent::kRead;
  std::byte* const row = row_buffer();
  RowRead read;
  if (seen.kind == engine::SnapshotKind::kAny && is_found(rel, tid_of(tid))) {
    memcpy(row, fetched, found.bytes);
    read = {.found = true, .tid = found.tid, .bytes = found.bytes};
  } else {
    read = *until_done(rel, [&] { return heap.fetch(tid_of(tid), seen, row, intent); });
  }
  if (!read.found) return false;
  engine::RowHeader header;
  memcpy(&header, row, sizeof header);
  store_copy(rel, row, read.bytes, read.tid, slot);
  note_fetched(rel, read.tid, read.bytes, header);
  return true;
}

bool gcl_tuple_tid_valid(TableScanDesc scan, ItemPointer tid) {
  if (!ItemPointerIsValid(tid)) return false;
  engine::Heap& heap = heap_of(scan->rs_rd);
  return *until_done(scan->rs_rd, [&] { return heap.tid_valid(tid_of(tid)); });
}

void gcl_tuple_get_latest_tid(TableScanDesc scan, ItemPointer tid) {
  engine::Heap& heap = heap_of(scan->rs_rd);
  const engine::Snapshot seen = engine_snapshot(scan->rs_snapshot);
  set_tid(tid, *until_done(scan->rs_rd, [&] { return heap.latest(tid_of(tid), seen); }));
}

bool gcl_tuple_satisfies_snapshot(Relation rel, TupleTableSlot* slot, Snapshot snapshot) {
  engine::Heap& heap = heap_of(rel);
  const engine::Snapshot seen = engine_snapshot(snapshot);
  const Tid tid = tid_of(&slot->tts_tid);
  return *until_done(rel, [&] { return heap.satisfies(tid, seen); });
}

TransactionId gcl_index_delete_tuples(Relation, TM_IndexDeleteOp*) {
  not_supported("deletion of index entries by the server's own index code", nullptr);
}

}  // namespace gcl
