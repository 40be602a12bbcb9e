"""Every form of DDL that all primaries share: done, undone with its savepoint, undone with its transaction, caught up with."""
import unittest

from harness import Cluster

# What the catalogs say beside the fingerprint of gcl tables: OIDs where rows or other catalogs may hold them.
CATALOGS = [
    "SELECT public.gcl_ddl_fingerprint()",
    "SELECT oid, nspname, nspowner::regrole, nspacl FROM pg_namespace WHERE nspname !~ '^pg_(temp|toast_temp)' ORDER BY 1",
    """SELECT p.oid, p.oid::regprocedure, proowner::regrole, prosrc, proacl, proconfig, provolatile, obj_description(p.oid, 'pg_proc')
       FROM pg_proc p WHERE p.oid >= 16384 AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.objid = p.oid AND d.deptype = 'e') ORDER BY 1""",
    """SELECT t.oid, t.oid::regtype, typtype, typarray, typowner::regrole, typacl, typnotnull, typdefault FROM pg_type t
       LEFT JOIN pg_class c ON c.oid = t.typrelid LEFT JOIN pg_am a ON a.oid = c.relam
       WHERE t.oid >= 16384 AND t.typname !~ '^_?gcl_' AND (c.oid IS NULL OR c.relkind IN ('v', 'c') OR a.amname = 'gcl') ORDER BY 1""",
    "SELECT oid, enumtypid, enumsortorder, enumlabel FROM pg_enum ORDER BY 1",
    "SELECT oid, conname, contype, conrelid, contypid FROM pg_constraint WHERE oid >= 16384 ORDER BY 1",
    """SELECT oid, relname, relowner::regrole, relacl, reloptions, pg_get_viewdef(oid) FROM pg_class
       WHERE relkind = 'v' AND oid >= 16384 AND relname !~ '^gcl_' ORDER BY 1""",
    """SELECT attrelid, attnum, attname, atttypid, attoptions, attisdropped FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
       WHERE relkind IN ('c', 'v') AND attrelid >= 16384 AND relname !~ '^gcl_' ORDER BY 1, 2""",
    "SELECT oid, tgrelid, tgname, tgenabled FROM pg_trigger ORDER BY 1",
    "SELECT classoid, objoid, objsubid, description FROM pg_description WHERE objoid >= 16384 AND classoid <> 'pg_extension'::regclass AND NOT EXISTS "
    "(SELECT FROM pg_depend WHERE classid = classoid AND objid = objoid AND deptype = 'e') ORDER BY 1, 2, 3",
    "SELECT defaclnamespace::regnamespace, defaclobjtype, defaclacl FROM pg_default_acl ORDER BY 1, 2",
]

BASE = """
CREATE TABLE base (id int PRIMARY KEY, v int DEFAULT 3, w text, n numeric, CHECK (v < 1000000)) USING gcl;
CREATE INDEX base_v ON base (v);
CREATE INDEX base_w ON base (w);
INSERT INTO base SELECT i, i * 2, 'w' || i, i / 4.0 FROM generate_series(1, 300) i;
CREATE TYPE base_mood AS ENUM ('bad', 'fair', 'good');
CREATE FUNCTION base_touch() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.w := 'touched'; RETURN NEW; END $$;
CREATE VIEW base_view AS SELECT id, v FROM base;
CREATE DOMAIN base_domain AS int CHECK (VALUE > 0);
CREATE TYPE base_pair AS (a int, b text)
"""

