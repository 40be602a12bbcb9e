#include "extension/pg/sequence/sequence_file.hpp"

#include "extension/pg/catalog/shared_relations.hpp"
#include "extension/pg/runtime/backend.hpp"
#include "extension/pg/runtime/relation_record.hpp"
#include "extension/pg/txn/deferred_free.hpp"
#include "extension/pg/txn/query_start.hpp"

extern "C" {
#include "access/relation.h"
#include "access/table.h"
#include "access/xloginsert.h"
#include "catalog/dependency.h"
#include "catalog/indexing.h"
#include "catalog/objectaddress.h"
#include "catalog/pg_am.h"
#include "catalog/pg_class.h"
#include "commands/sequence.h"
#include "executor/executor.h"
#include "storage/bufmgr.h"
#include "utils/syscache.h"
}

namespace gcl {

using coherence::PageId;
using engine::SequenceState;

namespace {

constexpr uint32 kServerMagic = 0x1717;  // of sequence.c, at the beginning of the special area

FormData_pg_sequence_data* row_on(Page page) {
  auto* header = reinterpret_cast<HeapTupleHeader>(PageGetItem(page, PageGetItemId(page, FirstOffsetNumber)));
  return reinterpret_cast<FormData_pg_sequence_data*>(reinterpret_cast<char*>(header) + header->t_hoff);
}

// A row that every snapshot sees, and that is never frozen again.
HeapTuple make_row(Relation sequence, SequenceState state) {
  Datum values[SEQ_COL_LASTCOL] = {Int64GetDatum(state.last), Int64GetDatum(0), BoolGetDatum(state.called)};
  bool nulls[SEQ_COL_LASTCOL] = {};
  HeapTuple row = heap_form_tuple(RelationGetDescr(sequence), values, nulls);
  HeapTupleHeaderSetXmin(row->t_data, FrozenTransactionId);
  HeapTupleHeaderSetXminFrozen(row->t_data);
  HeapTupleHeaderSetCmin(row->t_data, FirstCommandId);
  HeapTupleHeaderSetXmax(row->t_data, InvalidTransactionId);
  row->t_data->t_infomask |= HEAP_XMAX_INVALID;
  ItemPointerSet(&row->t_data->t_ctid, 0, FirstOffsetNumber);
  return row;
}

// The file becomes one page: the row, and `special` behind it.
void write_page(Relation sequence, SequenceState state, const void* special, uint32 bytes) {
  HeapTuple row = make_row(sequence, state);
  const bool empty = RelationGetNumberOfBlocks(sequence) == 0;
  Buffer buffer = ReadBufferExtended(sequence, MAIN_FORKNUM, empty ? P_NEW : 0, RBM_ZERO_AND_LOCK, nullptr);
  START_CRIT_SECTION();
  Page page = BufferGetPage(buffer);
  PageInit(page, BLCKSZ, bytes);
  memcpy(PageGetSpecialPointer(page), special, bytes);
  if (PageAddItem(page, reinterpret_cast<Item>(row->t_data), row->t_len, InvalidOffsetNumber, false, false) !=
      FirstOffsetNumber)
    elog(PANIC, "failed to add the row of a sequence");
  MarkBufferDirty(buffer);
  log_newpage_buffer(buffer, true);
  END_CRIT_SECTION();
  UnlockReleaseBuffer(buffer);
}

SequenceState row_of_file(Relation sequence) {
  Buffer buffer = ReadBuffer(sequence, 0);
  LockBuffer(buffer, BUFFER_LOCK_SHARE);
  const FormData_pg_sequence_data* row = row_on(BufferGetPage(buffer));
  const SequenceState state{row->last_value, row->is_called};
  UnlockReleaseBuffer(buffer);
  return state;
}

void set_access_method(Oid sequence, Oid method) {
  Relation catalog = table_open(RelationRelationId, RowExclusiveLock);
  HeapTuple tuple = SearchSysCacheCopy1(RELOID, ObjectIdGetDatum(sequence));
  if (!HeapTupleIsValid(tuple)) elog(ERROR, "cache lookup failed for sequence %u", sequence);
  auto* form = reinterpret_cast<Form_pg_class>(GETSTRUCT(tuple));
  const ObjectAddress self{RelationRelationId, sequence, 0};
  if (OidIsValid(method)) {
    const ObjectAddress needed{AccessMethodRelationId, method, 0};
    recordDependencyOn(&self, &needed, DEPENDENCY_NORMAL);
  } else {
    deleteDependencyRecordsForSpecific(RelationRelationId, sequence, DEPENDENCY_NORMAL, AccessMethodRelationId,
                                       form->relam);
  }
  form->relam = method;
  CatalogTupleUpdate(catalog, &tuple->t_self, tuple);
  heap_freetuple(tuple);
  table_close(catalog, RowExclusiveLock);
  CommandCounterIncrement();
}

PageId make_page(Relation sequence, SequenceState state) {
  const PageId page = new_pages(RelationFile::kSequence);
  until_ok(sequence, [=] { return engine::Sequence::create_at(pool(), session(), page, state); });
  return page;
}

}  // namespace

bool is_gcl_sequence(Oid relation) {
  HeapTuple tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(relation));
  if (!HeapTupleIsValid(tuple)) return false;
  const auto* form = reinterpret_cast<Form_pg_class>(GETSTRUCT(tuple));
  const bool ours = form->relkind == RELKIND_SEQUENCE && OidIsValid(form->relam);
  ReleaseSysCache(tuple);
  return ours;
}

