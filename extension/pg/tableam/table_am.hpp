// The table access method `gcl`: PostgreSQL's callbacks over engine::Heap.
//
// tableam.rows-as-heap-tuples: Rows leave as HeapTuples (TTSOpsHeapTuple). xmin shown is the current xid for rows of
//     the own transaction and FrozenTransactionId otherwise: ON CONFLICT and referential checks ask. xmax is the
//     current xid for rows that the own transaction has ended or locked, otherwise 0.
// tableam.tid-names-version: A TID names one version until the end of the transaction (heap.tid-names-version), as
//     the executor assumes.
// tableam.large-values-toasted: Large values are compressed or stored out of line on the way in (toast.hpp); rows leave
//     with pointers to them.
// tableam.old-version-read-once: An update compares the new version with the one that the executor has fetched for it
//     just before (FetchedVersion), and does not read that again: within a query a TID names one version, whose body
//     never changes.  A use of the row buffer, and a query that starts, have it forgotten.
// tableam.found-version-read-once: A version that a scan has just found by an index is not read again when the executor
//     fetches it to replace it.  The next look-up, a query that starts, and whatever changes or locks a row have it
//     forgotten: its header would say so.
// tableam.speculative-row-taken-back: A row of ON CONFLICT may be taken back from tuple_insert_speculative to
//     tuple_complete_speculative, or to the end of its savepoint or transaction by ERROR; a session that meets it waits
//     for that alone (txn.speculation-names-row).
#pragma once

#include "extension/engine/heap/heap.hpp"
#include "extension/pg/boundary/pg.hpp"
#include "extension/pg/runtime/gcl_table.hpp"
#include "extension/pg/tableam/toast.hpp"

extern "C" {
#include "nodes/execnodes.h"
}