# name: (the statements, a query whose answer they change or depend on)
TABLE_FORMS = {
    "add column": ("ALTER TABLE base ADD COLUMN c int", "SELECT count(*) FROM base WHERE c IS NULL"),
    "add column with a constant": ("ALTER TABLE base ADD COLUMN c text DEFAULT 'x'", "SELECT count(*), min(c) FROM base"),
    "add column with a stable default": (
        "SET TimeZone = 'Asia/Tokyo'; ALTER TABLE base ADD COLUMN c timestamptz DEFAULT clock_timestamp()::date::timestamptz + now()::time,"
        " ADD COLUMN d timestamptz DEFAULT now()", "SELECT count(DISTINCT d), max(extract(epoch FROM d)) FROM base"),
    "add column with a volatile default": (
        "ALTER TABLE base ADD COLUMN c double precision DEFAULT random()", "SELECT count(DISTINCT c), sum(c) FROM base"),
    "add columns with volatile defaults of all kinds": (
        "CREATE SEQUENCE numbers; ALTER TABLE base ADD COLUMN c bigint DEFAULT nextval('numbers') NOT NULL, ADD COLUMN d uuid DEFAULT gen_random_uuid(),"
        " ADD COLUMN e timestamptz DEFAULT clock_timestamp(), ADD COLUMN f int GENERATED ALWAYS AS IDENTITY;"
        "INSERT INTO base (id) VALUES (-7)",
        "SELECT count(*) = count(DISTINCT c) AND count(*) = count(DISTINCT d) AND count(*) = count(DISTINCT f), min(c),"
        " md5(string_agg(concat_ws('|', id, c, d, e, f), ',' ORDER BY id)) FROM base"),
    "type with a volatile USING": (
        "ALTER TABLE base ALTER COLUMN w TYPE text USING gen_random_uuid() || '/' || random(), ALTER COLUMN n TYPE timestamptz USING clock_timestamp()",
        "SELECT count(DISTINCT w) > 100, md5(string_agg(concat_ws('|', id, w, n), ',' ORDER BY id)) FROM base"),
    "missing values of earlier rows": (
        "ALTER TABLE base ADD COLUMN c timestamptz DEFAULT now(); ALTER TABLE base ALTER c SET DEFAULT clock_timestamp(), ADD COLUMN d text DEFAULT current_user || txid_current();"
        "UPDATE base SET w = 'touched' WHERE id = 5",
        "SELECT attname, atthasmissing, attmissingval FROM pg_attribute WHERE attrelid = 'base'::regclass AND attname IN ('c', 'd')"
        " UNION ALL SELECT md5(string_agg(concat_ws('|', id, c, d), ',' ORDER BY id)), true, NULL FROM base ORDER BY 1"),
    "add generated column": (
        "ALTER TABLE base ADD COLUMN c int GENERATED ALWAYS AS (v * 10) STORED", "SELECT sum(c) FROM base"),
    "add unique column": ("ALTER TABLE base ADD COLUMN c int UNIQUE", "SELECT count(*) FROM base"),
    "drop column": ("ALTER TABLE base DROP COLUMN v CASCADE", "SELECT count(*), max(n) FROM base"),
    "set default": ("ALTER TABLE base ALTER COLUMN v SET DEFAULT 77", "SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef WHERE adrelid = 'base'::regclass"),
    "drop default": ("ALTER TABLE base ALTER COLUMN v DROP DEFAULT", "SELECT count(*) FROM pg_attrdef WHERE adrelid = 'base'::regclass"),
    "not null": ("ALTER TABLE base ALTER COLUMN v SET NOT NULL; ALTER TABLE base ALTER v DROP NOT NULL; ALTER TABLE base ALTER w SET NOT NULL", "SELECT count(*) FROM base"),
    "type with a rewrite": ("ALTER TABLE base ALTER COLUMN n TYPE text USING 'n' || n", "SELECT min(n), max(n) FROM base"),
    "type of an indexed column": ("DROP VIEW base_view; ALTER TABLE base ALTER COLUMN v TYPE bigint",
                                  "SET enable_seqscan = off; SELECT id, pg_typeof(v) FROM base WHERE v = 84"),
    "type of the key": ("DROP VIEW base_view; ALTER TABLE base ALTER COLUMN id TYPE numeric", "SET enable_seqscan = off; SELECT v FROM base WHERE id = 17"),
    "type that keeps the table and its index": (
        "ALTER TABLE base ADD COLUMN c varchar(10) UNIQUE; UPDATE base SET c = 'c' || id; ALTER TABLE base ALTER c TYPE varchar(20);"
        "ALTER TABLE base ALTER c TYPE text, ALTER n TYPE numeric; DROP VIEW base_view; ALTER TABLE base ALTER id TYPE int",
        "SET enable_seqscan = off; SELECT id FROM base WHERE c = 'c33'"),
    "type that keeps the index": ("ALTER TABLE base ALTER COLUMN w TYPE varchar(400)",
                                  "SET enable_seqscan = off; SELECT id FROM base WHERE w = 'w33'"),
    "rename": ("ALTER TABLE base RENAME COLUMN n TO m; ALTER TABLE base RENAME TO based; ALTER INDEX base_v RENAME TO based_v;"
               "ALTER TABLE based RENAME CONSTRAINT base_pkey TO based_pkey", "SELECT max(m) FROM based"),
    "check": ("ALTER TABLE base ADD CONSTRAINT small CHECK (id < 10000); ALTER TABLE base DROP CONSTRAINT base_v_check;"
              "ALTER TABLE base ADD CONSTRAINT later CHECK (v > 0) NOT VALID; ALTER TABLE base VALIDATE CONSTRAINT later", "SELECT count(*) FROM base"),
    "options": ("ALTER TABLE base SET (fillfactor = 70, autovacuum_enabled = off); ALTER TABLE base RESET (fillfactor);"
                "ALTER TABLE base ALTER w SET STORAGE plain; ALTER TABLE base ALTER v SET (n_distinct = 9)",
                "SELECT reloptions FROM pg_class WHERE relname = 'base' ORDER BY oid"),
    "unique constraint": ("ALTER TABLE base ADD CONSTRAINT base_u UNIQUE (w) DEFERRABLE INITIALLY DEFERRED", "SELECT count(*) FROM base"),
    "constraint by an index": ("CREATE UNIQUE INDEX base_i ON base (n); ALTER TABLE base ADD UNIQUE USING INDEX base_i", "SELECT count(*) FROM base"),
    "foreign keys": (
        "SET default_table_access_method = gcl; CREATE TABLE child (id int PRIMARY KEY, p int REFERENCES base ON DELETE CASCADE ON UPDATE SET NULL DEFERRABLE INITIALLY DEFERRED, q int);"
        "INSERT INTO child SELECT i, i, i FROM generate_series(1, 50) i; SET CONSTRAINTS ALL IMMEDIATE; ALTER TABLE child ADD CONSTRAINT q FOREIGN KEY (q) REFERENCES base;"
        "ALTER TABLE child ADD CONSTRAINT self FOREIGN KEY (p) REFERENCES child NOT VALID; ALTER TABLE child VALIDATE CONSTRAINT self;"
        "ALTER TABLE child ALTER CONSTRAINT q DEFERRABLE; ALTER TABLE child ADD COLUMN r int DEFAULT 7 REFERENCES base;"
        "ALTER TABLE child ALTER COLUMN q TYPE bigint; ALTER TABLE child DROP CONSTRAINT self; DELETE FROM base WHERE id = 300", "SELECT count(*), sum(q) FROM child"),
    "a referenced table goes": (
        "SET default_table_access_method = gcl; CREATE TABLE child (p int REFERENCES base); CREATE TABLE grandchild (id int PRIMARY KEY, p int REFERENCES base); TRUNCATE base CASCADE;"
        "DROP TABLE grandchild; DROP TABLE base CASCADE", "SELECT count(*) FROM child"),
    "table of a query": (
        "CREATE TABLE made USING gcl AS SELECT id, v * 2 AS d, w, random() AS r, now() AS t, 'good'::base_mood AS m FROM base WHERE id <= 200;"
        "CREATE TABLE empty (a, b) USING gcl AS SELECT id, n FROM base WITH NO DATA; CREATE TABLE IF NOT EXISTS made USING gcl AS SELECT 1 AS other;"
        "SET default_table_access_method = gcl; SELECT max(id) AS top INTO topmost FROM made; CREATE INDEX ON made (d)",
        "SELECT count(*), sum(d), sum(r), count(DISTINCT t), max(m), (SELECT top FROM topmost), (SELECT count(*) FROM empty) FROM made"),
    "set schema": ("CREATE SCHEMA @_other; ALTER TABLE base SET SCHEMA @_other", "SELECT count(*) FROM @_other.base"),
    "several at once": ("ALTER TABLE base ADD COLUMN c int DEFAULT 1, ADD COLUMN d uuid DEFAULT gen_random_uuid(), ALTER n TYPE float8, DROP COLUMN w,"
                        "ALTER v SET NOT NULL, ADD CHECK (c > 0)", "SELECT count(DISTINCT d), min(d::text), sum(n) FROM base"),
}

