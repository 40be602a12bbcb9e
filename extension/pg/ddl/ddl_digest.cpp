// The digest of catalog rows: what must be equal on every primary, and nothing else (no OIDs of access methods, nor of
// roles older than the extension, which each primary has its own of).
#include "extension/pg/ddl/ddl_results.hpp"
#include "extension/pg/ddl/ddl_sql.hpp"

namespace gcl {
namespace {

constexpr const char* kDigestQuery = R"sql(
  SELECT pg_catalog.md5(coalesce(pg_catalog.string_agg(line, E'\n' ORDER BY line COLLATE pg_catalog."C"), '')) FROM (
    SELECT pg_catalog.concat_ws('|', 'class', c.oid, c.relname, n.nspname, pg_catalog.pg_get_userbyid(c.relowner), c.relkind, m.amname,
                     c.relpersistence, c.relnatts, c.reltype, c.relchecks, c.reloptions::pg_catalog.text, c.relacl::pg_catalog.text,
                     c.relrowsecurity, c.relforcerowsecurity, c.relreplident, c.reltoastrelid,
                     (SELECT x.reloptions::pg_catalog.text FROM pg_catalog.pg_class x WHERE x.oid = c.reltoastrelid),
                     CASE WHEN c.relkind = 'v' THEN pg_catalog.pg_get_viewdef(c.oid) END) AS line
      FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace LEFT JOIN pg_catalog.pg_am m ON m.oid = c.relam
      WHERE c.oid = ANY ($1)
    UNION ALL
    SELECT pg_catalog.concat_ws('|', 'attribute', a.attrelid, a.attnum, a.attname, a.atttypid, a.atttypmod, a.attcollation,
                     a.attnotnull, a.atthasdef, a.attisdropped, a.attislocal, a.attinhcount, a.attmissingval::pg_catalog.text, a.attoptions::pg_catalog.text,
                     a.attidentity, a.attgenerated, a.attstorage, a.attcompression, a.attacl::pg_catalog.text,
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
                     pg_catalog.pg_get_expr(p.polqual, p.polrelid), pg_catalog.pg_get_expr(p.polwithcheck, p.polrelid))
      FROM pg_catalog.pg_policy p WHERE p.polrelid = ANY ($1)
    UNION ALL
    SELECT pg_catalog.concat_ws('|', 'rule', r.oid, r.ev_enabled, pg_catalog.pg_get_ruledef(r.oid))
      FROM pg_catalog.pg_rewrite r WHERE r.ev_class = ANY ($1)
    UNION ALL
    SELECT pg_catalog.concat_ws('|', 'type', t.oid, t.typname, t.typtype, t.typarray, t.typelem, t.typrelid)
      FROM pg_catalog.pg_type t
      WHERE t.typrelid = ANY ($1)
         OR t.typelem IN (SELECT y.oid FROM pg_catalog.pg_type y WHERE y.typrelid = ANY ($1))
    UNION ALL
    SELECT pg_catalog.concat_ws('|', 'object', g.catalog, i.type, i.identity,
                     CASE WHEN p.prokind IN ('f', 'p', 'w') THEN pg_catalog.concat_ws('|', p.oid, pg_catalog.pg_get_functiondef(p.oid)) END,
                     CASE WHEN g.catalog = 'pg_catalog.pg_type'::pg_catalog.regclass THEN g.oid END)
      FROM ROWS FROM (pg_catalog.unnest($2), pg_catalog.unnest($3)) AS g(catalog, oid)
      CROSS JOIN LATERAL pg_catalog.pg_identify_object(g.catalog, g.oid, 0) i
      LEFT JOIN pg_catalog.pg_proc p ON g.catalog = 'pg_catalog.pg_proc'::pg_catalog.regclass AND p.oid = g.oid
    UNION ALL
    SELECT pg_catalog.concat_ws('|', 'domain', t.oid, t.typdefault, t.typnotnull,
                     (SELECT pg_catalog.string_agg(c.conname || ' ' || pg_catalog.pg_get_constraintdef(c.oid), ';' ORDER BY c.conname COLLATE pg_catalog."C")
                        FROM pg_catalog.pg_constraint c WHERE c.contypid = t.oid))
      FROM pg_catalog.pg_type t JOIN ROWS FROM (pg_catalog.unnest($2), pg_catalog.unnest($3)) AS g(catalog, oid) ON g.catalog = 'pg_catalog.pg_type'::pg_catalog.regclass AND t.oid = g.oid
      WHERE t.typtype = 'd'
    UNION ALL
    SELECT pg_catalog.concat_ws('|', 'role', r.oid, r.rolname, r.rolsuper, r.rolinherit, r.rolcreaterole, r.rolcreatedb, r.rolcanlogin,
                     r.rolreplication, r.rolbypassrls, r.rolconnlimit, r.rolvaliduntil)
      FROM pg_catalog.pg_roles r JOIN ROWS FROM (pg_catalog.unnest($2), pg_catalog.unnest($3)) AS g(catalog, oid) ON g.catalog = 'pg_catalog.pg_authid'::pg_catalog.regclass AND r.oid = g.oid
    UNION ALL
    SELECT pg_catalog.concat_ws('|', 'label', e.oid, e.enumtypid, e.enumsortorder, e.enumlabel)
      FROM pg_catalog.pg_enum e JOIN ROWS FROM (pg_catalog.unnest($2), pg_catalog.unnest($3)) AS g(catalog, oid) ON g.catalog = 'pg_catalog.pg_type'::pg_catalog.regclass AND g.oid = e.enumtypid
  ) AS lines)sql";

}  // namespace

char* digest_of(const List* relations, const List* objects) {
  List *catalogs = NIL, *oids = NIL;
  ListCell* cell;
  foreach (cell, objects) {
    const auto* object = static_cast<DdlObject*>(lfirst(cell));
    if (list_member_oid(oids, object->oid)) continue;
    catalogs = lappend_oid(catalogs, object->catalog);
    oids = lappend_oid(oids, object->oid);
  }
  return catalog_text(kDigestQuery, {oids_argument(relations), oids_argument(catalogs), oids_argument(oids)});
}

}  // namespace gcl
