// The pages of a database without connections.  Its pg_class is read from outside, block by block, as CREATE DATABASE
// reads its template's; what a gcl relation has in the pool stands in its local file (relation_record.hpp).
#include "extension/pg/ddl/objects/databases.hpp"
#include "extension/pg/runtime/relation_record.hpp"
#include "extension/pg/txn/deferred_free.hpp"

extern "C" {
#include "access/heapam.h"
#include "access/htup_details.h"
#include "access/transam.h"
#include "catalog/pg_class.h"
#include "catalog/pg_database.h"
#include "common/relpath.h"
#include "storage/bufmgr.h"
#include "storage/smgr.h"
#include "utils/relmapper.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"
}

namespace gcl {
namespace {

struct LocalFile {
  RelFileNode node;
  RelationFile kind;
};

Oid tablespace_of(Oid database) {
  HeapTuple tuple = SearchSysCache1(DATABASEOID, ObjectIdGetDatum(database));
  if (!HeapTupleIsValid(tuple)) elog(ERROR, "cache lookup failed for database %u", database);
  const Oid tablespace = reinterpret_cast<Form_pg_database>(GETSTRUCT(tuple))->dattablespace;
  ReleaseSysCache(tuple);
  return tablespace;
}

// Only of such relations that can be gcl's.
bool may_have_pages(const FormData_pg_class& form) {
  if (form.oid < FirstNormalObjectId || form.relpersistence != RELPERSISTENCE_PERMANENT) return false;
  return OidIsValid(form.relfilenode);
}

List* with_file(List* files, const FormData_pg_class& form, const RelFileNode& catalog) {
  auto* file = static_cast<LocalFile*>(palloc(sizeof(LocalFile)));
  const Oid tablespace = OidIsValid(form.reltablespace) ? form.reltablespace : catalog.spcNode;
  *file = {{tablespace, catalog.dbNode, form.relfilenode}, kind_of_file(form.relkind)};
  return lappend(files, file);
}

List* files_on_block(List* files, const RelFileNode& catalog, BlockNumber block, Snapshot snapshot) {
  Buffer buffer = ReadBufferWithoutRelcache(catalog, MAIN_FORKNUM, block, RBM_NORMAL, nullptr, true);
  LockBuffer(buffer, BUFFER_LOCK_SHARE);
  Page page = BufferGetPage(buffer);
  const OffsetNumber last = PageIsNew(page) ? InvalidOffsetNumber : PageGetMaxOffsetNumber(page);
  for (OffsetNumber at = FirstOffsetNumber; at <= last; ++at) {
    ItemId item = PageGetItemId(page, at);
    if (!ItemIdIsNormal(item)) continue;
    HeapTupleData row;
    row.t_data = reinterpret_cast<HeapTupleHeader>(PageGetItem(page, item));
    row.t_len = ItemIdGetLength(item);
    row.t_tableOid = RelationRelationId;
    ItemPointerSet(&row.t_self, block, at);
    if (!HeapTupleSatisfiesVisibility(&row, snapshot, buffer)) continue;
    const auto* form = reinterpret_cast<Form_pg_class>(GETSTRUCT(&row));
    if (may_have_pages(*form)) files = with_file(files, *form, catalog);
  }
  UnlockReleaseBuffer(buffer);
  return files;
}

List* files_of(Oid database) {
  const Oid tablespace = tablespace_of(database);
  char* path = GetDatabasePath(database, tablespace);
  const RelFileNode catalog{tablespace, database, RelationMapOidToFilenodeForDatabase(path, RelationRelationId)};
  Snapshot snapshot = RegisterSnapshot(GetLatestSnapshot());
  List* files = NIL;
  const BlockNumber blocks = smgrnblocks(smgropen(catalog, InvalidBackendId), MAIN_FORKNUM);
  for (BlockNumber block = 0; block < blocks; ++block) {
    CHECK_FOR_INTERRUPTS();
    files = files_on_block(files, catalog, block, snapshot);
  }
  UnregisterSnapshot(snapshot);
  return files;
}

}  // namespace

void drop_pages_of_database(Oid database) {
  ListCell* cell;
  foreach (cell, files_of(database)) {
    CHECK_FOR_INTERRUPTS();
    const auto* file = static_cast<LocalFile*>(lfirst(cell));
    const coherence::PageId page = relation_page_in_file(file->node, file->kind);
    if (page.valid()) pages_dropped(file->kind, page);
  }
}

}  // namespace gcl