OBJECT_FORMS = {
    "schema": ("CREATE SCHEMA @_s CREATE TABLE t (a int PRIMARY KEY DEFERRABLE) USING gcl CREATE VIEW w AS SELECT a FROM t;"
               "ALTER SCHEMA @_s RENAME TO @_r; INSERT INTO @_r.t VALUES (1)", "SELECT a FROM @_r.w"),
    "function": ("CREATE FUNCTION f(x int DEFAULT 2) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT x * 21';"
                 "CREATE OR REPLACE FUNCTION f(x int DEFAULT 2) RETURNS int LANGUAGE sql STABLE AS 'SELECT x * 22'; ALTER FUNCTION f COST 7;"
                 "CREATE PROCEDURE p() LANGUAGE plpgsql AS 'BEGIN NULL; END'; ALTER FUNCTION f RENAME TO g", "SELECT g()"),
    "aggregate": ("CREATE AGGREGATE total (int) (SFUNC = int4pl, STYPE = int, INITCOND = '0')", "SELECT total(v) FROM base"),
    "enum in a table": ("CREATE TYPE mood AS ENUM ('sad', 'ok', 'glad'); CREATE TABLE moods (m mood PRIMARY KEY, a mood[]) USING gcl;"
                        "INSERT INTO moods VALUES ('ok', '{sad,glad}'), ('sad', '{}')", "SELECT m, a FROM moods ORDER BY m DESC"),
    "enum gets a label": ("ALTER TYPE base_mood ADD VALUE 'awful' BEFORE 'bad'; ALTER TYPE base_mood ADD VALUE 'so-so' AFTER 'bad';"
                          "ALTER TYPE base_mood RENAME VALUE 'good' TO 'fine'", "SELECT enum_range(NULL::base_mood)"),
    "composite in a table": ("CREATE TYPE pair AS (a int, b text); CREATE TABLE pairs (id int, p pair, q pair[]) USING gcl;"
                             "INSERT INTO pairs VALUES (1, '(4,x)', '{\"(5,y)\"}')", "SELECT (p).b, q[1] FROM pairs"),
    "composite altered": ("ALTER TYPE base_pair ADD ATTRIBUTE c int; ALTER TYPE base_pair RENAME ATTRIBUTE a TO z; ALTER TYPE base_pair ALTER ATTRIBUTE b TYPE name",
                          "SELECT (1, 'x', 3)::base_pair"),
    "domain": ("CREATE DOMAIN d AS text CHECK (VALUE <> ''); ALTER DOMAIN d ADD CONSTRAINT long CHECK (length(VALUE) < 9); CREATE TABLE ds (d d) USING gcl;"
               "INSERT INTO ds VALUES ('a'); ALTER DOMAIN d SET NOT NULL; ALTER DOMAIN d SET DEFAULT 'z'", "SELECT d FROM ds"),
    "range": ("CREATE TYPE span AS RANGE (SUBTYPE = float8); CREATE TABLE spans (s span, m span_multirange, a span[]) USING gcl;"
              "INSERT INTO spans VALUES ('[1,2)', '{[1,2),[3,4)}', '{\"[1,2)\"}')", "SELECT * FROM spans"),
    "view": ("CREATE VIEW v AS SELECT v AS x FROM base WHERE id < 5; CREATE OR REPLACE VIEW v AS SELECT v AS x, id FROM base WHERE id < 6;"
             "ALTER VIEW v RENAME COLUMN id TO k; ALTER VIEW v SET (security_barrier); COMMENT ON VIEW v IS 'seen'", "SELECT sum(k) FROM v"),
    "drop": ("DROP VIEW base_view; DROP TYPE base_mood; DROP DOMAIN base_domain; DROP FUNCTION base_touch(); DROP TYPE base_pair", "SELECT count(*) FROM base"),
    "trigger": ("CREATE TRIGGER touch BEFORE UPDATE ON base FOR EACH ROW EXECUTE FUNCTION base_touch(); ALTER TRIGGER touch ON base RENAME TO touched;"
                "UPDATE base SET v = v WHERE id = 9; CREATE CONSTRAINT TRIGGER late AFTER INSERT ON base DEFERRABLE FOR EACH ROW EXECUTE FUNCTION base_touch();"
                "ALTER TABLE base DISABLE TRIGGER late", "SELECT w FROM base WHERE id = 9"),
    "grant": ("GRANT SELECT, INSERT ON base TO PUBLIC; GRANT SELECT (v) ON base TO pg_monitor; REVOKE INSERT ON base FROM PUBLIC; GRANT USAGE ON SCHEMA public TO pg_monitor;"
              "REVOKE EXECUTE ON FUNCTION base_touch() FROM PUBLIC; GRANT SELECT ON base_view TO pg_monitor; REVOKE USAGE ON TYPE base_mood FROM PUBLIC;"
              "ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO pg_monitor; GRANT SELECT ON ALL TABLES IN SCHEMA public TO pg_read_all_stats",
              "SELECT relacl FROM pg_class WHERE relname = 'base' ORDER BY oid"),
    "comment": ("COMMENT ON TABLE base IS 'the base'; COMMENT ON COLUMN base.v IS 'a column'; COMMENT ON FUNCTION base_touch() IS 'touches';"
                "COMMENT ON TYPE base_mood IS 'how it is'; COMMENT ON CONSTRAINT base_pkey ON base IS 'key'; COMMENT ON SCHEMA public IS 'everyone''s'",
                "SELECT obj_description('base'::regclass, 'pg_class')"),
    "policy": ("CREATE POLICY mine ON base USING (id < 3); ALTER POLICY mine ON base USING (id < 4); ALTER TABLE base ENABLE ROW LEVEL SECURITY",
               "SELECT polname, pg_get_expr(polqual, polrelid) FROM pg_policy"),
    "rule": ("CREATE RULE nothing AS ON DELETE TO base DO INSTEAD NOTHING; DELETE FROM base", "SELECT count(*) FROM base"),
    "owner": ("ALTER TABLE base OWNER TO pg_monitor; ALTER FUNCTION base_touch() OWNER TO pg_monitor; ALTER TYPE base_mood OWNER TO pg_monitor; ALTER VIEW base_view OWNER TO pg_monitor",
              "SELECT relowner::regrole FROM pg_class WHERE relname = 'base' ORDER BY oid"),
    "schemas of objects": ("CREATE SCHEMA @_away; ALTER FUNCTION base_touch() SET SCHEMA @_away; ALTER TYPE base_mood SET SCHEMA @_away; ALTER VIEW base_view SET SCHEMA @_away;"
                           "ALTER DOMAIN base_domain SET SCHEMA @_away", "SELECT count(*) FROM @_away.base_view"),
}


