// SQL functions of ddl/: see sql/gcl--1.0.sql.
#include "extension/pg/ddl/ddl_port.hpp"
#include "extension/pg/ddl/ddl_results.hpp"
#include "extension/pg/ddl/shared_relations.hpp"
#include "extension/pg/stats/rows.hpp"

extern "C" {
#include "access/relation.h"
#include "funcapi.h"
#include "utils/rel.h"
#include "utils/relcache.h"
#include "utils/timestamp.h"

PG_FUNCTION_INFO_V1(gcl_ddl_fingerprint);
PG_FUNCTION_INFO_V1(gcl_ddl_locks_get);
}

using namespace gcl;

// md5 of the catalog rows of every shared table, its indexes and its TOAST relation, and of every shared sequence;
// equal on all primaries when no DDL is under way.
Datum gcl_ddl_fingerprint(PG_FUNCTION_ARGS) {
  (void)fcinfo;
  List* all = shared_tables(InvalidOid);
  List* theirs = NIL;
  ListCell* cell;
  foreach (cell, all) {
    Relation table = try_relation_open(lfirst_oid(cell), AccessShareLock);
    if (!table) continue;
    theirs = list_concat(theirs, RelationGetIndexList(table));
    if (OidIsValid(table->rd_rel->reltoastrelid)) theirs = lappend_oid(theirs, table->rd_rel->reltoastrelid);
    relation_close(table, AccessShareLock);
  }
  PG_RETURN_TEXT_P(
      cstring_to_text(digest_of(list_concat(list_concat(all, theirs), shared_sequences(InvalidOid)), NIL)));
}

// Who holds a DDL lock: of a database, or of the whole cluster (database is null).
Datum gcl_ddl_locks_get(PG_FUNCTION_ARGS) {
  ReturnSetInfo* const result = rows_of(fcinfo);
  if (!ddl_pool_attached()) return Datum{0};
  for (int lock = 0; lock <= engine::kDdlDatabasesMax; ++lock) {
    const engine::DdlLockWords words = ddl_locks().words(lock);
    const engine::DdlHolder holder{words.holder};
    if (!holder.held()) continue;
    Row<4> row;
    row.text(lock == engine::DdlLocks::kWholeCluster ? nullptr : words.database);
    row.integer(holder.node().value).integer(holder.pid()).time(TimestampTz(words.since));
    row.put(result);
  }
  return Datum{0};
}
