// gcl_check(): a table, its indexes and its TOAST relation are checked, as they are while others change them.
//
// A role that may call it may be more than the table's owner, whose functions the indexes call: everything runs as the
// owner, in a security-restricted operation and with a search_path that only the server's schema is on, as amcheck,
// REINDEX and VACUUM do.  Findings name places, never values.
#include "extension/pg/check/table_check.hpp"
#include "extension/pg/indexam/dispatch.hpp"
#include "extension/pg/runtime/gcl_table.hpp"
#include "extension/pg/runtime/relation_record.hpp"
#include "extension/pg/txn/snapshots.hpp"

extern "C" {
#include "access/genam.h"
#include "access/relation.h"
#include "access/table.h"
#include "catalog/pg_class.h"
PG_FUNCTION_INFO_V1(gcl_check);
}

namespace gcl {

namespace {

// The table's owner, until the end of the block; an ERROR ends it, too.
struct AsOwner {
  Oid user;
  int security;
  int nest_level;
  explicit AsOwner(Relation table) {
    GetUserIdAndSecContext(&user, &security);
    SetUserIdAndSecContext(table->rd_rel->relowner, security | SECURITY_RESTRICTED_OPERATION);
    nest_level = NewGUCNestLevel();
    (void)set_config_option("search_path", "pg_catalog, pg_temp", PGC_USERSET, PGC_S_SESSION, GUC_ACTION_SAVE, true, 0,
                            false);
  }
  void end() const {
    AtEOXact_GUC(false, nest_level);
    SetUserIdAndSecContext(user, security);
  }
};

Relation open_table(Oid oid) {
  Relation table = relation_open(oid, AccessShareLock);
  const char* name = RelationGetRelationName(table);
  if (table->rd_rel->relkind == RELKIND_PARTITIONED_TABLE)
    ereport(ERROR, errcode(ERRCODE_WRONG_OBJECT_TYPE), errmsg("cannot check relation \"%s\"", name),
            errdetail("A partitioned table has no rows of its own."), errhint("Check its partitions."));
  const char kind = table->rd_rel->relkind;
  if ((kind != RELKIND_RELATION && kind != RELKIND_TOASTVALUE && kind != RELKIND_MATVIEW) || !is_gcl_table(table))
    ereport(ERROR, errcode(ERRCODE_WRONG_OBJECT_TYPE), errmsg("relation \"%s\" is not a gcl table", name),
            kind == RELKIND_INDEX ? errhint("An index is checked with its table.") : 0);
  return table;
}

// Those that are to have an entry for each row.
List* open_indexes(Relation table) {
  List* indexes = NIL;
  ListCell* cell;
  foreach (cell, RelationGetIndexList(table)) {
    Relation index = index_open(lfirst_oid(cell), AccessShareLock);
    if (index->rd_index->indisvalid && index->rd_index->indisready && is_gcl_index(index))
      indexes = lappend(indexes, index);
    else
      index_close(index, AccessShareLock);
  }
  return indexes;
}

void check_with_indexes(Relation table, List* indexes, bool all_indexed, const engine::Snapshot& snapshot,
                        CheckReport& report) {
  MemoryContext work = AllocSetContextCreate(CurrentMemoryContext, "gcl_check", ALLOCSET_DEFAULT_SIZES);
  MemoryContext caller = MemoryContextSwitchTo(work);
  auto* rows = made_in_context<engine::HeapCheck>(txns(), engine::RelationId{relation_page(table)}, snapshot,
                                                  uint16_t(RelationGetNumberOfAttributes(table)));
  check_table(table, *rows, report);
  ListCell* cell;
  foreach (cell, indexes)
    check_index(table, static_cast<Relation>(lfirst(cell)), *rows, all_indexed ? &snapshot : nullptr, report);
  if (all_indexed) check_rows_indexed(table, indexes, snapshot, report);
  foreach (cell, indexes) index_close(static_cast<Relation>(lfirst(cell)), AccessShareLock);
  MemoryContextSwitchTo(caller);
  MemoryContextDelete(work);
}

}  // namespace
}  // namespace gcl

using namespace gcl;  // NOLINT: the functions below are PostgreSQL's, in the global namespace

Datum gcl_check(PG_FUNCTION_ARGS) {
  (void)pool();
  ReturnSetInfo* const rows = rows_of(fcinfo);
  if (PG_ARGISNULL(0)) return Datum{0};
  const bool all_indexed = !PG_ARGISNULL(1) && PG_GETARG_BOOL(1);
  Relation table = open_table(PG_GETARG_OID(0));
  const AsOwner owner(table);
  const Oid toast_oid = table->rd_rel->reltoastrelid;
  Relation toast = OidIsValid(toast_oid) ? table_open(toast_oid, AccessShareLock) : nullptr;
  // All indexes are locked before the snapshot is taken: what it sees was there when they were built, or came later.
  List* indexes = open_indexes(table);
  List* toast_indexes = toast != nullptr ? open_indexes(toast) : NIL;
  count_in();  // what the snapshot sees stays (HeapCheck)
  Snapshot snapshot = RegisterSnapshot(GetLatestSnapshot());
  const engine::Snapshot seen = engine_snapshot(snapshot);
  auto* report = new (palloc(sizeof(CheckReport))) CheckReport(rows);
  check_with_indexes(table, indexes, all_indexed, seen, *report);
  if (toast != nullptr) {
    check_with_indexes(toast, toast_indexes, all_indexed, seen, *report);
    table_close(toast, AccessShareLock);
  }
  UnregisterSnapshot(snapshot);
  owner.end();
  relation_close(table, AccessShareLock);
  return Datum{0};
}
