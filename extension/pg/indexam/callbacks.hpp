// The callbacks of the B-link tree behind a btree index of a gcl table.  Names and contracts are those of PostgreSQL's
// index access method interface (amapi.h).
//
// index.error-loses-nothing: No frame of ours owns anything a destructor must release when PostgreSQL code is called:
//     an ERROR may leave from a comparison, from reading a row, from a wait.
// index.private-copies: Entries and keys are private copies; nothing here holds a page.
#pragma once

extern "C" {
#include "postgres.h"

#include "access/amapi.h"
#include "access/genam.h"
#include "nodes/execnodes.h"
#include "nodes/tidbitmap.h"
}

namespace gcl {

IndexBuildResult* blink_ambuild(Relation table, Relation index, IndexInfo* info);
void blink_ambuildempty(Relation index);
bool blink_aminsert(Relation index, Datum* values, bool* isnull, ItemPointer tid, Relation table,
                    IndexUniqueCheck check, bool unchanged, IndexInfo* info);
IndexBulkDeleteResult* blink_ambulkdelete(IndexVacuumInfo* info, IndexBulkDeleteResult* stats,
                                          IndexBulkDeleteCallback dead, void* dead_state);
IndexBulkDeleteResult* blink_amvacuumcleanup(IndexVacuumInfo* info, IndexBulkDeleteResult* stats);
bool blink_amcanreturn(Relation index, int attribute);
IndexScanDesc blink_ambeginscan(Relation index, int keys, int orderbys);
void blink_amrescan(IndexScanDesc scan, ScanKey keys, int key_count, ScanKey orderbys, int orderby_count);
bool blink_amgettuple(IndexScanDesc scan, ScanDirection direction);
int64 blink_amgetbitmap(IndexScanDesc scan, TIDBitmap* bitmap);
void blink_amendscan(IndexScanDesc scan);
void blink_ammarkpos(IndexScanDesc scan);
void blink_amrestrpos(IndexScanDesc scan);

// Corrects what the planner believes of gcl indexes: it has looked at the two blocks of the local file.
void install_index_plan_info();

}  // namespace gcl
