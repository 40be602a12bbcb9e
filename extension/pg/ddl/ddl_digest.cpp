// The digest of catalog rows: what must be equal on every primary, and nothing else (no OIDs of access methods, nor of
// roles older than the extension, which each primary has its own of).  Relations by one query; what they need, and what
// else a statement made or altered, by what it means (P38).
#include "extension/pg/ddl/ddl_results.hpp"
#include "extension/pg/ddl/ddl_sql.hpp"
#include "extension/pg/ddl/meanings.hpp"
#include "extension/pg/ddl/uses.hpp"

extern "C" {
#include "catalog/pg_type.h"
#include "common/md5.h"
}

namespace gcl {
namespace {

constexpr const char* kRelationsQuery = R"sql(
  SELECT pg_catalog.md5(coalesce(pg_catalog.string_agg(line, E'\n' ORDER BY line COLLATE pg_catalog."C"), '')) FROM (
    SELECT pg_catalog.concat_ws('|', 'class', c.oid, c.relname, n.nspname, pg_catalog.pg_get_userbyid(c.relowner), c.relkind, m.amname,
                     c.relpersistence, c.relnatts, c.reltype, c.relchecks, c.reloptions::pg_catalog.text, CASE WHEN c.relacl IS NOT NULL THEN
                       (SELECT pg_catalog.array_agg(x::pg_catalog.text ORDER BY x::pg_catalog.text COLLATE pg_catalog."C") FROM pg_catalog.unnest(c.relacl) AS x) END,
                     c.relrowsecurity, c.relforcerowsecurity, c.relreplident, c.reltoastrelid,
                     (SELECT x.reloptions::pg_catalog.text FROM pg_catalog.pg_class x WHERE x.oid = c.reltoastrelid),
                     CASE WHEN c.relkind = 'v' THEN pg_catalog.pg_get_viewdef(c.oid) END) AS line
      FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace LEFT JOIN pg_catalog.pg_am m ON m.oid = c.relam
      WHERE c.oid = ANY ($1)
    UNION ALL
    SELECT pg_catalog.concat_ws('|', 'attribute', a.attrelid, a.attnum, a.attname, a.atttypid, a.atttypmod, a.attcollation,
                     a.attnotnull, a.atthasdef, a.attisdropped, a.attislocal, a.attinhcount, a.attmissingval::pg_catalog.text, a.attoptions::pg_catalog.text,
                     a.attidentity, a.attgenerated, a.attstorage, a.attcompression, CASE WHEN a.attacl IS NOT NULL THEN
                       (SELECT pg_catalog.array_agg(x::pg_catalog.text ORDER BY x::pg_catalog.text COLLATE pg_catalog."C") FROM pg_catalog.unnest(a.attacl) AS x) END,
                     pg_catalog.pg_get_expr(d.adbin, d.adrelid))
      FROM pg_catalog.pg_attribute a
      LEFT JOIN pg_catalog.pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
      WHERE a.attrelid = ANY ($1)
    UNION ALL
    SELECT pg_catalog.concat_ws('|', 'parent', h.inhrelid, h.inhparent, h.inhseqno, h.inhdetachpending,
                     pg_catalog.pg_get_expr(c.relpartbound, c.oid))
      FROM pg_catalog.pg_inherits h JOIN pg_catalog.pg_class c ON c.oid = h.inhrelid WHERE h.inhrelid = ANY ($1)
    UNION ALL
    SELECT pg_catalog.concat_ws('|', 'partitioned', p.partrelid, p.partdefid, pg_catalog.pg_get_partkeydef(p.partrelid), p.partclass, p.partcollation)
      FROM pg_catalog.pg_partitioned_table p WHERE p.partrelid = ANY ($1)
    UNION ALL
    SELECT pg_catalog.concat_ws('|', 'sequence', s.seqrelid, s.seqtypid, s.seqstart, s.seqincrement, s.seqmin, s.seqmax,
                     s.seqcache, s.seqcycle, o.classid::pg_catalog.regclass, o.refobjid, o.refobjsubid, o.deptype)
      FROM pg_catalog.pg_sequence s
      LEFT JOIN pg_catalog.pg_depend o ON o.classid = 'pg_catalog.pg_class'::pg_catalog.regclass AND o.objid = s.seqrelid AND o.deptype IN ('a', 'i')
      WHERE s.seqrelid = ANY ($1)
    UNION ALL
    SELECT pg_catalog.concat_ws('|', 'index', i.indexrelid, i.indrelid, i.indkey, i.indclass, i.indcollation, i.indoption,
                     i.indisunique, i.indisprimary, i.indisvalid, i.indcheckxmin,
                     pg_catalog.pg_get_expr(i.indexprs, i.indrelid), pg_catalog.pg_get_expr(i.indpred, i.indrelid))
      FROM pg_catalog.pg_index i WHERE i.indexrelid = ANY ($1) OR i.indrelid = ANY ($1)
    UNION ALL
    SELECT pg_catalog.concat_ws('|', 'constraint', o.oid, o.conrelid, o.conname, o.contype, o.convalidated, o.condeferrable,
                     o.condeferred, o.conindid, o.conparentid, o.conislocal, o.coninhcount, o.connoinherit, o.confrelid, o.confupdtype, o.confdeltype, o.confmatchtype,
                     o.conkey::pg_catalog.text, o.confkey::pg_catalog.text, pg_catalog.pg_get_expr(o.conbin, o.conrelid))
      FROM pg_catalog.pg_constraint o WHERE o.conrelid = ANY ($1)
    UNION ALL
    SELECT pg_catalog.concat_ws('|', 'trigger', t.oid, t.tgparentid, t.tgenabled, t.tgisinternal, t.tgconstraint,
                     CASE WHEN NOT t.tgisinternal THEN pg_catalog.pg_get_triggerdef(t.oid) END)
      FROM pg_catalog.pg_trigger t WHERE t.tgrelid = ANY ($1)
    UNION ALL
    SELECT pg_catalog.concat_ws('|', 'policy', p.oid, p.polrelid, p.polname, p.polcmd, p.polpermissive,
                     (SELECT pg_catalog.array_agg(x ORDER BY x COLLATE pg_catalog."C") FROM
                       (SELECT CASE r WHEN 0 THEN '' ELSE pg_catalog.pg_get_userbyid(r)::pg_catalog.text END AS x FROM pg_catalog.unnest(p.polroles) AS r) AS roles),
                     pg_catalog.pg_get_expr(p.polqual, p.polrelid), pg_catalog.pg_get_expr(p.polwithcheck, p.polrelid))
      FROM pg_catalog.pg_policy p WHERE p.polrelid = ANY ($1)
    UNION ALL
    SELECT pg_catalog.concat_ws('|', 'rule', r.oid, r.ev_enabled, pg_catalog.pg_get_ruledef(r.oid))
      FROM pg_catalog.pg_rewrite r WHERE r.ev_class = ANY ($1)
    UNION ALL
    SELECT pg_catalog.concat_ws('|', 'type', t.oid, t.typname, t.typtype, t.typarray, t.typelem, t.typrelid)
      FROM pg_catalog.pg_class c JOIN pg_catalog.pg_type y ON y.oid = c.reltype
      JOIN pg_catalog.pg_type t ON t.oid = ANY (ARRAY[y.oid, y.typarray])
      WHERE c.oid = ANY ($1)
  ) AS lines)sql";

const char* text_or_none(const char* text) { return text ? text : ""; }

// What the statement made or altered has the author's OID.
char* line_of_stated(const DdlObject& object) {
  const bool is_type = object.catalog == TypeRelationId;
  return psprintf("%u|%s|%s|%s", object.oid, text_or_none(name_of(object)), text_or_none(meaning_of(object)),
                  text_or_none(is_type ? labels_with_oids(object.oid) : nullptr));
}

char* line_of_use(const DdlUse& use) {
  return psprintf("%s|%s", text_or_none(name_of(use.object)),
                  use.by_name ? "of an extension" : text_or_none(meaning_of(use.object)));
}

int compare_objects(const ListCell* a, const ListCell* b) { return memcmp(lfirst(a), lfirst(b), sizeof(DdlObject)); }

List* distinct(const List* objects) {
  List* sorted = list_copy(objects);
  list_sort(sorted, compare_objects);
  List* all = NIL;
  ListCell* cell;
  foreach (cell, sorted)
    if (all == NIL || memcmp(llast(all), lfirst(cell), sizeof(DdlObject)) != 0) all = lappend(all, lfirst(cell));
  return all;
}

int compare_lines(const ListCell* a, const ListCell* b) {
  return strcmp(static_cast<char*>(lfirst(a)), static_cast<char*>(lfirst(b)));
}

char* md5_of(const char* first, const List* lines) {
  StringInfoData text;
  initStringInfo(&text);
  appendStringInfoString(&text, first);
  ListCell* cell;
  foreach (cell, lines) appendStringInfo(&text, "\n%s", static_cast<char*>(lfirst(cell)));
  char* sum = static_cast<char*>(palloc(MD5_PASSWD_LEN + 1));
  const char* error = nullptr;
  if (!pg_md5_hash(text.data, size_t(text.len), sum, &error)) elog(ERROR, "gcl: no digest: %s", error);
  return sum;
}

}  // namespace

char* digest_of(const List* relations, const List* objects) {
  const int nest = enter_fixed_settings();
  List* lines = NIL;
  ListCell* cell;
  foreach (cell, distinct(objects)) lines = lappend(lines, line_of_stated(*static_cast<DdlObject*>(lfirst(cell))));
  foreach (cell, uses_of(relations, objects)) lines = lappend(lines, line_of_use(*static_cast<DdlUse*>(lfirst(cell))));
  leave_fixed_settings(nest);
  list_sort(lines, compare_lines);
  const char* first = relations == NIL ? "" : catalog_text(kRelationsQuery, {oids_argument(relations)});
  return md5_of(first, lines);
}

}  // namespace gcl