namespace gcl {

extern bool preloaded;  // gcl was in shared_preload_libraries

const TableAmRoutine* table_am();

// ERROR feature_not_supported: `what` cannot be done with gcl tables; `hint` may be null.
[[noreturn]] void not_supported(const char* what, const char* hint);

// --- rows (row.cpp) --------------------------------------------------------------------------------------------------
inline engine::Tid tid_of(ItemPointer tid) {
  return {ItemPointerGetBlockNumberNoCheck(tid), ItemPointerGetOffsetNumberNoCheck(tid)};
}
inline void set_tid(ItemPointer to, engine::Tid tid) { ItemPointerSet(to, tid.block, tid.offset); }
// Lays PostgreSQL's tuple header over a private copy of a row, in place: once per copy, as the row's own header is
// gone.
void lay_header(std::byte* row, engine::Tid tid);
// The same, and points `tuple` to it.
void lay_tuple(Relation rel, std::byte* row, uint32_t bytes, engine::Tid tid, HeapTuple tuple);
// A row in `row` becomes the slot's tuple, which points to it: the row must outlive the slot's use of it.
void store_row(Relation rel, std::byte* row, uint32_t bytes, engine::Tid tid, TupleTableSlot* slot);
// The same for a copy that has its header already.
void store_laid(Relation rel, std::byte* row, uint32_t bytes, engine::Tid tid, TupleTableSlot* slot);
// As store_row(), but copied into the slot.
void store_copy(Relation rel, std::byte* row, uint32_t bytes, engine::Tid tid, TupleTableSlot* slot);
// The largest tuple, by t_len: PostgreSQL's header takes the place of the engine's.
inline constexpr uint32_t kTupleBytesMax = engine::kRowBytesMax;
static_assert(engine::kRowHeaderBytes == SizeofHeapTupleHeader);
// A tuple as the engine takes it; points into it.
engine::RowImage image_of(HeapTuple tuple);
// The row of a slot, that `command` inserts, or puts in the place of `old`.
struct RowSource {
  engine::RowImage image;
  HeapTuple tuple;
  bool free_tuple;
  OutOfLine out_of_line;
};
RowSource row_of(Relation rel, TupleTableSlot* slot, CommandId command, HeapTuple old = nullptr);
void done_with(RowSource& source);
// The slot's row is stored at `tid` now: RETURNING and triggers may ask for its system columns.  `was_locked`: it
// replaces a row that this transaction had locked, which xmax shows, as heap's does.
void set_system_columns(Relation rel, TupleTableSlot* slot, engine::Tid tid, CommandId cid, bool was_locked);
// Of this backend, for one row; overwritten by the next use.
std::byte* row_buffer();
// The version that row_buffer() has, laid, and its header of before (tableam.old-version-read-once).
struct FetchedVersion {
  Oid relid;
  LocalTransactionId transaction;
  engine::Tid tid;  // invalid: none
  uint32_t bytes;
  engine::RowHeader header;
  std::byte* laid;
};
void note_fetched(Relation rel, engine::Tid tid, uint32_t bytes, const engine::RowHeader& header);
void forget_fetched();
void forget_found();                                                   // (tableam.found-version-read-once)
const FetchedVersion* fetched_version(Relation rel, engine::Tid tid);  // null: it must be read
// Points `tuple` to what has been laid.
void point_tuple(Relation rel, std::byte* laid, uint32_t bytes, engine::Tid tid, HeapTuple tuple);

// What a page of the table is read for: a query that changes or locks rows is about to write those of the tables it has
// locked for that.
void install_query_intents();  // from _PG_init
engine::Intent intent_with(Relation rel);

// --- callbacks by file -----------------------------------------------------------------------------------------------
// scan.cpp
TableScanDesc gcl_scan_begin(Relation, Snapshot, int, ScanKeyData*, ParallelTableScanDesc, uint32);
void gcl_scan_end(TableScanDesc);
void gcl_scan_rescan(TableScanDesc, ScanKeyData*, bool, bool, bool, bool);
bool gcl_scan_getnextslot(TableScanDesc, ScanDirection, TupleTableSlot*);
bool gcl_scan_bitmap_next_block(TableScanDesc, TBMIterateResult*);
bool gcl_scan_bitmap_next_tuple(TableScanDesc, TBMIterateResult*, TupleTableSlot*);
bool gcl_scan_analyze_next_block(TableScanDesc, BlockNumber, BufferAccessStrategy);
bool gcl_scan_analyze_next_tuple(TableScanDesc, TransactionId, double*, double*, TupleTableSlot*);
bool gcl_scan_sample_next_block(TableScanDesc, SampleScanState*);
bool gcl_scan_sample_next_tuple(TableScanDesc, SampleScanState*, TupleTableSlot*);
// fetch.cpp
IndexFetchTableData* gcl_index_fetch_begin(Relation);
void gcl_index_fetch_reset(IndexFetchTableData*);
void gcl_index_fetch_end(IndexFetchTableData*);
bool gcl_index_fetch_tuple(IndexFetchTableData*, ItemPointer, Snapshot, TupleTableSlot*, bool*, bool*);
bool gcl_tuple_fetch_row_version(Relation, ItemPointer, Snapshot, TupleTableSlot*);
bool gcl_tuple_tid_valid(TableScanDesc, ItemPointer);
void gcl_tuple_get_latest_tid(TableScanDesc, ItemPointer);
bool gcl_tuple_satisfies_snapshot(Relation, TupleTableSlot*, Snapshot);
TransactionId gcl_index_delete_tuples(Relation, TM_IndexDeleteOp*);
// write.cpp
void gcl_tuple_insert(Relation, TupleTableSlot*, CommandId, int, BulkInsertStateData*);
void gcl_tuple_insert_speculative(Relation, TupleTableSlot*, CommandId, int, BulkInsertStateData*, uint32);
void gcl_tuple_complete_speculative(Relation, TupleTableSlot*, uint32, bool);
void gcl_multi_insert(Relation, TupleTableSlot**, int, CommandId, int, BulkInsertStateData*);
TM_Result gcl_tuple_delete(Relation, ItemPointer, CommandId, Snapshot, Snapshot, bool, TM_FailureData*, bool);
TM_Result gcl_tuple_update(Relation, ItemPointer, TupleTableSlot*, CommandId, Snapshot, Snapshot, bool, TM_FailureData*,
                           LockTupleMode*, bool*);
TM_Result gcl_tuple_lock(Relation, ItemPointer, Snapshot, TupleTableSlot*, CommandId, LockTupleMode, LockWaitPolicy,
                         uint8, TM_FailureData*);
// relation.cpp
void gcl_relation_set_new_filenode(Relation, const RelFileNode*, char, TransactionId*, MultiXactId*);
void gcl_relation_nontransactional_truncate(Relation);
void gcl_relation_copy_data(Relation, const RelFileNode*);
void gcl_relation_copy_for_cluster(Relation, Relation, Relation, bool, TransactionId, TransactionId*, MultiXactId*,
                                   double*, double*, double*);
uint64 gcl_relation_size(Relation, ForkNumber);
void gcl_relation_estimate_size(Relation, int32*, BlockNumber*, double*, double*);
// vacuum.cpp, index_build.cpp
void gcl_relation_vacuum(Relation, struct VacuumParams*, BufferAccessStrategy);
double gcl_index_build_range_scan(Relation, Relation, struct IndexInfo*, bool, bool, bool, BlockNumber, BlockNumber,
                                  IndexBuildCallback, void*, TableScanDesc);
void gcl_index_validate_scan(Relation, Relation, struct IndexInfo*, Snapshot, struct ValidateIndexState*);

}  // namespace gcl
