// Rows between PostgreSQL's tuples and the engine's row images.
#include "extension/pg/runtime/backend.hpp"
#include "extension/pg/tableam/table_am.hpp"

namespace gcl {

using engine::RowHeader;
using engine::RowTxnKind;
using engine::Tid;

namespace {

bool is_mine(engine::TxnId id) {
  engine::TxnSystem* txns = attached_txns();
  return txns != nullptr && txns->current().is_mine(id);
}

TransactionId shown_xmin(const RowHeader& row) {
  if (row.creator.kind() == RowTxnKind::kInserted && is_mine(row.creator.id())) return GetTopTransactionIdIfAny();
  return FrozenTransactionId;
}

// The transaction that ended or locked the version, if it is this one.
TransactionId shown_xmax(const RowHeader& row) {
  if (row.deleter.kind() != RowTxnKind::kNone && is_mine(row.deleter.id())) return GetTopTransactionIdIfAny();
  return InvalidTransactionId;
}

}  // namespace

void lay_header(std::byte* row, Tid tid) {
  RowHeader header;
  memcpy(&header, row, sizeof header);
  const bool has_null = header.flags() & engine::kHasNull;
  const uint16_t natts = header.natts();
  HeapTupleHeader to = reinterpret_cast<HeapTupleHeader>(row);
  const TransactionId xmin = shown_xmin(header);
  to->t_choice.t_heap.t_xmin = xmin;
  to->t_choice.t_heap.t_xmax = shown_xmax(header);
  to->t_choice.t_heap.t_field3.t_cid = header.far() ? FirstCommandId : header.command();
  set_tid(&to->t_ctid, tid);
  to->t_infomask2 = natts;
  // HASVARWIDTH is only a licence to look for variable-width attributes: always safe to give.
  to->t_infomask =
      uint16(HEAP_HASVARWIDTH | HEAP_XMAX_INVALID | (has_null ? HEAP_HASNULL : 0) |
             (header.out_of_line() ? HEAP_HASEXTERNAL : 0) | (xmin == FrozenTransactionId ? HEAP_XMIN_FROZEN : 0));
  to->t_hoff = uint8(MAXALIGN(SizeofHeapTupleHeader + (has_null ? BITMAPLEN(natts) : 0)));
}

void point_tuple(Relation rel, std::byte* laid, uint32_t bytes, Tid tid, HeapTuple tuple) {
  tuple->t_len = bytes;
  set_tid(&tuple->t_self, tid);
  tuple->t_tableOid = RelationGetRelid(rel);
  tuple->t_data = reinterpret_cast<HeapTupleHeader>(laid);
}

namespace {

void store_laid_copy(Relation rel, std::byte* row, uint32_t bytes, Tid tid, TupleTableSlot* slot) {
  ExecClearTuple(slot);
  HeapTupleData laid;
  point_tuple(rel, row, bytes, tid, &laid);
  MemoryContext old = MemoryContextSwitchTo(slot->tts_mcxt);
  HeapTuple copy = heap_copytuple(&laid);
  MemoryContextSwitchTo(old);
  ExecForceStoreHeapTuple(copy, slot, true);
  slot->tts_tableOid = RelationGetRelid(rel);
  slot->tts_tid = laid.t_self;
}

}  // namespace

void lay_tuple(Relation rel, std::byte* row, uint32_t bytes, Tid tid, HeapTuple tuple) {
  lay_header(row, tid);
  point_tuple(rel, row, bytes, tid, tuple);
}

void store_laid(Relation rel, std::byte* row, uint32_t bytes, Tid tid, TupleTableSlot* slot) {
  if (!TTS_IS_HEAPTUPLE(slot)) return store_laid_copy(rel, row, bytes, tid, slot);
  // ExecStoreHeapTuple() without its two clearings: a scan does this for every row.
  if (TTS_SHOULDFREE(slot)) ExecClearTuple(slot);
  auto* heap_slot = reinterpret_cast<HeapTupleTableSlot*>(slot);
  point_tuple(rel, row, bytes, tid, &heap_slot->tupdata);
  heap_slot->tuple = &heap_slot->tupdata;
  heap_slot->off = 0;
  slot->tts_nvalid = 0;
  slot->tts_flags &= uint16(~TTS_FLAG_EMPTY);
  slot->tts_tid = heap_slot->tupdata.t_self;
  slot->tts_tableOid = heap_slot->tupdata.t_tableOid;
}

void store_row(Relation rel, std::byte* row, uint32_t bytes, Tid tid, TupleTableSlot* slot) {
  lay_header(row, tid);
  store_laid(rel, row, bytes, tid, slot);
}

void store_copy(Relation rel, std::byte* row, uint32_t bytes, Tid tid, TupleTableSlot* slot) {
  lay_header(row, tid);
  store_laid_copy(rel, row, bytes, tid, slot);
}

engine::RowImage image_of(HeapTuple tuple) {
  const HeapTupleHeader data = tuple->t_data;
  return {.body = reinterpret_cast<const std::byte*>(data) + SizeofHeapTupleHeader,
          .body_bytes = uint32_t(tuple->t_len - SizeofHeapTupleHeader),
          .natts = uint16_t(HeapTupleHeaderGetNatts(data)),
          .has_null = (data->t_infomask & HEAP_HASNULL) != 0,
          .out_of_line = HeapTupleHasExternal(tuple)};
}

RowSource row_of(Relation rel, TupleTableSlot* slot, CommandId command, HeapTuple old) {
  RowSource source{};
  source.tuple = ExecFetchSlotHeapTuple(slot, false, &source.free_tuple);
  if (needs_toasting(source.tuple, old)) {
    HeapTuple fitting = toast_row(rel, source.tuple, old, command, &source.out_of_line);
    if (fitting != source.tuple) {
      if (source.free_tuple) pfree(source.tuple);
      source.tuple = fitting;
      source.free_tuple = true;
    }
  }
  if (source.tuple->t_len > kTupleBytesMax)
    ereport(ERROR, errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
            errmsg("row is too big: size %zu, maximum size %zu", Size(source.tuple->t_len), Size(kTupleBytesMax)));
  source.image = image_of(source.tuple);
  return source;
}

// A scan's row is the scan's: only a copy of it may get another header.
void set_system_columns(Relation rel, TupleTableSlot* slot, Tid tid, CommandId cid, bool was_locked) {
  slot->tts_tableOid = RelationGetRelid(rel);
  set_tid(&slot->tts_tid, tid);
  if (!TTS_IS_HEAPTUPLE(slot)) return;
  if (!TTS_SHOULDFREE(slot)) ExecMaterializeSlot(slot);
  HeapTuple tuple = reinterpret_cast<HeapTupleTableSlot*>(slot)->tuple;
  tuple->t_self = slot->tts_tid;
  tuple->t_tableOid = slot->tts_tableOid;
  HeapTupleHeader header = tuple->t_data;
  header->t_infomask = uint16((header->t_infomask & ~HEAP_XACT_MASK) | HEAP_XMAX_INVALID);
  header->t_infomask2 = uint16(header->t_infomask2 & ~HEAP2_XACT_MASK);
  header->t_choice.t_heap.t_xmin = GetTopTransactionIdIfAny();
  header->t_choice.t_heap.t_xmax = was_locked ? GetTopTransactionIdIfAny() : InvalidTransactionId;
  header->t_choice.t_heap.t_field3.t_cid = cid;
  header->t_ctid = slot->tts_tid;
}

void done_with(RowSource& source) {
  if (source.free_tuple) pfree(source.tuple);
  list_free_deep(source.out_of_line.stored);
  list_free_deep(source.out_of_line.replaced);
}

namespace {

alignas(8) std::byte buffer[engine::kRowBytesMax];
FetchedVersion in_buffer;

}  // namespace

std::byte* row_buffer() {
  forget_fetched();
  return buffer;
}

void note_fetched(Relation rel, Tid tid, uint32_t bytes, const RowHeader& header) {
  in_buffer = {RelationGetRelid(rel), MyProc->lxid, tid, bytes, header, buffer};
}

void forget_fetched() { in_buffer.tid = {}; }

const FetchedVersion* fetched_version(Relation rel, Tid tid) {
  const bool is_it =
      in_buffer.tid == tid && in_buffer.relid == RelationGetRelid(rel) && in_buffer.transaction == MyProc->lxid;
  return is_it ? &in_buffer : nullptr;
}

}  // namespace gcl