engine::Sequence sequence_of(Relation sequence) {
  const PageId page = relation_page(sequence);
  return {pool(), session(), node_state()->leases, page};
}

SequenceState state_of_sequence(Oid oid) {
  Relation sequence = relation_open(oid, AccessShareLock);
  const SequenceState state = *until_done(sequence, [=] { return sequence_of(sequence).read(); });
  relation_close(sequence, NoLock);
  return state;
}

void move_sequence_to_pool(Oid oid, PageId page) {
  Relation sequence = relation_open(oid, AccessShareLock);
  const SequenceState state = row_of_file(sequence);
  if (!page.valid()) page = make_page(sequence, state);
  const SequenceRecord record = sequence_record(page);
  write_page(sequence, state, &record, sizeof record);
  relation_close(sequence, NoLock);
  set_access_method(oid, gcl_access_method());
}

void move_sequence_to_server(Oid oid, SequenceState state, bool coordinator) {
  set_access_method(oid, InvalidOid);
  Relation sequence = relation_open(oid, ShareRowExclusiveLock);
  if (coordinator) pages_dropped(RelationFile::kSequence, relation_page(sequence));
  RelationSetNewRelfilenode(sequence, sequence->rd_rel->relpersistence);
  write_page(sequence, state, &kServerMagic, sizeof kServerMagic);
  relation_close(sequence, NoLock);
  CommandCounterIncrement();
}

void refresh_sequence_row(Oid oid) {
  Relation sequence = try_relation_open(oid, AccessShareLock);
  if (sequence == nullptr) return;
  const SequenceState state = *until_done(sequence, [=] { return sequence_of(sequence).read(); });
  Buffer buffer = ReadBuffer(sequence, 0);
  LockBuffer(buffer, BUFFER_LOCK_EXCLUSIVE);
  FormData_pg_sequence_data* row = row_on(BufferGetPage(buffer));
  if (row->last_value != state.last || row->is_called != state.called) {
    row->last_value = state.last;
    row->is_called = state.called;
    MarkBufferDirtyHint(buffer, true);
  }
  UnlockReleaseBuffer(buffer);
  relation_close(sequence, NoLock);
}

static void refresh_what_is_read(const QueryStart& query) {
  ListCell* cell;
  if (!query.reads_sequences) return;
  foreach (cell, query.plan->rtable) {
    const RangeTblEntry* entry = static_cast<RangeTblEntry*>(lfirst(cell));
    if (entry->rtekind == RTE_RELATION && entry->relkind == RELKIND_SEQUENCE && is_gcl_sequence(entry->relid))
      refresh_sequence_row(entry->relid);
  }
}

void install_sequence_refresh() { call_at_query_start(refresh_what_is_read); }

}  // namespace gcl