class Forms:
    """Each form has a schema of its own with its objects."""

    @classmethod
    def setUpClass(cls):
        cls.cluster = cls.enterClassContext(Cluster(primaries=3))
        cls.connect()

    @classmethod
    def connect(cls):
        cls.sessions = {k: cls.cluster.session(k) for k in (1, 2, 3)}

    def on(self, schema, k, text):
        self.sessions[k].run("ROLLBACK")
        return self.sessions[k].run(f"RESET ALL; SET search_path = {schema}; {text.replace('@', schema)}", 60)

    def prepare(self, schema, coordinator):
        self.on("pg_catalog", coordinator, f"CREATE SCHEMA {schema}; SET search_path = {schema}; {BASE}")

    def catalogs(self, k):
        return self.on("pg_catalog", k, ";\n".join(CATALOGS))

    def compare(self):
        first = self.catalogs(1)
        self.assertGreater(len(first), 20)
        for k in (2, 3):
            self.assertEqual(first, self.catalogs(k), f"primary {k} differs from primary 1")
        return first

    def answers(self, schema, query):
        answers = [self.on(schema, k, query) for k in (1, 2, 3)]
        self.assertEqual([answers[0]] * 3, answers)
        self.assertTrue(answers[0])

    def test_forms(self):
        for i, (form, (statements, query)) in enumerate(self.FORMS.items()):
            with self.subTest(form):
                coordinator, schema = i % 3 + 1, f"form_{i}"
                self.prepare(schema, coordinator)
                before = self.compare()
                self.on(schema, coordinator, f"BEGIN; {statements}; ROLLBACK")
                self.on(schema, coordinator, f"BEGIN; CREATE TABLE around (a int) USING gcl; SAVEPOINT s; {statements}; ROLLBACK TO s; DROP TABLE around; COMMIT")
                self.assertEqual(before, self.compare())
                self.on(schema, coordinator, statements)
                self.assertNotEqual(before, self.compare())
                self.answers(schema, query)
                self.on(schema, coordinator % 3 + 1, "CREATE TABLE afterwards (a int) USING gcl")
                self.compare()

    def test_a_stopped_primary_catches_up(self):
        schemas = {}
        for i, form in enumerate(self.FORMS):
            schemas[form] = f"away_{i}"
            self.prepare(schemas[form], 1)
        self.cluster.stop(3)
        for form, (statements, _) in self.FORMS.items():
            with self.subTest(form):
                self.on(schemas[form], 2, f"BEGIN; SAVEPOINT a; {statements}; RELEASE a; COMMIT")
        self.cluster.start(3)
        self.connect()
        self.compare()
        for form, (_, query) in self.FORMS.items():
            with self.subTest(form):
                self.answers(schemas[form], query)


class TableForms(Forms, unittest.TestCase):
    FORMS = TABLE_FORMS


class ObjectForms(Forms, unittest.TestCase):
    FORMS = OBJECT_FORMS


if __name__ == "__main__":
    unittest.main(verbosity=2)
