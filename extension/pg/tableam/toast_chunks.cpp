// Chunks: how a value lies in a TOAST relation.  Its columns are PostgreSQL's (chunk_id, chunk_seq, chunk_data), the
// size of a chunk is what four rows of a gcl page have room for.
#include "extension/pg/runtime/backend.hpp"
#include "extension/pg/runtime/stop_points.hpp"
#include "extension/pg/tableam/table_am.hpp"
#include "extension/pg/tableam/toast.hpp"

extern "C" {
#include "access/detoast.h"
#include "access/genam.h"
#include "access/heaptoast.h"
#include "access/stratnum.h"
#include "access/table.h"
#include "access/toast_internals.h"
#include "common/pg_prng.h"
#include "pgstat.h"
#include "utils/fmgroids.h"
}

namespace gcl {

using engine::RowImage;
using engine::RowResult;
using engine::Tid;

namespace {

constexpr int32 kChunkBytes = 1996;
constexpr int kChunksPerPage = 4;
constexpr uint32_t kColumns = sizeof(Oid) + sizeof(int32) + VARHDRSZ;
static_assert(bufmgr::kPageBody +
                  kChunksPerPage *
                      (engine::align8(engine::kRowHeaderBytes + 1 + kColumns + kChunkBytes) + sizeof(engine::Line)) <=
              coherence::kPageSize);

struct Chunks {
  Relation table;
  Relation* indexes;
  int count;
  int valid;  // the index to look into
};

Chunks open_chunks(Relation toast, LOCKMODE lock) {
  Chunks chunks{.table = toast, .indexes = nullptr, .count = 0, .valid = 0};
  chunks.valid = toast_open_indexes(toast, lock, &chunks.indexes, &chunks.count);
  return chunks;
}

SysScanDesc scan_value(const Chunks& chunks, Oid id, Snapshot snapshot) {
  ScanKeyData key;
  ScanKeyInit(&key, 1, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(id));
  return systable_beginscan_ordered(chunks.table, chunks.indexes[chunks.valid], snapshot, 1, &key);
}

bool is_taken(const Chunks& chunks, Oid id) {
  SysScanDesc scan = scan_value(chunks, id, SnapshotAny);
  const bool taken = systable_getnext_ordered(scan, ForwardScanDirection) != nullptr;
  systable_endscan_ordered(scan);
  return taken;
}

// Ids of one session follow each other: its entries are neighbours in the tree, on pages that its node owns.  They
// begin anywhere, so that sessions of all primaries keep apart without asking.  The server's counter of OIDs is left to
// DDL, which needs each primary in a range of its own.
Oid last_id = InvalidOid;

Oid free_id(const Chunks& chunks) {
  if (last_id == InvalidOid) last_id = pg_prng_uint32(&pg_global_prng_state);
  for (++last_id; last_id == InvalidOid || is_taken(chunks, last_id);) {
    CHECK_FOR_INTERRUPTS();
    last_id = pg_prng_uint32(&pg_global_prng_state);
  }
  return last_id;
}

HeapTuple form_chunk(Relation table, Oid id, int32 number, const char* data, int32 bytes) {
  alignas(int32) char chunk[VARHDRSZ + kChunkBytes];
  SET_VARSIZE(chunk, VARHDRSZ + bytes);
  memcpy(VARDATA(chunk), data, size_t(bytes));
  Datum values[] = {ObjectIdGetDatum(id), Int32GetDatum(number), PointerGetDatum(chunk)};
  bool nulls[] = {false, false, false};
  return heap_form_tuple(RelationGetDescr(table), values, nulls);
}

// False: another value may have that id (with UNIQUE_CHECK_PARTIAL).
bool enter_chunk(const Chunks& chunks, Oid id, int32 number, Tid at, IndexUniqueCheck check) {
  Datum values[] = {ObjectIdGetDatum(id), Int32GetDatum(number)};
  bool nulls[] = {false, false};
  ItemPointerData tid;
  set_tid(&tid, at);
  bool unique = true;
  for (int i = 0; i < chunks.count; ++i)
    unique &= index_insert(chunks.indexes[i], values, nulls, &tid, chunks.table, check, false, nullptr);
  return unique;
}

// The first chunk takes the id: of two that chose the same at the same moment one gives way.
Oid store_first(const Chunks& chunks, engine::Heap& heap, const char* data, int32 bytes, CommandId command) {
  for (;;) {
    const Oid id = free_id(chunks);
    HeapTuple tuple = form_chunk(chunks.table, id, 0, data, bytes);
    const RowImage image = image_of(tuple);
    const Tid tid = *until_done(chunks.table, [&] { return heap.insert(image, command); });
    pfree(tuple);
    pgstat_count_heap_insert(chunks.table, 1);
    if (enter_chunk(chunks, id, 0, tid, UNIQUE_CHECK_PARTIAL)) return id;
    until_ok(chunks.table, [&] { return heap.abandon(tid); });
    last_id = InvalidOid;
  }
}

// Chunk `number` of a value and those behind it.
void store_rest(const Chunks& chunks, engine::Heap& heap, Oid id, int32 number, const char* data, int32 bytes,
                CommandId command) {
  HeapTuple tuple[kChunksPerPage];
  RowImage image[kChunksPerPage];
  Tid tid[kChunksPerPage];
  while (bytes > 0) {
    CHECK_FOR_INTERRUPTS();
    uint32_t count = 0;
    for (; bytes > 0 && count < kChunksPerPage; ++count) {
      const int32 part = Min(bytes, kChunkBytes);
      tuple[count] = form_chunk(chunks.table, id, number + int32(count), data, part);
      image[count] = image_of(tuple[count]);
      data += part;
      bytes -= part;
    }
    for (uint32_t done = 0; done < count;) {
      const std::span<const RowImage> rest{image + done, count - done};
      done += *until_done(chunks.table, [&] { return heap.multi_insert(rest, command, tid + done); });
    }
    for (uint32_t i = 0; i < count; ++i, ++number) {
      (void)enter_chunk(chunks, id, number, tid[i], UNIQUE_CHECK_NO);
      pfree(tuple[i]);
    }
    pgstat_count_heap_insert(chunks.table, count);
    if (bytes > 0) stop_here(StopPoint::kToastChunksStored);
  }
}

// What is stored of a value, and what the pointer says of it.
struct Content {
  const char* data;
  varatt_external pointer;
};

Content content_of(const varlena* value) {
  Content is{};
  if (VARATT_IS_SHORT(value)) {
    is.data = VARDATA_SHORT(value);
    is.pointer.va_extinfo = uint32(VARSIZE_SHORT(value) - VARHDRSZ_SHORT);
    is.pointer.va_rawsize = int32(is.pointer.va_extinfo + VARHDRSZ);
  } else if (VARATT_IS_COMPRESSED(value)) {
    is.data = VARDATA(value);
    is.pointer.va_rawsize = int32(VARDATA_COMPRESSED_GET_EXTSIZE(value) + VARHDRSZ);
    VARATT_EXTERNAL_SET_SIZE_AND_COMPRESS_METHOD(is.pointer, VARSIZE(value) - VARHDRSZ,
                                                 VARDATA_COMPRESSED_GET_COMPRESS_METHOD(value));
  } else {
    is.data = VARDATA(value);
    is.pointer.va_rawsize = int32(VARSIZE(value));
    is.pointer.va_extinfo = uint32(VARSIZE(value) - VARHDRSZ);
  }
  return is;
}

void remove_chunk(Relation table, engine::Heap& heap, Tid tid, CommandId command, Removal how) {
  if (how == Removal::kAbandon) return until_ok(table, [&] { return heap.abandon(tid); });
  const engine::RowOutcome outcome = *until_done(table, [&] { return heap.remove(tid, command); });
  if (outcome.result != RowResult::kOk)
    elog(ERROR, "chunk (%u,%u) of \"%s\" was changed by another than its row", tid.block, tid.offset,
         RelationGetRelationName(table));
  pgstat_count_heap_delete(table);
}

void remove_value(const varatt_external& value, CommandId command, Removal how) {
  Relation table = table_open(value.va_toastrelid, RowExclusiveLock);
  const Chunks chunks = open_chunks(table, RowExclusiveLock);
  engine::Heap& heap = heap_of(table);
  SnapshotData snapshot;
  init_toast_snapshot(&snapshot);
  SysScanDesc scan = scan_value(chunks, value.va_valueid, &snapshot);
  while (HeapTuple tuple = systable_getnext_ordered(scan, ForwardScanDirection)) {
    CHECK_FOR_INTERRUPTS();
    remove_chunk(table, heap, tid_of(&tuple->t_self), command, how);
  }
  systable_endscan_ordered(scan);
  toast_close_indexes(chunks.indexes, chunks.count, NoLock);
  table_close(table, NoLock);
}

int32 bytes_of_chunk(int32 number, int32 value_bytes) { return Min(kChunkBytes, value_bytes - number * kChunkBytes); }

[[noreturn]] void report_damaged(Relation toast, Oid id, int32 number) {
  ereport(ERROR, errcode(ERRCODE_DATA_CORRUPTED),
          errmsg("chunk number %d of toast value %u in %s is missing or damaged", number, id,
                 RelationGetRelationName(toast)));
  pg_unreachable();
}

}  // namespace

varlena* store_out_of_line(Oid toast, Datum value, CommandId command) {
  Relation table = table_open(toast, RowExclusiveLock);
  const Chunks chunks = open_chunks(table, RowExclusiveLock);
  engine::Heap& heap = heap_of(table);
  Content is = content_of(reinterpret_cast<const varlena*>(DatumGetPointer(value)));
  const int32 bytes = int32(VARATT_EXTERNAL_GET_EXTSIZE(is.pointer));
  const int32 first = Min(bytes, kChunkBytes);
  is.pointer.va_toastrelid = toast;
  is.pointer.va_valueid = store_first(chunks, heap, is.data, first, command);
  store_rest(chunks, heap, is.pointer.va_valueid, 1, is.data + first, bytes - first, command);
  toast_close_indexes(chunks.indexes, chunks.count, NoLock);
  table_close(table, NoLock);
  auto* pointer = static_cast<varlena*>(palloc(TOAST_POINTER_SIZE));
  SET_VARTAG_EXTERNAL(pointer, VARTAG_ONDISK);
  memcpy(VARDATA_EXTERNAL(pointer), &is.pointer, sizeof is.pointer);
  return pointer;
}

void remove_out_of_line(const List* values, CommandId command, Removal how) {
  ListCell* cell;
  foreach (cell, values) {
    varatt_external value;
    VARATT_EXTERNAL_GET_POINTER(value, lfirst(cell));
    remove_value(value, command, how);
  }
}

void gcl_relation_fetch_toast_slice(Relation toast, Oid id, int32 value_bytes, int32 offset, int32 length,
                                    struct varlena* result) {
  const int32 first = offset / kChunkBytes;
  const int32 last = (offset + length - 1) / kChunkBytes;
  const Chunks chunks = open_chunks(toast, AccessShareLock);
  ScanKeyData keys[3];
  ScanKeyInit(&keys[0], 1, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(id));
  ScanKeyInit(&keys[1], 2, BTGreaterEqualStrategyNumber, F_INT4GE, Int32GetDatum(first));
  ScanKeyInit(&keys[2], 2, BTLessEqualStrategyNumber, F_INT4LE, Int32GetDatum(last));
  SnapshotData snapshot;
  init_toast_snapshot(&snapshot);
  SysScanDesc scan = systable_beginscan_ordered(toast, chunks.indexes[chunks.valid], &snapshot, 3, keys);
  int32 number = first;
  while (HeapTuple tuple = systable_getnext_ordered(scan, ForwardScanDirection)) {
    CHECK_FOR_INTERRUPTS();
    bool null[2];
    const int32 is = DatumGetInt32(heap_getattr(tuple, 2, RelationGetDescr(toast), &null[0]));
    const char* data = DatumGetPointer(heap_getattr(tuple, 3, RelationGetDescr(toast), &null[1]));
    if (null[0] || null[1] || is != number || number > last ||
        int32(VARSIZE_ANY_EXHDR(data)) != bytes_of_chunk(number, value_bytes))
      report_damaged(toast, id, number);
    // Of the first and the last chunk, the part that is asked for.
    const int32 at = number * kChunkBytes;
    const int32 from = Max(offset, at), to = Min(offset + length, at + bytes_of_chunk(number, value_bytes));
    memcpy(VARDATA(result) + (from - offset), VARDATA_ANY(data) + (from - at), size_t(to - from));
    ++number;
  }
  if (number != last + 1) report_damaged(toast, id, number);
  systable_endscan_ordered(scan);
  toast_close_indexes(chunks.indexes, chunks.count, AccessShareLock);
}

}  // namespace gcl
