"""What the catalogs of a primary say, as far as anything was changed in them since the extension was created.

    catalogs = Catalogs(session)        # from now on
    catalogs.remember()
    ...
    catalogs.change()                   # rows that came and went since the last look, as text; empty: nothing changed

Rows that were there before are only counted, unless they are written again; what each primary has of its own (files,
statistics, transaction ids, the OIDs of what the extension brings) is left out.
"""

# Not of the database's objects, or each primary's own by nature.
OWN = {"pg_statistic", "pg_statistic_ext_data", "pg_database", "pg_tablespace", "pg_replication_origin", "pg_largeobject"}
OWN_COLUMNS = {"relfilenode", "relpages", "reltuples", "relallvisible", "relfrozenxid", "relminmxid", "dbid", "setdatabase",
               "relhasindex", "relhasrules", "relhastriggers"}  # the last three: VACUUM corrects them


def line_of_catalog(name, columns):
    """What a row x of the catalog says, as an expression."""
    parts = []
    for column, kind in columns:
        if column in OWN_COLUMNS:
            continue
        if name in ("pg_attrdef", "pg_parameter_acl") and column == "oid":
            continue  # nothing refers to one
        if column == "relam":
            value = "(SELECT amname FROM pg_catalog.pg_am WHERE oid = relam)"
        elif column in ("refobjid", "objid") and name == "pg_depend":
            of = "refclassid" if column == "refobjid" else "classid"
            value = (f"CASE {of} WHEN 'pg_am'::regclass THEN (SELECT amname FROM pg_catalog.pg_am WHERE oid = {column})::text"
                     f" WHEN 'pg_extension'::regclass THEN (SELECT extname FROM pg_catalog.pg_extension WHERE oid = {column})::text"
                     f" WHEN 'pg_attrdef'::regclass THEN '' ELSE {column}::text END")
        elif name == "pg_shdepend" and column == "objid":
            value = "CASE classid WHEN 'pg_parameter_acl'::regclass THEN '' ELSE objid::text END"
        elif kind == "pg_node_tree":  # where in the statement's text something stood
            value = f"regexp_replace({column}::text, ':(location|stmt_location|stmt_len) -?[0-9]+', '', 'g')"
        else:
            value = f'x."{column}"::text'
        parts.append(f"coalesce({value}, '')")
    line = " || '|' || ".join([f"'{name}'", *parts])
    return f"replace({line}, E'\\n', ' ')"


# The server keeps and compares what was seen: rows are thousands, changes a few.  A row's text is made once for each version.
CHANGE = """PREPARE change AS WITH
    here AS MATERIALIZED ({here}),
    new AS MATERIALIZED (SELECT h.* FROM here h LEFT JOIN seen s USING (catalog, at, made) WHERE s.row IS NULL),
    came AS MATERIALIZED ({came}),
    went AS MATERIALIZED (SELECT s.* FROM seen s LEFT JOIN here h USING (catalog, at, made) WHERE h.catalog IS NULL),
    kept AS (INSERT INTO seen SELECT * FROM came),
    forgotten AS (DELETE FROM seen s USING went w WHERE s.catalog = w.catalog AND s.at = w.at AND s.made = w.made)
    (SELECT '- ' || row FROM went EXCEPT SELECT '- ' || row FROM came) UNION ALL
    (SELECT '+ ' || row FROM came EXCEPT SELECT '+ ' || row FROM went) ORDER BY 1"""


def statement(tables, since):
    """CHANGE, of these tables (columns of each by name), as far as anything was written in them since a transaction's id."""
    here, came = [], []
    written_since = f"age(xmin) <= (SELECT age('{since}'::xid))"
    for name, columns in tables.items():
        here.append(f"SELECT tableoid AS catalog, ctid AS at, xmin AS made FROM pg_catalog.{name} WHERE {written_since}")
        # Of the others only how many there are, at a place where no row is.
        here.append(f"SELECT 'pg_catalog.{name}'::regclass, '(0,0)', count(*)::text::xid FROM pg_catalog.{name} WHERE NOT {written_since}")
        came.append(f"SELECT tableoid AS catalog, ctid AS at, xmin AS made, {line_of_catalog(name, columns)} AS row FROM pg_catalog.{name} x"
                    f" WHERE ctid = ANY (ARRAY(SELECT at FROM new WHERE catalog = 'pg_catalog.{name}'::regclass))")
    came.append("SELECT catalog, at, made, catalog::regclass || ' before: ' || made FROM new WHERE at = '(0,0)'")
    return CHANGE.format(here=" UNION ALL ".join(here), came=" UNION ALL ".join(came))


class Catalogs:
    def __init__(self, session):
        """The session stays open, and is used for nothing else."""
        self.session = session
        since = session.one("SELECT pg_snapshot_xmax(pg_current_snapshot())")
        columns = session.run("SELECT c.relname, a.attname, a.atttypid::regtype FROM pg_class c JOIN pg_attribute a ON attrelid = c.oid"
                              " WHERE relnamespace = 'pg_catalog'::regnamespace AND relkind = 'r' AND attnum > 0 ORDER BY 1, attnum")
        tables = {}
        for row in columns:
            table, column, kind = row.split("|")
            if table not in OWN:
                tables.setdefault(table, []).append((column, kind))
        self.prepare = statement(tables, since)

    def remember(self):
        """The first look."""
        self.session.run("SET search_path = pg_catalog, pg_temp; SET jit = off; SET enable_mergejoin = off; CREATE TEMP TABLE seen (catalog oid, at tid, made xid, row text);"
                         f"{self.prepare}")
        self.change()

    def change(self):
        return self.session.run("EXECUTE change", 60)
