#include "extension/pg/runtime/relation_record.hpp"

extern "C" {
#include "access/nbtree.h"
#include "access/xloginsert.h"
#include "catalog/pg_class.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "storage/smgr.h"
#include "utils/inval.h"
#include "utils/rel.h"
}

namespace gcl {

using coherence::PageId;

uint64_t relation_record_pool_id = 0;
RelationSeam relation_seam;

namespace {

constexpr uint64_t kMagic = 0x3130'6c65'725f'6c63;  // "cl_rel01"

struct RelationRecord {
  uint64_t magic;
  uint64_t pool;
  uint64_t header;
  uint32_t kind;
  uint32_t reserved;
};
static_assert(sizeof(RelationRecord) == 32);

uint32_t record_offset(RelationFile kind) {
  if (kind == RelationFile::kSequence) return BLCKSZ - sizeof(RelationRecord);
  const uint32_t behind = kind == RelationFile::kIndex ? MAXALIGN(sizeof(BTMetaPageData)) : 0;
  return MAXALIGN(SizeOfPageHeaderData) + behind;
}

// One entry per slot, found by the relation's oid: no allocation, and an invalidation is one store.  A collision only
// costs another look at block 0.
constexpr uint32_t kCacheSlots = 512;
struct Cached {
  Oid relid;
  RelFileNode file;
  PageId header;
  PageId root;
};
Cached cache[kCacheSlots];
bool cache_started = false;

Cached& slot_of(Oid relid) { return cache[relid * 2654435761u >> 23]; }
static_assert(kCacheSlots == 1u << (32 - 23));

void forget(Datum, Oid relid) {
  if (OidIsValid(relid)) {
    if (slot_of(relid).relid == relid) slot_of(relid).relid = InvalidOid;
  } else {
    for (Cached& slot : cache) slot.relid = InvalidOid;
  }
}

Buffer open_block(const RelFileNode& file, BlockNumber block, bool exists) {
  return ReadBufferWithoutRelcache(file, MAIN_FORKNUM, exists ? block : P_NEW, RBM_ZERO_AND_LOCK, nullptr, true);
}

void log_block(Buffer buffer) {
  MarkBufferDirty(buffer);
  log_newpage_buffer(buffer, !PageIsNew(BufferGetPage(buffer)));
}

RelationRecord read_record(const RelFileNode& file, RelationFile kind) {
  RelationRecord record{};
  SMgrRelation storage = smgropen(file, InvalidBackendId);
  if (!smgrexists(storage, MAIN_FORKNUM) || smgrnblocks(storage, MAIN_FORKNUM) == 0) return record;
  Buffer buffer = ReadBufferWithoutRelcache(file, MAIN_FORKNUM, 0, RBM_NORMAL, nullptr, true);
  LockBuffer(buffer, BUFFER_LOCK_SHARE);
  memcpy(&record, BufferGetPage(buffer) + record_offset(kind), sizeof record);
  UnlockReleaseBuffer(buffer);
  return record;
}

}  // namespace

RelationFile kind_of_file(char relkind) {
  switch (relkind) {
    case RELKIND_INDEX:
      return RelationFile::kIndex;
    case RELKIND_SEQUENCE:
      return RelationFile::kSequence;
    default:
      return RelationFile::kTable;
  }
}

void start_relation_records() {
  if (cache_started) return;
  CacheRegisterRelcacheCallback(forget, Datum{0});
  cache_started = true;
}

void write_relation_record(const RelFileNode& file, RelationFile kind, PageId header) {
  const BlockNumber blocks = smgrnblocks(smgropen(file, InvalidBackendId), MAIN_FORKNUM);
  Buffer first = open_block(file, 0, blocks > 0);
  Buffer root = kind == RelationFile::kIndex ? open_block(file, 1, blocks > 1) : InvalidBuffer;
  if (BufferGetBlockNumber(first) != 0) elog(ERROR, "unexpected blocks in file of relation %u", file.relNode);

  START_CRIT_SECTION();
  Page page = BufferGetPage(first);
  if (kind == RelationFile::kIndex) {
    _bt_initmetapage(page, 1, 0, false);
  } else {
    PageInit(page, BLCKSZ, 0);
  }
  const RelationRecord record{kMagic, relation_record_pool_id, header.raw, uint32_t(kind), 0};
  memcpy(page + record_offset(kind), &record, sizeof record);
  // Bytes above pd_lower are not part of a logged page image.
  reinterpret_cast<PageHeader>(page)->pd_lower = record_offset(kind) + sizeof record;
  log_block(first);
  if (BufferIsValid(root)) log_block(root);
  END_CRIT_SECTION();

  UnlockReleaseBuffer(first);
  if (BufferIsValid(root)) UnlockReleaseBuffer(root);
  // A file that is written again (truncated in place by the transaction that made it) sends no invalidation in time.
  for (Cached& slot : cache) {
    if (slot.relid != InvalidOid && RelFileNodeEquals(slot.file, file)) slot.relid = InvalidOid;
  }
}

SequenceRecord sequence_record(PageId page) {
  const RelationRecord record{kMagic, relation_record_pool_id, page.raw, uint32_t(RelationFile::kSequence), 0};
  SequenceRecord bytes;
  static_assert(sizeof bytes == sizeof record);
  memcpy(&bytes, &record, sizeof bytes);
  return bytes;
}

PageId relation_page(Relation rel) {
  Cached& slot = slot_of(RelationGetRelid(rel));
  if (slot.relid == RelationGetRelid(rel) && RelFileNodeEquals(slot.file, rel->rd_node)) return slot.header;
  start_relation_records();
  const RelationRecord record = read_record(rel->rd_node, kind_of_file(rel->rd_rel->relkind));
  if (record.magic != kMagic) {
    ereport(ERROR, errcode(ERRCODE_DATA_CORRUPTED),
            errmsg("relation \"%s\" has no place in the pool", RelationGetRelationName(rel)),
            errhint("Its data directory may have been restored from a backup taken by another tool."));
  }
  if (record.pool != relation_record_pool_id) {
    ereport(ERROR, errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
            errmsg("relation \"%s\" belongs to another pool", RelationGetRelationName(rel)),
            errdetail("The relation's file names pool %016lx, this server has pool %016lx open.", record.pool,
                      relation_record_pool_id));
  }
  // Filled last: reading the block may have processed invalidations.
  slot = Cached{RelationGetRelid(rel), rel->rd_node, PageId{record.header}, PageId{}};
  return slot.header;
}

PageId relation_root(Relation rel) {
  (void)relation_page(rel);
  return slot_of(RelationGetRelid(rel)).root;
}

void note_relation_root(Relation rel, PageId root) {
  (void)relation_page(rel);
  slot_of(RelationGetRelid(rel)).root = root;
}

PageId relation_page_in_file(const RelFileNode& file, RelationFile kind) {
  const RelationRecord record = read_record(file, kind);
  return record.magic == kMagic && record.pool == relation_record_pool_id ? PageId{record.header} : PageId{};
}

}  // namespace gcl
