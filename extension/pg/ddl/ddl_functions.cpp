// SQL functions of ddl/: see sql/gcl--1.0.sql.
#include "extension/pg/ddl/ddl_port.hpp"
#include "extension/pg/ddl/ddl_results.hpp"
#include "extension/pg/ddl/shared_relations.hpp"

extern "C" {
#include "access/relation.h"
#include "funcapi.h"
#include "utils/rel.h"
#include "utils/relcache.h"
#include "utils/timestamp.h"

PG_FUNCTION_INFO_V1(gcl_ddl_fingerprint);
PG_FUNCTION_INFO_V1(gcl_ddl_lock_holder);
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

// (node, pid, since) of whoever holds the cluster's DDL lock; NULL if nobody does.
Datum gcl_ddl_lock_holder(PG_FUNCTION_ARGS) {
  if (!ddl_pool_attached()) PG_RETURN_NULL();
  uint64_t since;
  const engine::DdlHolder holder = ddl_channel().holder(&since);
  if (!holder.held()) PG_RETURN_NULL();
  TupleDesc descriptor;
  if (get_call_result_type(fcinfo, nullptr, &descriptor) != TYPEFUNC_COMPOSITE)
    elog(ERROR, "return type must be a row type");
  Datum values[3] = {Int32GetDatum(holder.node().value), Int32GetDatum(int32_t(holder.pid())),
                     TimestampTzGetDatum(TimestampTz(since))};
  bool nulls[3] = {};
  PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(descriptor), values, nulls)));
}
