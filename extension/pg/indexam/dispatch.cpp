#include "extension/pg/indexam/dispatch.hpp"

#include "extension/pg/indexam/callbacks.hpp"
#include "extension/pg/indexam/handler_patch.hpp"

extern "C" {
#include "access/htup_details.h"
#include "access/nbtree.h"
#include "access/relscan.h"
#include "access/transam.h"
#include "catalog/pg_am.h"
#include "catalog/pg_class.h"
#include "utils/rel.h"
#include "utils/syscache.h"
}

namespace gcl {
namespace {

const TableAmRoutine* gcl_tables = nullptr;
IndexAmRoutine native;     // nbtree, but for ambuild (index.build-decides-anew)
IndexAmRoutine ours;       // the B-link tree
IndexAmRoutine undecided;  // what the replaced handler returns

bool is_gcl_table_am(Oid am) {
  if (am == HEAP_TABLE_AM_OID || !OidIsValid(am)) return false;
  HeapTuple row = SearchSysCache1(AMOID, ObjectIdGetDatum(am));
  if (!HeapTupleIsValid(row)) elog(ERROR, "cache lookup failed for access method %u", am);
  const Oid handler = reinterpret_cast<Form_pg_am>(GETSTRUCT(row))->amhandler;
  ReleaseSysCache(row);
  return GetTableAmRoutine(handler) == gcl_tables;
}

bool is_gcl_table(Oid table) {
  if (table < FirstNormalObjectId) return false;  // (index.catalogs-without-lookup)
  HeapTuple row = SearchSysCache1(RELOID, ObjectIdGetDatum(table));
  if (!HeapTupleIsValid(row)) elog(ERROR, "cache lookup failed for relation %u", table);
  const Oid am = reinterpret_cast<Form_pg_class>(GETSTRUCT(row))->relam;
  ReleaseSysCache(row);
  return is_gcl_table_am(am);
}

const IndexAmRoutine& decide(Relation index, Relation table = nullptr) {
  const bool gcl = table != nullptr ? table->rd_tableam == gcl_tables : is_gcl_table(index->rd_index->indrelid);
  *index->rd_indam = gcl ? ours : native;
  return *index->rd_indam;
}

// --- the callbacks of an undecided index ---------------------------------------------------------------------------

IndexBuildResult* any_ambuild(Relation table, Relation index, IndexInfo* info) {
  decide(index, table);
  return table->rd_tableam == gcl_tables ? blink_ambuild(table, index, info) : btbuild(table, index, info);
}

void any_ambuildempty(Relation index) { decide(index).ambuildempty(index); }

bool any_aminsert(Relation index, Datum* values, bool* isnull, ItemPointer tid, Relation table, IndexUniqueCheck check,
                  bool unchanged, IndexInfo* info) {
  return decide(index, table).aminsert(index, values, isnull, tid, table, check, unchanged, info);
}

IndexBulkDeleteResult* any_ambulkdelete(IndexVacuumInfo* info, IndexBulkDeleteResult* stats,
                                        IndexBulkDeleteCallback dead, void* dead_state) {
  return decide(info->index).ambulkdelete(info, stats, dead, dead_state);
}

IndexBulkDeleteResult* any_amvacuumcleanup(IndexVacuumInfo* info, IndexBulkDeleteResult* stats) {
  return decide(info->index).amvacuumcleanup(info, stats);
}

bool any_amcanreturn(Relation index, int attribute) { return decide(index).amcanreturn(index, attribute); }

IndexScanDesc any_ambeginscan(Relation index, int keys, int orderbys) {
  return decide(index).ambeginscan(index, keys, orderbys);
}

void any_amrescan(IndexScanDesc scan, ScanKey keys, int key_count, ScanKey orderbys, int orderby_count) {
  decide(scan->indexRelation).amrescan(scan, keys, key_count, orderbys, orderby_count);
}

bool any_amgettuple(IndexScanDesc scan, ScanDirection direction) {
  return decide(scan->indexRelation).amgettuple(scan, direction);
}

int64 any_amgetbitmap(IndexScanDesc scan, TIDBitmap* bitmap) {
  return decide(scan->indexRelation).amgetbitmap(scan, bitmap);
}

void any_amendscan(IndexScanDesc scan) { decide(scan->indexRelation).amendscan(scan); }
void any_ammarkpos(IndexScanDesc scan) { decide(scan->indexRelation).ammarkpos(scan); }
void any_amrestrpos(IndexScanDesc scan) { decide(scan->indexRelation).amrestrpos(scan); }

void any_amparallelrescan(IndexScanDesc scan) {
  const IndexAmRoutine& side = decide(scan->indexRelation);
  if (side.amparallelrescan != nullptr) side.amparallelrescan(scan);
}

Datum dispatching_bthandler(PG_FUNCTION_ARGS) {
  auto* routine = static_cast<IndexAmRoutine*>(palloc(sizeof(IndexAmRoutine)));
  *routine = undecided;
  PG_RETURN_POINTER(routine);
}

IndexAmRoutine make_ours(IndexAmRoutine routine) {
  routine.amcanparallel = false;
  routine.ambuild = any_ambuild;
  routine.ambuildempty = blink_ambuildempty;
  routine.aminsert = blink_aminsert;
  routine.ambulkdelete = blink_ambulkdelete;
  routine.amvacuumcleanup = blink_amvacuumcleanup;
  routine.amcanreturn = blink_amcanreturn;
  routine.ambeginscan = blink_ambeginscan;
  routine.amrescan = blink_amrescan;
  routine.amgettuple = blink_amgettuple;
  routine.amgetbitmap = blink_amgetbitmap;
  routine.amendscan = blink_amendscan;
  routine.ammarkpos = blink_ammarkpos;
  routine.amrestrpos = blink_amrestrpos;
  routine.amestimateparallelscan = nullptr;
  routine.aminitparallelscan = nullptr;
  routine.amparallelrescan = nullptr;
  return routine;
}

IndexAmRoutine make_undecided(IndexAmRoutine routine) {
  routine.ambuild = any_ambuild;
  routine.ambuildempty = any_ambuildempty;
  routine.aminsert = any_aminsert;
  routine.ambulkdelete = any_ambulkdelete;
  routine.amvacuumcleanup = any_amvacuumcleanup;
  routine.amcanreturn = any_amcanreturn;
  routine.ambeginscan = any_ambeginscan;
  routine.amrescan = any_amrescan;
  routine.amgettuple = any_amgettuple;
  routine.amgetbitmap = any_amgetbitmap;
  routine.amendscan = any_amendscan;
  routine.ammarkpos = any_ammarkpos;
  routine.amrestrpos = any_amrestrpos;
  routine.amparallelrescan = any_amparallelrescan;
  return routine;
}

}  // namespace

void install_btree_dispatch(const TableAmRoutine* tables) {
  gcl_tables = tables;
  native = checked_native_routine();
  ours = make_ours(native);
  undecided = make_undecided(native);
  native.ambuild = any_ambuild;
  replace_btree_handler(dispatching_bthandler);
  install_index_plan_info();
}

bool is_gcl_index(Relation index) { return decide(index).aminsert == blink_aminsert; }

}  // namespace gcl
