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


def query_of_catalog(name, columns, since):
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
    written_since = f"age(xmin) <= (SELECT age('{since}'::xid))"
    return (f"SELECT replace({line}, E'\\n', ' ') AS row FROM pg_catalog.{name} x WHERE {written_since}"
            f" UNION ALL SELECT '{name} before: ' || count(*) FROM pg_catalog.{name} WHERE NOT {written_since}")


# What was seen is kept, and compared, where the rows are: they are thousands, and what changes are a few.
CHANGE = """PREPARE change AS WITH now AS MATERIALIZED ({}),
    came AS (SELECT row FROM now EXCEPT SELECT row FROM seen), went AS (SELECT row FROM seen EXCEPT SELECT row FROM now),
    kept AS (INSERT INTO seen SELECT row FROM came), forgotten AS (DELETE FROM seen USING went WHERE seen.row = went.row)
    SELECT '- ' || row FROM went UNION ALL SELECT '+ ' || row FROM came ORDER BY 1"""


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
            tables.setdefault(table, []).append((column, kind))
        queries = [query_of_catalog(table, columns, since) for table, columns in tables.items() if table not in OWN]
        self.prepare = CHANGE.format(" UNION ALL ".join(queries))

    def remember(self):
        """The first look."""
        self.session.run(f"SET search_path = pg_catalog, pg_temp; SET jit = off; CREATE TEMP TABLE seen (row text); {self.prepare}")
        self.change()

    def change(self):
        return self.session.run("EXECUTE change", 60)
