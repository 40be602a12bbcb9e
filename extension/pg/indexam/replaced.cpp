#include "extension/pg/indexam/replaced.hpp"

extern "C" {
#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/indexing.h"
#include "catalog/pg_class.h"
#include "storage/proc.h"
#include "utils/fmgroids.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
}

namespace gcl {

using coherence::PageId;

namespace {

// Trees made by this transaction, by file.  TRUNCATE of a table made in the same (sub)transaction empties the files in
// place; nothing else could tell the trees they named.
struct Made {
  RelFileNode file;
  PageId meta;
};
List* made = NIL;  // in TopTransactionContext
LocalTransactionId made_in = InvalidLocalTransactionId;

Made* made_for(const RelFileNode& file) {
  if (made_in != MyProc->lxid) return nullptr;
  ListCell* cell;
  foreach (cell, made) {
    auto* entry = static_cast<Made*>(lfirst(cell));
    if (RelFileNodeEquals(entry->file, file)) return entry;
  }
  return nullptr;
}

// The file the index had before the present command's catalog changes: its pg_class row as the command before saw it.
std::optional<Oid> file_before(Oid index) {
  const CommandId now = GetCurrentCommandId(false);
  Snapshot snapshot = RegisterSnapshot(GetLatestSnapshot());
  snapshot->curcid = now == FirstCommandId ? FirstCommandId : now - 1;
  Relation classes = table_open(RelationRelationId, AccessShareLock);
  ScanKeyData key;
  ScanKeyInit(&key, Anum_pg_class_oid, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(index));
  SysScanDesc scan = systable_beginscan(classes, ClassOidIndexId, true, snapshot, 1, &key);
  std::optional<Oid> file;
  if (HeapTuple row = systable_getnext(scan); HeapTupleIsValid(row)) {
    file = reinterpret_cast<Form_pg_class>(GETSTRUCT(row))->relfilenode;
  }
  systable_endscan(scan);
  table_close(classes, AccessShareLock);
  UnregisterSnapshot(snapshot);
  return file;
}

}  // namespace

std::optional<PageId> replaced_tree(Relation index) {
  if (const Made* own = made_for(index->rd_node); own != nullptr) return own->meta;
  const std::optional<Oid> before = file_before(RelationGetRelid(index));
  if (!before || !OidIsValid(*before) || *before == index->rd_node.relNode) return std::nullopt;
  RelFileNode old = index->rd_node;
  old.relNode = *before;
  if (const Made* own = made_for(old); own != nullptr) return own->meta;
  const PageId meta = relation_page_in_file(old, RelationFile::kIndex);
  return meta.valid() ? std::optional(meta) : std::nullopt;
}

void note_tree(Relation index, PageId meta) {
  if (made_in != MyProc->lxid) made = NIL;
  made_in = MyProc->lxid;
  if (Made* own = made_for(index->rd_node); own != nullptr) {
    own->meta = meta;
    return;
  }
  MemoryContext before = MemoryContextSwitchTo(TopTransactionContext);
  auto* entry = static_cast<Made*>(palloc(sizeof(Made)));
  *entry = {index->rd_node, meta};
  made = lappend(made, entry);
  MemoryContextSwitchTo(before);
}

}  // namespace gcl
