// Insert, update, delete, lock.
#include "extension/pg/runtime/backend.hpp"
#include "extension/pg/runtime/wait_tag.hpp"
#include "extension/pg/tableam/table_am.hpp"
#include "extension/pg/txn/snapshots.hpp"

extern "C" {
#include "nodes/bitmapset.h"
#include "pgstat.h"
#include "storage/proc.h"
#include "utils/datum.h"
}

namespace gcl {

using engine::RowOutcome;
using engine::RowResult;
using engine::Tid;

namespace {

// The row that was locked last: its update follows mostly, and the lock of a row of one's own making leaves no mark.
struct LastLocked {
  Oid relid;
  LocalTransactionId transaction;
  Tid tid;
  bool operator==(const LastLocked&) const = default;
} last_locked;

LastLocked name_of(Relation rel, Tid tid) { return {RelationGetRelid(rel), MyProc->lxid, tid}; }

TM_Result result_of(const RowOutcome& outcome) {
  switch (outcome.result) {
    case RowResult::kOk:
      return TM_Ok;
    case RowResult::kInvisible:
      return TM_Invisible;
    case RowResult::kSelfModified:
      return TM_SelfModified;
    case RowResult::kUpdated:
      return TM_Updated;
    case RowResult::kDeleted:
      return TM_Deleted;
    case RowResult::kBeingModified:
      return TM_BeingModified;
    case RowResult::kWouldBlock:
      return TM_WouldBlock;
  }
  pg_unreachable();
}

TM_Result conclude(const RowOutcome& outcome, ItemPointer tid, TM_FailureData* failure) {
  const TM_Result result = result_of(outcome);
  if (result == TM_Ok) return result;
  failure->traversed = false;
  failure->ctid = *tid;
  if (outcome.conflict.moved)
    ItemPointerSetMovedPartitions(&failure->ctid);
  else if (result == TM_Updated && outcome.conflict.next.valid())
    set_tid(&failure->ctid, outcome.conflict.next);
  failure->xmax = result == TM_SelfModified ? GetTopTransactionIdIfAny() : InvalidTransactionId;
  failure->cmax = result == TM_SelfModified ? outcome.conflict.cmax : InvalidCommandId;
  return result;
}

// Whether any of `columns` (as in RelationGetIndexAttrBitmap) differs between two rows.
bool any_differs(Relation rel, const Bitmapset* columns, HeapTuple old_row, HeapTuple new_row) {
  TupleDesc desc = RelationGetDescr(rel);
  for (int x = -1; (x = bms_next_member(columns, x)) >= 0;) {
    const int attribute = x + FirstLowInvalidHeapAttributeNumber;
    if (attribute == 0) return true;  // the whole row
    if (attribute < 0) {
      if (attribute != TableOidAttributeNumber) return true;
      continue;
    }
    bool old_null, new_null;
    const Datum before = heap_getattr(old_row, attribute, desc, &old_null);
    const Datum after = heap_getattr(new_row, attribute, desc, &new_null);
    if (old_null != new_null) return true;
    const Form_pg_attribute att = TupleDescAttr(desc, attribute - 1);
    if (!old_null && !datumIsEqual(before, after, att->attbyval, att->attlen)) return true;
  }
  return false;
}

struct Differences {
  bool indexed = true, key = true;
};

Differences compare_with_old(Relation rel, HeapTuple old_row, HeapTuple new_row) {
  Bitmapset* indexed = RelationGetIndexAttrBitmap(rel, INDEX_ATTR_BITMAP_ALL);
  Bitmapset* key = RelationGetIndexAttrBitmap(rel, INDEX_ATTR_BITMAP_KEY);
  const Differences found{.indexed = any_differs(rel, indexed, old_row, new_row),
                          .key = any_differs(rel, key, old_row, new_row)};
  bms_free(indexed);
  bms_free(key);
  return found;
}

// The version that a Tid names, visible or not, in the row buffer.  False: it is not there any more.  Laying the tuple
// takes the place of the row's own header.
bool read_version(Relation rel, engine::Heap& heap, Tid tid, HeapTuple to, engine::RowHeader* header = nullptr) {
  if (const FetchedVersion* fetched = fetched_version(rel, tid); fetched != nullptr) {
    if (header != nullptr) *header = fetched->header;
    point_tuple(rel, fetched->laid, fetched->bytes, tid, to);
    return true;
  }
  const engine::Snapshot any{.kind = engine::SnapshotKind::kAny};
  const engine::RowRead read = *until_done(rel, [&] { return heap.fetch(tid, any, row_buffer()); });
  if (!read.found) return false;
  if (header != nullptr) memcpy(header, row_buffer(), sizeof *header);
  lay_tuple(rel, row_buffer(), read.bytes, tid, to);
  return true;
}

// Whether this transaction had locked a version, if only by what its header says.
bool was_locked(Relation rel, Tid tid, const engine::RowHeader& header) {
  return last_locked == name_of(rel, tid) || (header.locked() && txns().current().is_mine(header.deleter.id()));
}

// The values of a row that is no more, as far as it was not stored whole.
void remove_values_of(Relation rel, engine::Heap& heap, Tid tid, CommandId command, Removal how) {
  HeapTupleData row;
  if (!read_version(rel, heap, tid, &row)) return;
  List* values = values_out_of_line(rel, &row);
  remove_out_of_line(values, command, how);
  list_free_deep(values);
}

// The command that a row is to say.
uint32_t changing_command(CommandId cid) {
  if (cid > engine::kCommandMax)
    ereport(ERROR, errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
            errmsg("a transaction can change rows of gcl tables in its first %u commands only", engine::kCommandMax));
  return cid;
}

void begin_change(Relation rel) {
  if (rel->rd_rel->relpersistence != RELPERSISTENCE_PERMANENT) not_supported("unlogged or temporary storage", nullptr);
  forget_found();
  prepare_to_write();
  count_in();
}

}  // namespace

void gcl_tuple_insert(Relation rel, TupleTableSlot* slot, CommandId cid, int, BulkInsertStateData*) {
  const uint32_t command = changing_command(cid);
  begin_change(rel);
  engine::Heap& heap = heap_of(rel);
  RowSource row = row_of(rel, slot, cid);
  const Tid tid = *until_done(rel, [&] { return heap.insert(row.image, command); });
  done_with(row);
  set_system_columns(rel, slot, tid, cid, false);
  pgstat_count_heap_insert(rel, 1);
}

// Sessions of this server wait for PostgreSQL's own lock of the token, which the executor holds meanwhile
// (tableam.speculative-row-taken-back).
void gcl_tuple_insert_speculative(Relation rel, TupleTableSlot* slot, CommandId cid, int options,
                                  BulkInsertStateData* bistate, uint32 token) {
  gcl_tuple_insert(rel, slot, cid, options, bistate);
  const uint64_t lock = speculation_lock({.xid = GetCurrentTransactionId(), .token = token});
  until_ok(rel, [&] { return txns().speculate(tid_of(&slot->tts_tid).packed(), lock); });
}

void gcl_tuple_complete_speculative(Relation rel, TupleTableSlot* slot, uint32, bool succeeded) {
  if (!succeeded) {
    engine::Heap& heap = heap_of(rel);
    const Tid tid = tid_of(&slot->tts_tid);
    remove_values_of(rel, heap, tid, GetCurrentCommandId(true), Removal::kAbandon);
    until_ok(rel, [&] { return heap.abandon(tid); });
  }
  txns().end_speculation();
}

void gcl_multi_insert(Relation rel, TupleTableSlot** slots, int nslots, CommandId cid, int, BulkInsertStateData*) {
  const uint32_t command = changing_command(cid);
  begin_change(rel);
  engine::Heap& heap = heap_of(rel);
  RowSource* rows = static_cast<RowSource*>(palloc(sizeof(RowSource) * nslots));
  engine::RowImage* images = static_cast<engine::RowImage*>(palloc(sizeof(engine::RowImage) * nslots));
  Tid* tids = static_cast<Tid*>(palloc(sizeof(Tid) * nslots));
  for (int i = 0; i < nslots; ++i) {
    rows[i] = row_of(rel, slots[i], cid);
    images[i] = rows[i].image;
  }
  for (uint32_t done = 0; done < uint32_t(nslots);) {
    CHECK_FOR_INTERRUPTS();
    const std::span<const engine::RowImage> rest{images + done, size_t(nslots) - done};
    done += *until_done(rel, [&] { return heap.multi_insert(rest, command, tids + done); });
  }
  for (int i = 0; i < nslots; ++i) {
    done_with(rows[i]);
    set_system_columns(rel, slots[i], tids[i], cid, false);
  }
  pfree(rows);
  pfree(images);
  pfree(tids);
  pgstat_count_heap_insert(rel, nslots);
}

TM_Result gcl_tuple_delete(Relation rel, ItemPointer tid, CommandId cid, Snapshot, Snapshot crosscheck, bool wait,
                           TM_FailureData* failure, bool moves) {
  const uint32_t command = changing_command(cid);
  begin_change(rel);
  engine::Heap& heap = heap_of(rel);
  const engine::Snapshot cross = crosscheck != nullptr ? engine_snapshot(crosscheck) : engine::Snapshot{};
  const engine::Snapshot* given = crosscheck != nullptr ? &cross : nullptr;
  const RowOutcome outcome = *until_done(rel, [&] { return heap.remove(tid_of(tid), command, wait, given, moves); });
  if (outcome.result == RowResult::kInvisible) elog(ERROR, "attempted to delete invisible tuple");
  if (outcome.result == RowResult::kOk) {
    pgstat_count_heap_delete(rel);
    if (outcome.out_of_line) remove_values_of(rel, heap, tid_of(tid), command, Removal::kDelete);
  }
  return conclude(outcome, tid, failure);
}

TM_Result gcl_tuple_update(Relation rel, ItemPointer otid, TupleTableSlot* slot, CommandId cid, Snapshot,
                           Snapshot crosscheck, bool wait, TM_FailureData* failure, LockTupleMode* lockmode,
                           bool* update_indexes) {
  const uint32_t command = changing_command(cid);
  begin_change(rel);
  engine::Heap& heap = heap_of(rel);
  HeapTupleData old_row;
  engine::RowHeader old_header{};
  const bool found = read_version(rel, heap, tid_of(otid), &old_row, &old_header);
  const bool locked_before = was_locked(rel, tid_of(otid), old_header);
  RowSource row = row_of(rel, slot, cid, found ? &old_row : nullptr);
  const Differences differs = found ? compare_with_old(rel, &old_row, row.tuple) : Differences{};
  *lockmode = differs.key ? LockTupleExclusive : LockTupleNoKeyExclusive;
  *update_indexes = false;
  const engine::Snapshot cross = crosscheck != nullptr ? engine_snapshot(crosscheck) : engine::Snapshot{};
  const engine::UpdateRequest request{.tid = tid_of(otid),
                                      .row = row.image,
                                      .command = command,
                                      .indexed_changed = differs.indexed,
                                      .key_changed = differs.key,
                                      .wait = wait,
                                      .crosscheck = crosscheck != nullptr ? &cross : nullptr};
  const engine::UpdateOutcome outcome = *until_done(rel, [&] { return heap.update(request); });
  const bool done = outcome.row.result == RowResult::kOk;
  remove_out_of_line(done ? row.out_of_line.replaced : row.out_of_line.stored, command,
                     done ? Removal::kDelete : Removal::kAbandon);
  done_with(row);
  if (outcome.row.result == RowResult::kInvisible) elog(ERROR, "attempted to update invisible tuple");
  if (done) {
    set_system_columns(rel, slot, outcome.tid, cid, locked_before);
    *update_indexes = !outcome.chained;
    pgstat_count_heap_update(rel, outcome.chained);
  }
  return conclude(outcome.row, otid, failure);
}

namespace {

engine::RowLock lock_of(LockTupleMode mode) {
  static_assert(int(engine::RowLock::kKeyShare) == LockTupleKeyShare && int(engine::RowLock::kShare) == LockTupleShare);
  static_assert(int(engine::RowLock::kNoKeyExclusive) == LockTupleNoKeyExclusive &&
                int(engine::RowLock::kExclusive) == LockTupleExclusive);
  return engine::RowLock(mode);
}

engine::WaitPolicy policy_of(LockWaitPolicy policy) {
  switch (policy) {
    case LockWaitSkip:
      return engine::WaitPolicy::kSkip;
    case LockWaitError:
      return engine::WaitPolicy::kError;
    case LockWaitBlock:
      break;
  }
  return engine::WaitPolicy::kBlock;
}

// A statement that does not wait for a row does not wait for its page either (runtime.no-wait-for-pages).
coherence::Result<engine::LockOutcome> lock_row(engine::Heap& heap, const engine::LockRequest& request) {
  auto outcome = heap.lock(request, row_buffer());
  if (request.policy == engine::WaitPolicy::kBlock || outcome.ok() || outcome.error() != coherence::Errc::kHeld)
    return outcome;
  return engine::LockOutcome{.row = {.result = RowResult::kWouldBlock, .conflict = {.next = request.tid}},
                             .tid = request.tid};
}

}  // namespace

TM_Result gcl_tuple_lock(Relation rel, ItemPointer tid, Snapshot, TupleTableSlot* slot, CommandId cid,
                         LockTupleMode mode, LockWaitPolicy wait_policy, uint8 flags, TM_FailureData* failure) {
  // As heap's, FOR KEY SHARE is content with a version that was updated since: the snapshot's version is what the
  // caller gets, and the newest one is locked, if they have the same key.  If they have not, READ COMMITTED goes there.
  const bool of_key = mode == LockTupleKeyShare && (flags & TUPLE_LOCK_FLAG_LOCK_UPDATE_IN_PROGRESS);
  const bool goes_there = (flags & TUPLE_LOCK_FLAG_FIND_LAST_VERSION) != 0;
  engine::LockRequest request{.tid = tid_of(tid),
                              .command = cid,
                              .mode = lock_of(mode),
                              .policy = policy_of(wait_policy),
                              .follow = of_key || goes_there,
                              .same_key = of_key};
  begin_change(rel);
  engine::Heap& heap = heap_of(rel);
  failure->traversed = false;
  engine::LockOutcome outcome = *until_done(rel, [&] { return lock_row(heap, request); });
  if (of_key && goes_there && outcome.row.result == RowResult::kUpdated) {
    request.same_key = false;
    outcome = *until_done(rel, [&] { return lock_row(heap, request); });
  }
  if (outcome.row.result == RowResult::kWouldBlock && wait_policy == LockWaitError)
    ereport(ERROR, errcode(ERRCODE_LOCK_NOT_AVAILABLE),
            errmsg("could not obtain lock on row in relation \"%s\"", RelationGetRelationName(rel)));
  if (outcome.row.result == RowResult::kOk) {
    last_locked = name_of(rel, outcome.tid);
    if (request.same_key && outcome.traversed) {
      const engine::Snapshot any{.kind = engine::SnapshotKind::kAny};
      const engine::RowRead old = *until_done(rel, [&] { return heap.fetch(request.tid, any, row_buffer()); });
      if (!old.found) elog(ERROR, "a row that the snapshot sees is gone");
      store_copy(rel, row_buffer(), old.bytes, request.tid, slot);
      return TM_Ok;
    }
    set_tid(tid, outcome.tid);
    store_copy(rel, row_buffer(), outcome.bytes, outcome.tid, slot);
    failure->traversed = outcome.traversed;
    return TM_Ok;
  }
  if (outcome.row.conflict.moved && goes_there)
    ereport(ERROR, errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
            errmsg("tuple to be locked was already moved to another partition due to concurrent update"));
  // ON CONFLICT looks into a row that was not locked: the transaction that made it decides which error is raised.
  const engine::Snapshot any{.kind = engine::SnapshotKind::kAny};
  const engine::RowRead read = *until_done(rel, [&] { return heap.fetch(outcome.tid, any, row_buffer()); });
  if (read.found) store_copy(rel, row_buffer(), read.bytes, outcome.tid, slot);
  return conclude(outcome.row, tid, failure);
}

}  // namespace gcl
