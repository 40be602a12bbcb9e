// SQL functions of ddl/: see sql/gcl--1.0.sql.
#include "extension/pg/catalog/shared_relations.hpp"
#include "extension/pg/ddl/base/ddl_port.hpp"
#include "extension/pg/ddl/objects/ddl_digest.hpp"
#include "extension/pg/ddl/peer/in_doubt.hpp"
#include "extension/pg/ddl/peer/primary_copy.hpp"
#include "extension/pg/ddl/replay/ddl_results.hpp"
#include "extension/pg/runtime/rows.hpp"

extern "C" {
#include "access/relation.h"
#include "funcapi.h"
#include "utils/rel.h"
#include "utils/relcache.h"
#include "utils/timestamp.h"

PG_FUNCTION_INFO_V1(gcl_ddl_fingerprint);
PG_FUNCTION_INFO_V1(gcl_ddl_locks_get);
PG_FUNCTION_INFO_V1(gcl_stat_ddl_log_kept_get);
PG_FUNCTION_INFO_V1(gcl_prepare_copy);
PG_FUNCTION_INFO_V1(gcl_forget_primary);
PG_FUNCTION_INFO_V1(gcl_resolve_in_doubt);
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

// The holder of a DDL lock: of a database, or of the whole cluster (database is null).
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

// Which primaries the DDL log is kept for.
Datum gcl_stat_ddl_log_kept_get(PG_FUNCTION_ARGS) {
  ReturnSetInfo* const result = rows_of(fcinfo);
  if (!ddl_pool_attached() || ddl_pool_fenced()) return Datum{0};
  const engine::DdlLogExtent log = ddl_log_extent();
  for (uint32_t n = 0; n < ddl_channel().nodes_max(); ++n) {
    const coherence::NodeId node{uint8_t(n)};
    const engine::DdlApplied applied = ddl_channel().applied(node);
    if (!applied.known()) continue;
    Row<7> row;
    row.integer(int(n)).truth(ddl_channel().membership(node) != 0);
    row.number(applied.number()).number(log.count).number(log.removed).number(log.pages).number(ddl_log_pages_max());
    row.put(result);
  }
  return Datum{0};
}

Datum gcl_prepare_copy(PG_FUNCTION_ARGS) { PG_RETURN_OID(prepare_copy(PG_GETARG_INT32(0))); }

Datum gcl_forget_primary(PG_FUNCTION_ARGS) {
  forget_primary(PG_GETARG_INT32(0));
  PG_RETURN_VOID();
}

Datum gcl_resolve_in_doubt(PG_FUNCTION_ARGS) {
  resolve_in_doubt(PG_GETARG_INT32(0), uint64_t(PG_GETARG_INT64(1)), PG_GETARG_BOOL(2));
  PG_RETURN_VOID();
}
