// The digest of catalog rows: what must be equal on every primary, and nothing else (no OIDs of roles, schemas or
// access methods, which each primary has its own of).
extern "C" {
#include "postgres.h"

#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
}

#include "extension/pg/ddl/ddl_results.hpp"

namespace gcl {
namespace {

constexpr const char* kQuery = R"sql(
  SELECT md5(coalesce(string_agg(line, E'\n' ORDER BY line COLLATE "C"), '')) FROM (
    SELECT concat_ws('|', 'class', c.oid, c.relname, n.nspname, pg_get_userbyid(c.relowner), c.relkind, m.amname, c.relpersistence,
                     c.relnatts, c.reltype, c.relchecks) AS line
      FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
      JOIN pg_catalog.pg_am m ON m.oid = c.relam
      WHERE c.oid = ANY ($1)
    UNION ALL
    SELECT concat_ws('|', 'attribute', a.attrelid, a.attnum, a.attname, a.atttypid, a.atttypmod, a.attcollation,
                     a.attnotnull, a.atthasdef, a.attisdropped, a.attmissingval::text, a.attoptions::text,
                     pg_get_expr(d.adbin, d.adrelid))
      FROM pg_catalog.pg_attribute a
      LEFT JOIN pg_catalog.pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
      WHERE a.attrelid = ANY ($1)
    UNION ALL
    SELECT concat_ws('|', 'index', i.indexrelid, i.indrelid, i.indkey, i.indclass, i.indcollation, i.indoption,
                     i.indisunique, i.indisprimary, i.indisvalid, i.indcheckxmin,
                     pg_get_expr(i.indexprs, i.indrelid),
                     pg_get_expr(i.indpred, i.indrelid))
      FROM pg_catalog.pg_index i WHERE i.indexrelid = ANY ($1) OR i.indrelid = ANY ($1)
    UNION ALL
    SELECT concat_ws('|', 'constraint', CASE WHEN o.condeferrable THEN 0 ELSE o.oid END, o.conrelid, o.conname, o.contype, o.convalidated, o.conindid, o.conkey::text,
                     pg_get_expr(o.conbin, o.conrelid))
      FROM pg_catalog.pg_constraint o WHERE o.conrelid = ANY ($1)
    UNION ALL
    SELECT concat_ws('|', 'type', t.oid, t.typname, t.typtype, t.typarray, t.typelem, t.typrelid)
      FROM pg_catalog.pg_type t
      WHERE t.typrelid = ANY ($1)
         OR t.typelem IN (SELECT y.oid FROM pg_catalog.pg_type y WHERE y.typrelid = ANY ($1))
  ) AS lines)sql";

}  // namespace

char* digest_of(List* relations) {
  const int count = list_length(relations);
  auto* oids = static_cast<Datum*>(palloc(sizeof(Datum) * (size_t(count) + 1)));
  for (int i = 0; i < count; ++i) oids[i] = ObjectIdGetDatum(list_nth_oid(relations, i));
  Datum array = PointerGetDatum(construct_array(oids, count, OIDOID, sizeof(Oid), true, TYPALIGN_INT));
  Oid type = OIDARRAYOID;

  MemoryContext caller = CurrentMemoryContext;
  const int nest = NewGUCNestLevel();
  (void)set_config_option("search_path", "pg_catalog", PGC_USERSET, PGC_S_SESSION, GUC_ACTION_SAVE, true, 0, false);
  if (SPI_connect() != SPI_OK_CONNECT) elog(ERROR, "SPI_connect failed");
  if (SPI_execute_with_args(kQuery, 1, &type, &array, nullptr, false, 1) != SPI_OK_SELECT || SPI_processed != 1)
    elog(ERROR, "gcl: the catalogs could not be read");
  char* digest = MemoryContextStrdup(caller, SPI_getvalue(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1));
  SPI_finish();
  AtEOXact_GUC(true, nest);
  return digest;
}

}  // namespace gcl
